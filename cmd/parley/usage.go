package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley/gateway/client"
)

func (a *app) usageCommand() *cobra.Command {
	var by, from, to, agent, person, model string
	c := &cobra.Command{Use: "usage", Short: "Sum what runs used and cost, by day, agent, person or model", Args: cobra.NoArgs,
		Long: "Sum what runs used and cost over whole days, UTC; the last 30 when nothing is said. A model without a known price counts as unpriced, not as free."}
	c.RunE = func(c *cobra.Command, _ []string) error {
		q := client.Query{"by": by, "from": from, "to": to, "agent": agent, "person": person, "model": model}
		return with(c, a, func(ctx context.Context, cl *client.Client) (client.UsageSum, error) { return cl.Usage(ctx, q) }, func(u client.UsageSum) error {
			var rows [][]string
			for _, x := range u.Items {
				rows = append(rows, spendRow(x))
			}
			if len(rows) > 0 {
				u.Total.Key = "total"
				rows = append(rows, spendRow(u.Total))
			}
			return a.table([]string{strings.ToUpper(u.By), "NAME", "RUNS", "FAILED", "IN", "CACHED", "OUT", "COST", "UNPRICED"}, rows)
		})
	}
	f := c.Flags()
	f.StringVar(&by, "by", "day", "`what` a line is of: day, agent, person or model")
	f.StringVar(&from, "from", "", "first `day`, as 2006-01-02")
	f.StringVar(&to, "to", "", "last `day`, as 2006-01-02")
	f.StringVar(&agent, "agent", "", "only this agent, by `id`")
	f.StringVar(&person, "person", "", "only this person, by `id`")
	f.StringVar(&model, "model", "", "only this model, by `name`")
	return a.jsonFlag(c)
}

func spendRow(x client.UsageItem) []string {
	cost := ""
	if x.Runs > x.Unpriced {
		cost = fmt.Sprintf("$%.4f", x.KnownCost)
	}
	return []string{x.Key, x.Name, strconv.Itoa(x.Runs), strconv.Itoa(x.Failed), strconv.Itoa(x.Usage.InputTokens), strconv.Itoa(x.Usage.CacheReadTokens + x.Usage.CacheWriteTokens),
		strconv.Itoa(x.Usage.OutputTokens), cost, strconv.Itoa(x.Unpriced)}
}

func (a *app) logsCommand() *cobra.Command {
	var limit int
	var level string
	var follow bool
	c := &cobra.Command{Use: "logs", Short: "Print the running gateway's own log", Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error {
		cl, err := a.client()
		if err != nil {
			return err
		}
		defer cl.Close()
		l, err := cl.Logs(c.Context(), client.Query{"level": level}.Page(limit, ""))
		if err != nil {
			return hint(err)
		}
		if a.json && !follow {
			return a.show(l)
		}
		after := int64(0)
		for _, x := range l.Items {
			if err := a.logItem(x); err != nil {
				return err
			}
			after = x.N
		}
		if !follow {
			return nil
		}
		return hint(cl.FollowLogs(c.Context(), level, after, a.logItem))
	}}
	c.Flags().IntVar(&limit, "limit", 100, "the newest `many`, 1 to 500")
	c.Flags().StringVar(&level, "level", "info", "least `level`: debug, info, warn or error")
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on with each line as it comes, until the gateway stops")
	return a.jsonFlag(c)
}

// logItem prints one line of the log.
func (a *app) logItem(x client.LogItem) error {
	if a.json {
		return a.line(x)
	}
	s := dim
	switch x.Level {
	case "WARN":
		s = yellow
	case "ERROR":
		s = red
	}
	line := fmt.Sprintf("%s %s %s", x.Time.Local().Format(time.DateTime), paint(a.out, s, fmt.Sprintf("%-5s", x.Level)), visible(x.Message))
	for _, name := range slices.Sorted(maps.Keys(x.Attrs)) {
		line += " " + paint(a.out, dim, visible(name)+"=") + visible(x.Attrs[name])
	}
	_, err := fmt.Fprintln(a.out, line)
	return err
}
