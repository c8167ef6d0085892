package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley/gateway/client"
	"parley/gateway/control/operator"
)

// list is a page of what the API lists.
type list[T any] struct {
	Items []T     `json:"items"`
	Next  *string `json:"next"`
}

// fetch reads path and prints it: as JSON, or by render.
func fetch[T any](ctx context.Context, a *app, path string, render func(T) error) error {
	cl, err := a.client()
	if err != nil {
		return err
	}
	defer cl.Close()
	var v T
	if err := cl.Get(ctx, path, &v); err != nil {
		return hint(err)
	}
	if a.json {
		return a.show(v)
	}
	return render(v)
}

// post sends body to path and reads the answer.
func post[T any](ctx context.Context, a *app, path string, body any) (v T, err error) {
	cl, err := a.client()
	if err != nil {
		return v, err
	}
	defer cl.Close()
	return v, hint(cl.Post(ctx, path, body, &v))
}

// hint adds what to do to what a gateway, or the lack of one, says.
func hint(err error) error {
	var p *client.Problem
	switch {
	case errors.Is(err, client.ErrUnreachable):
		return fmt.Errorf("%w; start it with: parley gateway", err)
	case errors.As(err, &p) && p.Status == http.StatusUnauthorized:
		return errors.New("the gateway that answers there does not take this token, so it is probably another one, with another data directory: " +
			"name yours with --data-dir or --config, or have yours listen elsewhere (gateway.listen, or PARLEY_GATEWAY_LISTEN)")
	}
	return err
}

// shownStatus is what /v1/status tells.
type shownStatus struct {
	Agent   struct{ ID, Name string } `json:"agent"`
	Session string                    `json:"session"`
	Entries int                       `json:"entries"`
	Running bool                      `json:"running"`
	Waiting int                       `json:"waiting"`
	Health  string                    `json:"health"`
	Reason  string                    `json:"reason"`
	Uptime  int64                     `json:"uptime_seconds"`
	Models  []struct {
		Name    string `json:"name"`
		Model   string `json:"model"`
		Offline bool   `json:"offline"`
		Down    bool   `json:"down"`
		Error   string `json:"last_error"`
	} `json:"models"`
	Channels []operator.Channel `json:"channels"`
	Config   *struct {
		Since   time.Time `json:"since"`
		Problem string    `json:"problem"`
		Waits   []string  `json:"waits"`
	} `json:"config"`
}

// former says that an error in the file keeps an earlier configuration in force; empty: what the file holds is.
func (s shownStatus) former() string {
	if s.Config == nil || s.Config.Problem == "" {
		return ""
	}
	return fmt.Sprintf("the former configuration is in force since %s: %s", s.Config.Since.Local().Format(time.DateTime), s.Config.Problem)
}

func status(ctx context.Context, cl *client.Client, session string) (st shownStatus, err error) {
	path := "/v1/status"
	if session != "" {
		path += "?session=" + url.QueryEscape(session)
	}
	return st, cl.Get(ctx, path, &st)
}

func (a *app) statusCommand() *cobra.Command {
	c := &cobra.Command{Use: "status", Short: "Show how the running gateway is", Args: cobra.NoArgs}
	var check bool
	c.Flags().BoolVar(&check, "check", false, "say nothing; exit code 0 when messages are taken and can be answered")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if check {
			return a.ready(c.Context())
		}
		return fetch(c.Context(), a, "/v1/status", func(st shownStatus) error {
			fmt.Fprintf(a.out, "store %s, up %s\n", st.Health, time.Duration(st.Uptime)*time.Second)
			if st.Reason != "" {
				fmt.Fprintf(a.out, "      %s\n", visible(st.Reason))
			}
			for _, m := range st.Models {
				state := "ok"
				if m.Down {
					state = "down: " + m.Error
				}
				fmt.Fprintf(a.out, "model %s (%s): %s\n", visible(m.Name), visible(m.Model), visible(state))
			}
			for _, ch := range st.Channels {
				fmt.Fprintln(a.out, strings.TrimSpace(fmt.Sprintf("channel %s (%s): %s %s", visible(ch.Name), ch.Network, ch.State, visible(ch.Cause))))
			}
			if former := st.former(); former != "" {
				fmt.Fprintf(a.out, "configuration: %s\n", visible(former))
			} else if st.Config != nil && len(st.Config.Waits) > 0 {
				fmt.Fprintf(a.out, "configuration: changes that wait for a restart: %s\n", visible(strings.Join(st.Config.Waits, ", ")))
			}
			return nil
		})
	}
	return a.jsonFlag(c)
}

// ready fails with the reason when the gateway cannot do its work.
func (a *app) ready(ctx context.Context) error {
	cl, err := a.client()
	if err != nil {
		return err
	}
	defer cl.Close()
	return hint(cl.Get(ctx, "/readyz", nil))
}

func (a *app) agentCommand() *cobra.Command {
	group := &cobra.Command{Use: "agent", Short: "Show agents", Args: cobra.NoArgs, RunE: needsVerb}
	group.AddCommand(a.policyCommand())
	return group
}

// needsVerb is what a group of commands says by itself.
func needsVerb(c *cobra.Command, _ []string) error {
	if err := c.Help(); err != nil {
		return err
	}
	return &misuseError{fmt.Errorf("%s needs one of these commands", c.CommandPath())}
}

func (a *app) versionCommand() *cobra.Command {
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
		if a.json {
			return a.show(v)
		}
		_, err := fmt.Fprintf(a.out, "parley %s (%s %s/%s)\n", v.Version, v.Go, v.OS, v.Arch)
		return err
	}
	return a.jsonFlag(c)
}
