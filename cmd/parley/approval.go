// Answering what agents ask before they act.

package main

import (
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"parley/cmd/parley/internal/cli"
	"parley/gateway/control/approval"
)

// approvalCommand holds the two answers; what is only read is added to it.
func approvalCommand(a *cli.App) *cobra.Command {
	group := &cobra.Command{Use: "approval", Short: "Answer what agents ask before they act", Args: cobra.NoArgs, RunE: cli.NeedsVerb,
		Long: "Some calls of tools need a person's yes first. ID is a question's id, or its last six characters. The first answer holds."}
	var session bool
	approve := &cobra.Command{Use: "approve ID", Short: "Let a call run, once", Args: cli.Exactly("ID"),
		RunE: func(c *cobra.Command, args []string) error {
			in := approval.DecideIn{ID: args[0], Decision: "once"}
			if session {
				in.Decision = "session"
			}
			return decide(c, a, in)
		}}
	approve.Flags().BoolVar(&session, "session", false, "and what the question says for the rest of the session")
	var reason string
	deny := &cobra.Command{Use: "deny ID", Short: "Refuse a call", Args: cli.Exactly("ID"),
		RunE: func(c *cobra.Command, args []string) error {
			return decide(c, a, approval.DecideIn{ID: args[0], Decision: "deny", Reason: reason})
		}}
	deny.Flags().StringVar(&reason, "reason", "", "`text` that the agent is told")
	group.AddCommand(a.JSONFlag(approve), a.JSONFlag(deny))
	return group
}

func decide(c *cobra.Command, a *cli.App, in approval.DecideIn) error {
	path := "/v1/approvals/" + url.PathEscape(in.ID)
	in.ID = ""
	it, err := cli.Post[approval.Item](c.Context(), a, path, in)
	if err != nil || a.JSON {
		return a.OrShow(it, err)
	}
	how := map[string]string{"once": "approved, once", "session": "approved, for this session", "": "denied"}[it.Grant]
	_, err = fmt.Fprintf(a.Out, "approval %s of %s: %s\n", it.Short, cli.Visible(it.Tool), how)
	return err
}
