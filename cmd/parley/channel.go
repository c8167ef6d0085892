// Channels: how they are, tests, linking an account, manifests.

package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/mdp/qrterminal/v3"
	"github.com/spf13/cobra"

	"parley/channels/all"
	"parley/cmd/parley/internal/cli"
	"parley/gateway"
	"parley/gateway/client"
	"parley/gateway/control/operator"
)

func channelCommand(a *cli.App) *cobra.Command {
	group := &cobra.Command{Use: "channel", Short: "Show, test and link channels", Args: cobra.NoArgs, RunE: cli.NeedsVerb}
	status := &cobra.Command{Use: "status NAME", Short: "Say how a channel is, and what it needs", Args: cli.Exactly("NAME"),
		RunE: func(c *cobra.Command, args []string) error {
			return cli.With(c, a, func(ctx context.Context, cl *client.Client) (operator.Channel, error) {
				return operator.ShowChannel.Ask(ctx, cl, operator.ByChannel{Name: args[0]})
			}, func(ch operator.Channel) error {
				fmt.Fprintf(a.Out, "%s (%s) is %s since %s\n", cli.Visible(ch.Name), ch.Network, ch.State, cli.Ago(ch.Since))
				for _, line := range [][2]string{{"account", ch.Account}, {"cause", ch.Cause}, {"to do", ch.Hint}} {
					if line[1] != "" {
						fmt.Fprintf(a.Out, "%s: %s\n", line[0], cli.Visible(cli.Hinted(line[1])))
					}
				}
				return nil
			})
		}}
	group.AddCommand(a.JSONFlag(status), a.JSONFlag(channelTest(a)), a.JSONFlag(channelLogin(a)), channelManifest(a))
	return group
}

// channelTest has the running gateway ask the network; exit code 1 says that something needs a person.
func channelTest(a *cli.App) *cobra.Command {
	return &cobra.Command{Use: "test NAME", Short: "Ask a channel's network about account, rights and settings",
		Args: cli.Exactly("NAME"), RunE: func(c *cobra.Command, args []string) error {
			cl, err := a.Client()
			if err != nil {
				return err
			}
			defer cl.Close()
			tested, err := operator.TestChannel.Ask(c.Context(), cl, operator.ByChannel{Name: args[0]})
			if err != nil {
				return cli.Hint(err)
			}
			return diagnose(a, tested.Findings)
		}}
}

// channelLogin shows the codes that the running gateway gets, until one was used.
func channelLogin(a *cli.App) *cobra.Command {
	var phone string
	c := &cobra.Command{Use: "login NAME", Short: "Link a channel to an account of its network", Args: cli.Exactly("NAME"),
		Long: "Link a channel to an account of its network, by a QR code to scan or, with --phone, by a code to type on the phone. " +
			"The running\ngateway does it; interrupting this command gives up.",
		Example: "  parley channel login wa\n  parley channel login wa --phone +4915123456789",
		RunE: func(c *cobra.Command, args []string) error {
			cl, err := a.Client()
			if err != nil {
				return err
			}
			defer cl.Close()
			which := operator.ByChannel{Name: args[0]}
			l, err := operator.LoginChannel.Ask(c.Context(), cl, operator.LoginIn{ByChannel: which, Phone: phone})
			if err != nil {
				return cli.Hint(err)
			}
			l, err = followLogin(c.Context(), a, cl, which, l)
			if err != nil {
				return err
			}
			if a.JSON {
				return a.ShowJSON(l)
			}
			if l.State != "linked" {
				return fmt.Errorf("%s is not linked: %s", args[0], cli.Visible(l.Error))
			}
			_, err = fmt.Fprintf(a.Out, "%s is linked. %s\nHow it is: %s channel status %s\n", args[0], cli.Visible(l.Note),
				cli.Program(), args[0])
			return err
		}}
	c.Flags().StringVar(&phone, "phone", "", "the account's phone `number` with country code: show a code to type instead of one to scan")
	return c
}

// followLogin shows every step until the attempt has ended, and gives it up when this command is interrupted.
func followLogin(ctx context.Context, a *cli.App, cl *client.Client, which operator.ByChannel, l operator.Login) (operator.Login, error) {
	path := "/v1/channels/" + url.PathEscape(which.Name) + "/login?after="
	for {
		showStep(a, l)
		if l.State != "waiting" {
			return l, nil
		}
		var next operator.Login
		if err := cl.Get(ctx, path+strconv.Itoa(l.Step), &next); err != nil {
			if ctx.Err() == nil {
				return l, cli.Hint(err)
			}
			late, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			_, err := operator.CancelLogin.Ask(late, cl, which)
			return l, errors.Join(ctx.Err(), err)
		}
		if next.Step == l.Step && next.State == l.State {
			continue
		}
		l = next
	}
}

// showStep prints a code. A QR code is drawn with half blocks: 70 columns and 36 lines.
func showStep(a *cli.App, l operator.Login) {
	if a.JSON || l.State != "waiting" || l.QR == "" && l.Code == "" {
		return
	}
	fmt.Fprintln(a.Out)
	if l.QR != "" {
		qrterminal.GenerateHalfBlock(l.QR, qrterminal.L, a.Out)
	} else {
		fmt.Fprintf(a.Out, "The code: %s\n", cli.Visible(l.Code))
	}
	fmt.Fprintln(a.Out, cli.Visible(cli.Hinted(l.Note)))
	if ends, err := time.Parse(time.RFC3339, l.Expires); err == nil && l.Code != "" {
		fmt.Fprintf(a.Out, "It holds until %s.\n", ends.Local().Format("15:04:05"))
	}
}

// channelManifest needs no gateway: it prints what to paste at the network's site before there is an account.
func channelManifest(a *cli.App) *cobra.Command {
	var name, url string
	var names bool
	c := &cobra.Command{Use: "manifest NETWORK", Short: "Print the app's manifest for a network that wants one (slack)",
		Args:    cli.Exactly("NETWORK"),
		Example: "  parley channel manifest slack\n  parley channel manifest slack --url https://parley.example/channels/work/events",
		RunE: func(_ *cobra.Command, args []string) error {
			raw, err := gateway.Manifest(all.Factories(), args[0], name, url, names)
			if err == nil {
				_, err = fmt.Fprintf(a.Out, "%s\n", raw)
			}
			return err
		}}
	c.Flags().StringVar(&name, "name", "Parley", "what the app and its bot are called")
	c.Flags().StringVar(&url, "url", "", "where the network posts events; without it the gateway fetches them")
	c.Flags().BoolVar(&names, "names", false, "offer every command under its own name, beside /parley")
	return c
}
