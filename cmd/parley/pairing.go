package main

import (
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/cobra"
)

// pairing is a stranger's request.
type pairing struct {
	ID        string    `json:"id"`
	Short     string    `json:"short"`
	Channel   string    `json:"channel"`
	Type      string    `json:"type"`
	User      string    `json:"user"`
	Name      string    `json:"name,omitempty"`
	AskedBy   string    `json:"asked_by"`
	State     string    `json:"state"`
	Requested time.Time `json:"requested"`
	Person    string    `json:"person,omitempty"`
	Role      string    `json:"role,omitempty"`
}

func (a *app) pairingCommand() *cobra.Command {
	group := &cobra.Command{Use: "pairing", Short: "Decide who may speak in private chats", Args: cobra.NoArgs, RunE: needsVerb}
	ls := &cobra.Command{Use: "list", Short: "List requests, the newest first", Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error {
		return fetch(c.Context(), a, "/v1/pairings", func(l list[pairing]) error {
			var rows [][]string
			for _, p := range l.Items {
				rows = append(rows, []string{p.Short, p.Channel, p.AskedBy, p.State, ago(p.Requested)})
			}
			return a.table([]string{"ID", "CHANNEL", "ASKED BY", "STATE", "ASKED"}, rows)
		})
	}}
	var as string
	approve := &cobra.Command{Use: "approve CODE", Short: "Let the sender of a code, or of a request's id, speak", Args: exactly("CODE"), RunE: func(c *cobra.Command, args []string) error {
		p, err := post[pairing](c.Context(), a, "/v1/pairings/"+url.PathEscape(args[0])+"/approve", map[string]string{"as": as})
		if err != nil || a.json {
			return a.orShow(p, err)
		}
		_, err = fmt.Fprintf(a.out, "%s may speak on %s as %s\n", visible(p.AskedBy), visible(p.Channel), p.Role)
		return err
	}}
	approve.Flags().StringVar(&as, "as", "guest", "`role`: guest, member or owner")
	deny := &cobra.Command{Use: "deny ID", Short: "End a request; its sender hears nothing", Args: exactly("ID"), RunE: func(c *cobra.Command, args []string) error {
		p, err := post[pairing](c.Context(), a, "/v1/pairings/"+url.PathEscape(args[0])+"/deny", nil)
		if err != nil || a.json {
			return a.orShow(p, err)
		}
		_, err = fmt.Fprintf(a.out, "%s is denied\n", visible(p.AskedBy))
		return err
	}}
	group.AddCommand(a.jsonFlag(ls), a.jsonFlag(approve), a.jsonFlag(deny))
	return group
}

// orShow prints a value as JSON, or hands on the error.
func (a *app) orShow(v any, err error) error {
	if err != nil {
		return err
	}
	return a.show(v)
}
