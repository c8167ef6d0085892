// Answering what agents ask before they act.

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley/cmd/parley/internal/cli"
	"parley/gateway/client"
)

// approval is a question to people.
type approval struct {
	ID      string          `json:"id"`
	Short   string          `json:"short"`
	State   string          `json:"state"`
	Tool    string          `json:"tool"`
	Text    string          `json:"text"`
	Args    json.RawMessage `json:"args"`
	Cwd     string          `json:"cwd,omitempty"`
	Env     []string        `json:"env"`
	Sandbox string          `json:"sandbox,omitempty"`
	Hash    string          `json:"hash"`
	Domain  string          `json:"domain,omitempty"`
	askedFor
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires_at"`
	Choices []string  `json:"choices"`
	decision
}

// askedFor is where a question comes from.
type askedFor struct {
	Agent         string `json:"agent"`
	Session       string `json:"session"`
	RunID         string `json:"run_id"`
	Requester     string `json:"requester"`
	RequesterName string `json:"requester_name"`
	AskedBy       string `json:"asked_by"`
}

// decision is what it came to; nothing while it is open.
type decision struct {
	Decided       *time.Time `json:"decided_at,omitempty"`
	DecidedBy     string     `json:"decided_by,omitempty"`
	DecidedByName string     `json:"decided_by_name,omitempty"`
	Via           string     `json:"via,omitempty"`
	Grant         string     `json:"grant,omitempty"`
	Reason        string     `json:"reason,omitempty"`
	ExternalRef   string     `json:"external_ref,omitempty"`
}

func approvalCommand(a *cli.App) *cobra.Command {
	group := &cobra.Command{Use: "approval", Short: "Answer what agents ask before they act", Args: cobra.NoArgs, RunE: cli.NeedsVerb,
		Long: "Some calls of tools need a person's yes first. ID is a question's id, or its last six characters. The first answer holds."}
	var state, after string
	var limit int
	ls := &cobra.Command{Use: "list", Short: "List questions, the newest first", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return cli.With(c, a, func(ctx context.Context, cl *client.Client) (l client.List[approval], err error) {
				return l, cl.Get(ctx, client.Query{"state": state}.Page(limit, after).Path("/v1/approvals"), &l)
			}, func(l client.List[approval]) error {
				var rows [][]string
				for _, p := range l.Items {
					rows = append(rows, []string{p.Short, p.State, p.Tool, p.AskedBy, p.Domain, cli.Ago(p.Created),
						cli.Cut(strings.ReplaceAll(p.Text, "\n", " "), 50)})
				}
				return a.More(l.Next, a.Table([]string{"ID", "STATE", "TOOL", "ASKED BY", "DOMAIN", "ASKED", "BEGINS"}, rows))
			})
		}}
	ls.Flags().StringVar(&state, "state", "", "only those in this `state`, such as pending")
	show := &cobra.Command{Use: "show ID", Short: "Show a question whole", Args: cli.Exactly("ID"),
		RunE: func(c *cobra.Command, args []string) error {
			return cli.Fetch(c.Context(), a, "/v1/approvals/"+url.PathEscape(args[0]),
				func(p approval) error { return p.print(a.Out, time.Now()) })
		}}
	var session bool
	approve := &cobra.Command{Use: "approve ID", Short: "Let a call run, once", Args: cli.Exactly("ID"),
		RunE: func(c *cobra.Command, args []string) error {
			say := "once"
			if session {
				say = "session"
			}
			return decide(c.Context(), a, args[0], say, "")
		}}
	approve.Flags().BoolVar(&session, "session", false, "and this tool for the rest of the session; never for commands")
	var reason string
	deny := &cobra.Command{Use: "deny ID", Short: "Refuse a call", Args: cli.Exactly("ID"),
		RunE: func(c *cobra.Command, args []string) error {
			return decide(c.Context(), a, args[0], "deny", reason)
		}}
	deny.Flags().StringVar(&reason, "reason", "", "`text` that the agent is told")
	group.AddCommand(a.JSONFlag(cli.Pages(ls, &limit, &after, 50)), a.JSONFlag(show), a.JSONFlag(approve), a.JSONFlag(deny))
	return group
}

func decide(ctx context.Context, a *cli.App, id, say, reason string) error {
	p, err := cli.Post[approval](ctx, a, "/v1/approvals/"+url.PathEscape(id), map[string]string{"decision": say, "reason": reason})
	if err != nil || a.JSON {
		return a.OrShow(p, err)
	}
	how := map[string]string{"once": "approved, once", "session": "approved, for this session", "": "denied"}[p.Grant]
	_, err = fmt.Fprintf(a.Out, "approval %s of %s: %s\n", p.Short, cli.Visible(p.Tool), how)
	return err
}

// print shows all of a question. Nothing of it is cut, and nothing in it moves the terminal's cursor.
func (p approval) print(w io.Writer, now time.Time) error {
	row := func(name, text string) {
		if text != "" {
			fmt.Fprintf(w, "%-10s %s\n", name, cli.Visible(text))
		}
	}
	row("approval", p.Short+" ("+p.ID+")")
	row("state", p.State)
	row("tool", p.Tool)
	row("domain", p.Domain)
	row("asked by", p.AskedBy)
	row("session", p.Session)
	row("run", p.RunID)
	row("in", p.Cwd)
	row("with", strings.Join(p.Env, " "))
	row("sandbox", p.Sandbox)
	row("hash", p.Hash)
	if p.State == "pending" {
		row("until", fmt.Sprintf("%s (%s)", p.Expires.Local().Format(time.DateTime), p.Expires.Sub(now).Round(time.Second)))
		row("answers", strings.Join(p.Choices, ", "))
	} else {
		row("decided", strings.TrimSpace(p.DecidedByName+" "+p.Grant+" "+p.Via))
		row("reason", p.Reason)
		row("reference", p.ExternalRef)
	}
	_, err := fmt.Fprintf(w, "\n%s\n", cli.VisibleText(p.Text))
	return err
}
