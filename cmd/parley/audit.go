package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley/gateway"
	"parley/gateway/client"
	"parley/gateway/control/operator"
)

// auditEvery is how often tail -f looks for further rows.
const auditEvery = time.Second

func (a *app) auditCommand() *cobra.Command {
	group := &cobra.Command{Use: "audit", Short: "Read and check the log of approvals, commands, pairings and configurations", Args: cobra.NoArgs, RunE: needsVerb}
	group.AddCommand(a.auditTail(), a.auditVerify())
	return group
}

func (a *app) auditTail() *cobra.Command {
	var limit int
	var follow bool
	c := &cobra.Command{Use: "tail", Short: "Print the newest rows of the audit log", Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error {
		cl, err := a.client()
		if err != nil {
			return err
		}
		defer cl.Close()
		l, err := operator.ListAudit.Ask(c.Context(), cl, operator.AuditIn{Limit: limit})
		if err != nil {
			return hint(err)
		}
		if a.json && !follow {
			return a.show(l)
		}
		last, err := a.auditRows(l.Items, 0)
		if err != nil || !follow {
			return err
		}
		return hint(a.followAudit(c.Context(), cl, last))
	}}
	c.Flags().IntVar(&limit, "limit", 50, "the newest `many`, 1 to 500")
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on with each row as it comes, until the gateway stops")
	return a.jsonFlag(c)
}

func (a *app) followAudit(ctx context.Context, cl *client.Client, last int64) error {
	tick := time.NewTicker(auditEvery)
	defer tick.Stop()
	for {
		l, err := operator.ListAudit.Ask(ctx, cl, operator.AuditIn{Limit: 500, After: &last})
		if err == nil {
			last, err = a.auditRows(l.Items, last)
		}
		if err != nil {
			return err
		}
		if l.Next != nil {
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// auditRows prints rows and returns the number of the last.
func (a *app) auditRows(rows []operator.AuditItem, last int64) (int64, error) {
	for _, r := range rows {
		last = r.N
		if a.json {
			if err := a.line(r); err != nil {
				return last, err
			}
			continue
		}
		who := strings.TrimSpace(r.Actor + " " + r.Via)
		what, err := json.Marshal(r.What)
		if err != nil {
			return last, err
		}
		if _, err := fmt.Fprintf(a.out, "%d %s %-18s %s %s\n", r.N, r.Time.Local().Format(time.DateTime), visible(r.Kind), paint(a.out, dim, visible(who)),
			visible(string(what))); err != nil {
			return last, err
		}
	}
	return last, nil
}

func (a *app) auditVerify() *cobra.Command {
	var head string
	c := &cobra.Command{Use: "verify", Short: "Check that no row of the audit log was changed, left out or cut off", Args: cobra.NoArgs,
		Long: `Check the chain of the whole audit log, and that it ends where it ended. Without a gateway that runs, the data directory itself is read.
Somebody who can write the whole data directory can make a chain that fits: note the printed head elsewhere, and give it to a later check with --head.`}
	c.Flags().StringVar(&head, "head", "", "a row that was noted, as `N:HASH`, which must still be there")
	c.RunE = func(c *cobra.Command, _ []string) error {
		v, err := a.checkAudit(c.Context(), head)
		if err != nil {
			return err
		}
		if a.json {
			err = a.show(v)
		} else if v.OK {
			_, err = fmt.Fprintf(a.out, "%d rows, all right\n", v.Rows)
			for _, h := range v.Heads {
				fmt.Fprintf(a.out, "head %d:%s\n", h.N, h.Hash)
			}
			if v.Unwitnessed {
				fmt.Fprintln(a.errs, "The file audit.head beside the database names no newest row, so that nothing here tells whether the end was cut off.")
			}
		}
		if err == nil && !v.OK {
			err = fmt.Errorf("the audit log is not what was written: row %d of chain %s: %s", v.Bad.N, v.Bad.Chain, v.Bad.Why)
		}
		return err
	}
	return a.jsonFlag(c)
}

// checkAudit asks the running gateway, or reads the data directory where none runs.
func (a *app) checkAudit(ctx context.Context, head string) (v gateway.AuditCheck, err error) {
	cl, err := a.client()
	if err != nil {
		return v, err
	}
	defer cl.Close()
	v, err = operator.VerifyAudit.Ask(ctx, cl, operator.HeadIn{Head: head})
	if !errors.Is(err, client.ErrUnreachable) || a.url != "" {
		return v, hint(err)
	}
	_, conf, err := a.load()
	if err != nil {
		return v, err
	}
	fmt.Fprintln(a.errs, "No gateway runs; reading", conf.DataDir)
	if _, err := os.Stat(conf.DataDir); err != nil {
		return v, err
	}
	return gateway.VerifyAudit(ctx, conf.DataDir, head)
}
