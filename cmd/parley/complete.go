// What the shell is offered for an argument.

package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"parley/cmd/parley/internal/cli"
	"parley/gateway/control"
	runs "parley/gateway/control/run"
	"parley/gateway/control/session"
	"parley/gateway/spec"
)

// completeWithin bounds what a Tab may wait for.
const completeWithin = 500 * time.Millisecond

// completeSessions offers the keys of sessions to the shell.
func completeSessions(a *cli.App) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		cl, err := a.Client()
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer cl.Close()
		ctx, cancel := context.WithTimeout(c.Context(), completeWithin)
		defer cancel()
		l, _ := session.List.Ask(ctx, cl, session.ListIn{Page: spec.Page{Limit: 200}}) // without an answer nothing is offered
		var keys []string
		for _, s := range l.Items {
			keys = append(keys, control.ShortKey(s.Key)+"\t"+cli.Cut(s.Name, 40))
		}
		return keys, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeRuns offers the ids of runs to the shell.
func completeRuns(a *cli.App) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		cl, err := a.Client()
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer cl.Close()
		ctx, cancel := context.WithTimeout(c.Context(), completeWithin)
		defer cancel()
		l, _ := runs.List.Ask(ctx, cl, runs.ListIn{}) // without an answer nothing is offered
		var ids []string
		for _, r := range l.Items {
			ids = append(ids, string(r.ID)+"\t"+cli.Cut(string(r.State)+": "+r.Said, 50))
		}
		return ids, cobra.ShellCompDirectiveNoFileComp
	}
}
