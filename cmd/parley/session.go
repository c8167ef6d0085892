// Sessions.

package main

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley/cmd/parley/internal/cli"
	"parley/gateway/control"
)

// sessionCommand holds what is more than one verb; the others are added to it.
func sessionCommand(a *cli.App) *cobra.Command {
	group := &cobra.Command{Use: "session", Short: "List, read, make and change sessions", Args: cobra.NoArgs, RunE: cli.NeedsVerb,
		Long: "A session is named by its key, or in short: main is that of the default agent, research/main that of another."}
	group.AddCommand(showSession(a), exportSession(a))
	return group
}

// amount is what model calls used, for people.
func amount(u control.Usage) string {
	tokens := u.InputTokens + u.OutputTokens + u.CacheReadTokens + u.CacheWriteTokens
	text := fmt.Sprintf("%d tokens", tokens)
	if tokens >= 10_000 {
		text = fmt.Sprintf("%dk tokens", tokens/1000)
	}
	switch {
	case tokens == 0:
		return ""
	case u.TotalCostUSD != nil && *u.TotalCostUSD > 0:
		return fmt.Sprintf("%s, $%.4f", text, *u.TotalCostUSD)
	}
	return text
}

func showSession(a *cli.App) *cobra.Command {
	var limit int
	var after string
	c := &cobra.Command{Use: "show KEY", Short: "Print a session's transcript", Args: cli.Exactly("KEY"),
		ValidArgsFunction: completeSessions(a),
		RunE: func(c *cobra.Command, args []string) error {
			path := fmt.Sprintf("/v1/sessions/%s/entries?limit=%d&after=%s", url.PathEscape(args[0]), limit, url.QueryEscape(after))
			return cli.Fetch(c.Context(), a, path, func(l cli.List[shownEvent]) error {
				for _, e := range l.Items {
					begin := fmt.Sprintf("%4d %s ", e.Sequence, e.Time.Local().Format(time.DateTime))
					text := strings.TrimRight(cli.Visible(sentence(e)), "\n")
					text = strings.ReplaceAll(text, "\n", "\n"+strings.Repeat(" ", len(begin)))
					if _, err := fmt.Fprintln(a.Out, begin+text); err != nil {
						return err
					}
				}
				return a.More(l.Next, nil)
			})
		}}
	return a.JSONFlag(cli.Pages(c, &limit, &after, 200))
}
