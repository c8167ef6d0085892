package main

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"parley/gateway/client"
	"parley/gateway/control"
	"parley/gateway/control/session"
	"parley/gateway/spec"
)

// sessionCommand holds what is more than one verb; the others are added to it.
func (a *app) sessionCommand() *cobra.Command {
	group := &cobra.Command{Use: "session", Short: "List, read, make and change sessions", Args: cobra.NoArgs, RunE: needsVerb,
		Long: "A session is named by its key, or in short: main is that of the default agent, research/main that of another."}
	group.AddCommand(a.showSession(), a.exportSession())
	return group
}

// pages adds the flags of a list that comes in pages.
func pages(c *cobra.Command, limit *int, after *string, most int) *cobra.Command {
	c.Flags().IntVar(limit, "limit", most, "at most this `many`, 1 to 500")
	c.Flags().StringVar(after, "after", "", "go on after `what` the page before named")
	return c
}

// more says how to go on, on standard error: a table stays a table.
func (a *app) more(next *string, err error) error {
	if err != nil || next == nil || a.json {
		return err
	}
	_, err = fmt.Fprintf(a.errs, "more: --after %s\n", *next)
	return err
}

// with asks the gateway, and prints as JSON or by render.
func with[T any](c *cobra.Command, a *app, ask func(context.Context, *client.Client) (T, error), render func(T) error) error {
	cl, err := a.client()
	if err != nil {
		return err
	}
	defer cl.Close()
	v, err := ask(c.Context(), cl)
	if err != nil {
		return hint(err)
	}
	if a.json {
		return a.show(v)
	}
	return render(v)
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
	case u.TotalCostUSD == nil:
		return text + ", unpriced"
	case *u.TotalCostUSD > 0:
		return fmt.Sprintf("%s, $%.4f", text, *u.TotalCostUSD)
	}
	return text
}

func (a *app) showSession() *cobra.Command {
	var limit int
	var after string
	c := &cobra.Command{Use: "show KEY", Short: "Print a session's transcript", Args: exactly("KEY"), ValidArgsFunction: a.completeSessions,
		RunE: func(c *cobra.Command, args []string) error {
			path := fmt.Sprintf("/v1/sessions/%s/entries?limit=%d&after=%s", url.PathEscape(args[0]), limit, url.QueryEscape(after))
			return fetch(c.Context(), a, path, func(l list[shownEvent]) error {
				for _, e := range l.Items {
					if _, err := fmt.Fprintf(a.out, "%4d %s %s\n", e.Sequence, e.Time.Local().Format(time.DateTime), visible(sentence(e))); err != nil {
						return err
					}
				}
				return a.more(l.Next, nil)
			})
		}}
	return a.jsonFlag(pages(c, &limit, &after, 200))
}

// completeWithin bounds what a Tab may wait for.
const completeWithin = 500 * time.Millisecond

// completeSessions offers the keys of sessions to the shell.
func (a *app) completeSessions(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	cl, err := a.client()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(c.Context(), completeWithin)
	defer cancel()
	l, _ := session.List.Ask(ctx, cl, session.ListIn{Page: spec.Page{Limit: 200}}) // without an answer nothing is offered
	var keys []string
	for _, s := range l.Items {
		keys = append(keys, control.ShortKey(s.Key)+"\t"+cut(s.Name, 40))
	}
	return keys, cobra.ShellCompDirectiveNoFileComp
}
