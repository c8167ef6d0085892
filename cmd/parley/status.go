// How the running gateway is, and the version.

package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley/cmd/parley/internal/cli"
)

func statusCommand(a *cli.App) *cobra.Command {
	c := &cobra.Command{Use: "status", Short: "Show how the running gateway is", Args: cobra.NoArgs}
	var check bool
	c.Flags().BoolVar(&check, "check", false, "say nothing; exit code 0 when messages are taken and can be answered")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if check {
			return ready(c.Context(), a)
		}
		return cli.Fetch(c.Context(), a, "/v1/status", func(st cli.GatewayStatus) error {
			fmt.Fprintf(a.Out, "store %s, up %s\n", st.Health, time.Duration(st.Uptime)*time.Second)
			if st.Reason != "" {
				fmt.Fprintf(a.Out, "      %s\n", cli.Visible(st.Reason))
			}
			for _, m := range st.Models {
				state := "ok"
				if m.Down {
					state = "down: " + m.Error
				}
				fmt.Fprintf(a.Out, "model %s (%s): %s\n", cli.Visible(m.Name), cli.Visible(m.Model), cli.Visible(state))
			}
			for _, ch := range st.Channels {
				fmt.Fprintln(a.Out, strings.TrimSpace(fmt.Sprintf("channel %s (%s): %s %s", cli.Visible(ch.Name), ch.Network, ch.State,
					cli.Visible(ch.Cause))))
			}
			if former := st.Former(); former != "" {
				fmt.Fprintf(a.Out, "configuration: %s\n", cli.Visible(former))
			} else if st.Config != nil && len(st.Config.Waits) > 0 {
				fmt.Fprintf(a.Out, "configuration: changes that wait for a restart: %s\n", cli.Visible(strings.Join(st.Config.Waits, ", ")))
			}
			return nil
		})
	}
	return a.JSONFlag(c)
}

// ready fails with the reason when the gateway cannot do its work.
func ready(ctx context.Context, a *cli.App) error {
	cl, err := a.Client()
	if err != nil {
		return err
	}
	defer cl.Close()
	return cli.Hint(cl.Get(ctx, "/readyz", nil))
}

func versionCommand(a *cli.App) *cobra.Command {
	c := &cobra.Command{Use: "version", Short: "Print the version", Args: cobra.NoArgs}
	c.RunE = func(*cobra.Command, []string) error {
		v := struct {
			Version string `json:"version"`
			Go      string `json:"go"`
			OS      string `json:"os"`
			Arch    string `json:"arch"`
			Commit  string `json:"commit,omitempty"`
		}{Version: version, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
		if info, ok := debug.ReadBuildInfo(); ok {
			for _, s := range info.Settings {
				if s.Key == "vcs.revision" {
					v.Commit = s.Value
				}
			}
		}
		if a.JSON {
			return a.ShowJSON(v)
		}
		_, err := fmt.Fprintf(a.Out, "parley %s (%s %s/%s)\n", v.Version, v.Go, v.OS, v.Arch)
		return err
	}
	return a.JSONFlag(c)
}
