// The running gateway's own log.

package main

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"parley/cmd/parley/internal/cli"
	"parley/gateway/client"
	"parley/gateway/control/operator"
	"parley/gateway/spec"
)

func logsCommand(a *cli.App) *cobra.Command {
	var limit int
	var level string
	var follow bool
	c := &cobra.Command{Use: "logs", Short: "Print the running gateway's own log", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cl, err := a.Client()
			if err != nil {
				return err
			}
			defer cl.Close()
			l, err := operator.ListLog.Ask(c.Context(), cl, operator.LogIn{Level: level, Page: spec.Page{Limit: limit}})
			if err != nil {
				return cli.Hint(err)
			}
			if a.JSON && !follow {
				return a.ShowJSON(l)
			}
			after := int64(0)
			for _, x := range l.Items {
				if err := logItem(a, x); err != nil {
					return err
				}
				after = x.N
			}
			if !follow {
				return nil
			}
			return cli.Hint(cl.FollowLogs(c.Context(), level, after, func(x client.LogItem) error {
				return logItem(a, operator.LogItem(x))
			}))
		}}
	c.Flags().IntVar(&limit, "limit", 100, "the newest `many`, 1 to 500")
	c.Flags().StringVar(&level, "level", "info", "least `level`: debug, info, warn or error")
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on with each line as it comes, until the gateway stops")
	return a.JSONFlag(c)
}

// logItem prints one line of the log.
func logItem(a *cli.App, x operator.LogItem) error {
	if a.JSON {
		return a.LineJSON(x)
	}
	s := cli.Dim
	switch x.Level {
	case "WARN":
		s = cli.Yellow
	case "ERROR":
		s = cli.Red
	}
	line := fmt.Sprintf("%s %s %s", x.Time.Local().Format(time.DateTime), cli.Paint(a.Out, s, fmt.Sprintf("%-5s", x.Level)),
		cli.Visible(x.Message))
	for _, name := range slices.Sorted(maps.Keys(x.Attrs)) {
		if x.Attrs[name] == "" {
			continue
		}
		line += " " + cli.Paint(a.Out, cli.Dim, cli.Visible(name)+"=") + cli.Visible(x.Attrs[name])
	}
	_, err := fmt.Fprintln(a.Out, line)
	return err
}
