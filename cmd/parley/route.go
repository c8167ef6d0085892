// The configured routes.

package main

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"parley/cmd/parley/internal/cli"
)

func routeCommand(a *cli.App) *cobra.Command {
	group := &cobra.Command{Use: "route", Short: "See which agent answers whom, and why", Args: cobra.NoArgs, RunE: cli.NeedsVerb}
	group.AddCommand(a.JSONFlag(&cobra.Command{Use: "list", Short: "List the configured routes", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return listRoutes(a) }}))
	return group
}

// listRoutes reads the configuration; no gateway is asked.
func listRoutes(a *cli.App) error {
	_, c, err := a.Load()
	if err != nil {
		return err
	}
	type rule struct {
		N       int      `json:"n"`
		Match   string   `json:"match"`
		Agent   string   `json:"agent"`
		Session string   `json:"session,omitempty"`
		Fanout  []string `json:"fanout,omitempty"`
	}
	l := cli.List[rule]{Items: []rule{}}
	var rows [][]string
	for i, r := range c.Routes {
		var match []string
		for _, f := range [][2]string{{"type", r.Type}, {"channel", r.Channel}, {"server", r.Server},
			{"roles", strings.Join(r.Roles, "+")}, {"team", r.Team}, {"kind", r.Kind},
			{"peer", r.Peer}, {"thread", r.Thread}} {
			if f[1] != "" {
				match = append(match, f[0]+"="+f[1])
			}
		}
		x := rule{i + 1, strings.Join(match, " "), r.Agent, r.Session, r.Fanout}
		l.Items = append(l.Items, x)
		rows = append(rows, []string{strconv.Itoa(x.N), x.Match, x.Agent, x.Session, strings.Join(x.Fanout, ",")})
	}
	if a.JSON {
		return a.ShowJSON(l)
	}
	return a.Table([]string{"N", "MATCHES", "AGENT", "SESSION", "COPIES"}, rows)
}
