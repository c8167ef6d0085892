// Reading and checking the audit log.

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

	"parley/cmd/parley/internal/cli"
	"parley/gateway"
	"parley/gateway/client"
	"parley/gateway/control/operator"
)

// auditEvery is how often tail -f looks for further rows.
const auditEvery = time.Second

func auditCommand(a *cli.App) *cobra.Command {
	group := &cobra.Command{Use: "audit", Short: "Read and check the log of approvals, commands, pairings and configurations",
		Args: cobra.NoArgs, RunE: cli.NeedsVerb}
	group.AddCommand(auditTail(a), auditVerify(a))
	return group
}

func auditTail(a *cli.App) *cobra.Command {
	var limit int
	var follow bool
	c := &cobra.Command{Use: "tail", Short: "Print the newest rows of the audit log", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cl, err := a.Client()
			if err != nil {
				return err
			}
			defer cl.Close()
			l, err := operator.ListAudit.Ask(c.Context(), cl, operator.AuditIn{Limit: limit})
			if err != nil {
				return cli.Hint(err)
			}
			if a.JSON && !follow {
				return a.ShowJSON(l)
			}
			last, err := auditRows(a, l.Items, 0)
			if err != nil || !follow {
				return err
			}
			return cli.Hint(followAudit(c.Context(), a, cl, last))
		}}
	c.Flags().IntVar(&limit, "limit", 50, "the newest `many`, 1 to 500")
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on with each row as it comes, until the gateway stops")
	return a.JSONFlag(c)
}

func followAudit(ctx context.Context, a *cli.App, cl *client.Client, last int64) error {
	tick := time.NewTicker(auditEvery)
	defer tick.Stop()
	for {
		l, err := operator.ListAudit.Ask(ctx, cl, operator.AuditIn{Limit: 500, After: &last})
		if err == nil {
			last, err = auditRows(a, l.Items, last)
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
func auditRows(a *cli.App, rows []operator.AuditItem, last int64) (int64, error) {
	for _, r := range rows {
		last = r.N
		if a.JSON {
			if err := a.LineJSON(r); err != nil {
				return last, err
			}
			continue
		}
		who := strings.TrimSpace(r.Actor + " " + r.Via)
		what, err := json.Marshal(r.What)
		if err != nil {
			return last, err
		}
		if _, err := fmt.Fprintf(a.Out, "%d %s %-18s %s %s\n", r.N, r.Time.Local().Format(time.DateTime), cli.Visible(r.Kind),
			cli.Paint(a.Out, cli.Dim, cli.Visible(who)),
			cli.Visible(string(what))); err != nil {
			return last, err
		}
	}
	return last, nil
}

func auditVerify(a *cli.App) *cobra.Command {
	var head string
	c := &cobra.Command{Use: "verify", Short: "Check that no row of the audit log was changed, left out or cut off", Args: cobra.NoArgs,
		Long: "Check the chain of the whole audit log, and that it ends where it ended. Without a gateway that runs, the data directory " +
			"itself is read.\nSomebody who can write the whole data directory can make a chain that fits: note the printed head " +
			"elsewhere, and give it to a later check with --head."}
	c.Flags().StringVar(&head, "head", "", "a row that was noted, as `N:HASH`, which must still be there")
	c.RunE = func(c *cobra.Command, _ []string) error {
		v, err := checkAudit(c.Context(), a, head)
		if err != nil {
			return err
		}
		if a.JSON {
			err = a.ShowJSON(v)
		} else if v.OK {
			_, err = fmt.Fprintf(a.Out, "%d rows, all right\n", v.Rows)
			for _, h := range v.Heads {
				fmt.Fprintf(a.Out, "head %d:%s\n", h.N, h.Hash)
			}
			if v.Unwitnessed {
				fmt.Fprintln(a.Errs, "The file audit.head beside the database names no newest row, so that nothing here tells "+
					"whether the end was cut off.")
			}
		}
		if err == nil && !v.OK {
			err = fmt.Errorf("the audit log is not what was written: row %d of chain %s: %s", v.Bad.N, v.Bad.Chain, v.Bad.Why)
		}
		return err
	}
	return a.JSONFlag(c)
}

// checkAudit asks the running gateway, or reads the data directory where none runs.
func checkAudit(ctx context.Context, a *cli.App, head string) (v gateway.AuditCheck, err error) {
	cl, err := a.Client()
	if err != nil {
		return v, err
	}
	defer cl.Close()
	v, err = operator.VerifyAudit.Ask(ctx, cl, operator.HeadIn{Head: head})
	if !errors.Is(err, client.ErrUnreachable) || a.URL != "" {
		return v, cli.Hint(err)
	}
	_, conf, err := a.Load()
	if err != nil {
		return v, err
	}
	fmt.Fprintln(a.Errs, "No gateway runs; reading", conf.DataDir)
	if _, err := os.Stat(conf.DataDir); err != nil {
		return v, err
	}
	return gateway.VerifyAudit(ctx, conf.DataDir, head)
}
