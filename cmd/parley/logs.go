package main

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"parley/gateway/client"
)

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
