package main

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley/workspace/clip"
)

// letter is an answer that could not be delivered.
type letter struct {
	ID      string    `json:"id"`
	Short   string    `json:"short"`
	State   string    `json:"state"`
	Error   string    `json:"error,omitempty"`
	Room    string    `json:"room"`
	Title   string    `json:"title,omitempty"`
	Kind    string    `json:"kind"`
	RunID   string    `json:"run_id,omitempty"`
	Text    string    `json:"text"`
	Parts   int       `json:"parts"`
	Sent    int       `json:"sent"`
	Tries   int       `json:"tries"`
	Created time.Time `json:"created"`
}

func (a *app) outboundCommand() *cobra.Command {
	group := &cobra.Command{Use: "outbound", Short: "Decide about answers that could not be delivered", Args: cobra.NoArgs, RunE: needsVerb}
	var state string
	ls := &cobra.Command{Use: "list", Short: "List answers that are dead, in doubt (unknown) or too late (parked), the newest first", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return fetch(c.Context(), a, "/v1/outbound?state="+url.QueryEscape(state), func(l list[letter]) error {
				var rows [][]string
				for _, x := range l.Items {
					rows = append(rows, []string{x.Short, x.State, x.Room, ago(x.Created), beginning(x.Text, 40), x.Error})
				}
				if err := a.table([]string{"ID", "STATE", "ROOM", "MADE", "ANSWER", "WHY"}, rows); err != nil || l.Next == nil {
					return err
				}
				_, err := fmt.Fprintln(a.out, "There are more; GET /v1/outbound?after="+*l.Next+" goes on.")
				return err
			})
		}}
	ls.Flags().StringVar(&state, "state", "", "only those in this `state`: dead, unknown or parked")
	act := func(verb, short, done string) *cobra.Command {
		return &cobra.Command{Use: verb + " ID", Short: short, Args: exactly("ID"), RunE: func(c *cobra.Command, args []string) error {
			l, err := post[letter](c.Context(), a, "/v1/outbound/"+url.PathEscape(args[0])+"/"+verb, nil)
			if err != nil || a.json {
				return a.orShow(l, err)
			}
			_, err = fmt.Fprintf(a.out, "answer %s to %s %s\n", l.Short, visible(l.Room), done)
			return err
		}}
	}
	retry := act("retry", "Send an answer after all; one that may have been sent says so", "goes out now")
	drop := act("drop", "End an answer for good", "is dropped")
	group.AddCommand(a.jsonFlag(ls), a.jsonFlag(retry), a.jsonFlag(drop))
	return group
}

// beginning is the first n characters of a text's first line.
func beginning(text string, n int) string {
	text, _, cut := strings.Cut(strings.TrimSpace(text), "\n")
	if cut {
		text += "…"
	}
	return clip.Runes(text, n+1)
}
