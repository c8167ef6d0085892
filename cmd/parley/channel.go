package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"parley/gateway/client"
	"parley/gateway/control/operator"
)

func (a *app) channelCommand() *cobra.Command {
	group := &cobra.Command{Use: "channel", Short: "Show, test and link channels", Args: cobra.NoArgs, RunE: needsVerb}
	status := &cobra.Command{Use: "status NAME", Short: "Say how a channel is, and what it needs", Args: exactly("NAME"), RunE: func(c *cobra.Command, args []string) error {
		return with(c, a, func(ctx context.Context, cl *client.Client) (operator.Channel, error) {
			return operator.ShowChannel.Ask(ctx, cl, operator.ByChannel{Name: args[0]})
		}, func(ch operator.Channel) error {
			fmt.Fprintf(a.out, "%s (%s) is %s since %s\n", visible(ch.Name), ch.Network, ch.State, ago(ch.Since))
			for _, line := range [][2]string{{"account", ch.Account}, {"cause", ch.Cause}, {"to do", ch.Hint}} {
				if line[1] != "" {
					fmt.Fprintf(a.out, "%s: %s\n", line[0], visible(line[1]))
				}
			}
			return nil
		})
	}}
	group.AddCommand(a.jsonFlag(status), a.jsonFlag(a.channelTest()), a.jsonFlag(a.channelLogin()), a.channelManifest())
	return group
}

// channelTest has the running gateway ask the network; exit code 1 says that something needs a person.
func (a *app) channelTest() *cobra.Command {
	return &cobra.Command{Use: "test NAME", Short: "Ask a channel's network about account, rights and settings", Args: exactly("NAME"), RunE: func(c *cobra.Command, args []string) error {
		cl, err := a.client()
		if err != nil {
			return err
		}
		defer cl.Close()
		tested, err := operator.TestChannel.Ask(c.Context(), cl, operator.ByChannel{Name: args[0]})
		if err != nil {
			return hint(err)
		}
		return a.diagnose(tested.Findings)
	}}
}
