package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"parley/channels/all"
	"parley/gateway"
)

// channelManifest needs no gateway: it prints what to paste at the network's site before there is an account.
func (a *app) channelManifest() *cobra.Command {
	var name, url string
	var names bool
	c := &cobra.Command{Use: "manifest NETWORK", Short: "Print the app's manifest for a network that wants one (slack)", Args: exactly("NETWORK"),
		Example: "  parley channel manifest slack\n  parley channel manifest slack --url https://parley.example/channels/work/events",
		RunE: func(_ *cobra.Command, args []string) error {
			raw, err := gateway.Manifest(all.Factories(), args[0], name, url, names)
			if err == nil {
				_, err = fmt.Fprintf(a.out, "%s\n", raw)
			}
			return err
		}}
	c.Flags().StringVar(&name, "name", "Parley", "what the app and its bot are called")
	c.Flags().StringVar(&url, "url", "", "where the network posts events; without it the gateway fetches them")
	c.Flags().BoolVar(&names, "names", false, "offer every command under its own name, beside /parley")
	return c
}
