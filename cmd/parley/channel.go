package main

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"parley/gateway"
)

func (a *app) channelCommand() *cobra.Command {
	group := &cobra.Command{Use: "channel", Short: "Show, test and link channels", Args: cobra.NoArgs, RunE: needsVerb}
	ls := &cobra.Command{Use: "list", Short: "List channels with their state", Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error {
		return fetch(c.Context(), a, "/v1/channels", func(l list[shownChannel]) error {
			var rows [][]string
			for _, ch := range l.Items {
				rows = append(rows, []string{ch.Name, ch.Type, ch.State, ago(ch.Since), strings.TrimSpace(ch.Cause + " " + ch.Hint)})
			}
			return a.table([]string{"NAME", "TYPE", "STATE", "SINCE", "CAUSE"}, rows)
		})
	}}
	status := &cobra.Command{Use: "status NAME", Short: "Say how a channel is, and what it needs", Args: exactly("NAME"), RunE: func(c *cobra.Command, args []string) error {
		return fetch(c.Context(), a, "/v1/channels/"+url.PathEscape(args[0]), func(ch shownChannel) error {
			fmt.Fprintf(a.out, "%s (%s) is %s since %s\n", visible(ch.Name), ch.Type, ch.State, ago(ch.Since))
			for _, line := range [][2]string{{"account", ch.Account}, {"cause", ch.Cause}, {"to do", ch.Hint}} {
				if line[1] != "" {
					fmt.Fprintf(a.out, "%s: %s\n", line[0], visible(line[1]))
				}
			}
			return nil
		})
	}}
	group.AddCommand(a.jsonFlag(ls), a.jsonFlag(status), a.jsonFlag(a.channelTest()), a.jsonFlag(a.channelLogin()), a.jsonFlag(a.channelLogout()), a.channelManifest())
	return group
}

// channelTest has the running gateway ask the network; exit code 1 says that something needs a person.
func (a *app) channelTest() *cobra.Command {
	return &cobra.Command{Use: "test NAME", Short: "Ask a channel's network about account, rights and settings", Args: exactly("NAME"), RunE: func(c *cobra.Command, args []string) error {
		tested, err := post[struct {
			Findings []gateway.Finding `json:"findings"`
		}](c.Context(), a, "/v1/channels/"+url.PathEscape(args[0])+"/test", nil)
		if err != nil {
			return err
		}
		return a.diagnose(tested.Findings)
	}}
}
