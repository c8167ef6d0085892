// The link that signs a browser in.

package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"parley/cmd/parley/internal/cli"
)

// signIn is a way in for one browser.
type signIn struct {
	Code    string    `json:"code"`
	Path    string    `json:"path"`
	URL     string    `json:"url"`
	Public  string    `json:"public_url,omitempty"`
	Expires time.Time `json:"expires"`
}

func webchatCommand(a *cli.App) *cobra.Command {
	c := &cobra.Command{Use: "webchat", Short: "Print a link that signs a browser in",
		Long: "Print a link that signs one browser in as the owner. Its code works once, within ten minutes, here or at " +
			"gateway.public_url. A sign-in lasts 30 days; a changed token ends all of them.",
		Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error {
			cl, err := a.Client()
			if err != nil {
				return err
			}
			defer cl.Close()
			var s signIn
			if err := cl.Post(c.Context(), "/v1/sign-in/codes", struct{}{}, &s); err != nil {
				return cli.Hint(err)
			}
			s.URL = cl.Base() + s.Path
			if a.JSON {
				return a.ShowJSON(s)
			}
			fmt.Fprint(a.Out, cli.SignInLinks(s.URL, s.Public))
			return nil
		}}
	return a.JSONFlag(c)
}
