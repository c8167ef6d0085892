// What the shell is offered for an argument.

package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"parley/cmd/parley/internal/cli"
	"parley/gateway/client"
	"parley/gateway/control"
	runs "parley/gateway/control/run"
	"parley/gateway/control/session"
	"parley/gateway/spec"
)

// completeWithin bounds what a Tab may wait for.
const completeWithin = 500 * time.Millisecond

// complete offers the shell what the gateway lists for a first argument. Without an answer nothing is offered.
func complete(a *cli.App, list func(context.Context, *client.Client) []string) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		cl, err := a.Client()
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer cl.Close()
		ctx, cancel := context.WithTimeout(c.Context(), completeWithin)
		defer cancel()
		return list(ctx, cl), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeSessions offers the keys of sessions to the shell.
func completeSessions(a *cli.App) cobra.CompletionFunc {
	return complete(a, func(ctx context.Context, cl *client.Client) (keys []string) {
		l, _ := session.List.Ask(ctx, cl, session.ListIn{Page: spec.Page{Limit: 200}})
		for _, s := range l.Items {
			keys = append(keys, control.ShortKey(s.Key)+"\t"+cli.Cut(s.Name, 40))
		}
		return keys
	})
}

// completeRuns offers the ids of runs to the shell.
func completeRuns(a *cli.App) cobra.CompletionFunc {
	return complete(a, func(ctx context.Context, cl *client.Client) (ids []string) {
		l, _ := runs.List.Ask(ctx, cl, runs.ListIn{})
		for _, r := range l.Items {
			ids = append(ids, string(r.ID)+"\t"+cli.Cut(string(r.State)+": "+r.Said, 50))
		}
		return ids
	})
}
