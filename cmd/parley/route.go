package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// probe is a made-up message.
type probe struct {
	Channel   string   `json:"channel"`
	Kind      string   `json:"kind,omitempty"`
	Peer      string   `json:"peer,omitempty"`
	Thread    string   `json:"thread,omitempty"`
	User      string   `json:"user,omitempty"`
	Roles     []string `json:"roles,omitempty"`
	Server    string   `json:"server,omitempty"`
	Team      string   `json:"team,omitempty"`
	Text      string   `json:"text,omitempty"`
	Mentioned bool     `json:"mentioned,omitempty"`
}

// explained is what would happen to it.
type explained struct {
	Outcome  string   `json:"outcome"`
	Role     string   `json:"role,omitempty"`
	Rule     string   `json:"rule"`
	Gates    []string `json:"gates"`
	Reason   string   `json:"reason,omitempty"`
	Agent    string   `json:"agent"`
	Session  string   `json:"session"`
	Route    string   `json:"route"`
	Fallback bool     `json:"fallback"`
	Fanout   []string `json:"fanout,omitempty"`
	Rules    []struct {
		N       int    `json:"n"`
		Rule    string `json:"rule"`
		Agent   string `json:"agent"`
		Matched bool   `json:"matched"`
		Why     string `json:"why,omitempty"`
	} `json:"rules"`
}

func (a *app) routeCommand() *cobra.Command {
	group := &cobra.Command{Use: "route", Short: "See which agent answers whom, and why", Args: cobra.NoArgs, RunE: needsVerb}
	var p probe
	explain := &cobra.Command{Use: "explain CHANNEL [PEER]", Short: "Try gate and routes on a made-up message", Args: cobra.RangeArgs(1, 2),
		Example: "  parley route explain tg 123\n  parley route explain tg -- -1001 --kind group --user 123 --mentioned",
		RunE: func(c *cobra.Command, args []string) error {
			p.Channel = args[0]
			if len(args) == 2 {
				p.Peer = args[1]
			}
			x, err := post[explained](c.Context(), a, "/v1/routes/explain", p)
			if err != nil || a.json {
				return a.orShow(x, err)
			}
			return a.explain(x)
		}}
	f := explain.Flags()
	f.StringVar(&p.Kind, "kind", "dm", "`kind` of the chat: dm, group, room")
	f.StringVar(&p.Peer, "peer", "", "the network's `id` of the chat")
	f.StringVar(&p.Thread, "thread", "", "`id` of the thread in it")
	f.StringVar(&p.User, "user", "", "the network's `id` of the sender (default: the peer)")
	f.StringSliceVar(&p.Roles, "roles", nil, "server `roles` of the sender")
	f.StringVar(&p.Server, "server", "", "`id` of the server")
	f.StringVar(&p.Team, "team", "", "`id` of the workspace")
	f.StringVar(&p.Text, "text", "", "what is said")
	f.BoolVar(&p.Mentioned, "mentioned", false, "the bot is mentioned")
	ls := &cobra.Command{Use: "list", Short: "List the configured routes", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error { return a.listRoutes() }}
	group.AddCommand(a.jsonFlag(explain), a.jsonFlag(ls))
	return group
}

func (a *app) explain(x explained) error {
	fmt.Fprintf(a.out, "gate     %s %s (%s)\n", x.Outcome, x.Role, visible(x.Rule))
	if x.Reason != "" {
		fmt.Fprintf(a.out, "reason   %s\n", visible(x.Reason))
	}
	if len(x.Gates) > 0 {
		fmt.Fprintf(a.out, "passed   %s\n", visible(strings.Join(x.Gates, ", ")))
	}
	route := x.Route
	if x.Fallback {
		route += ", the default agent"
	}
	fmt.Fprintf(a.out, "agent    %s (%s)\nsession  %s\n", visible(x.Agent), visible(route), visible(x.Session))
	if len(x.Fanout) > 0 {
		fmt.Fprintf(a.out, "copies   %s\n", visible(strings.Join(x.Fanout, ", ")))
	}
	for _, r := range x.Rules {
		mark := "-"
		if r.Matched {
			mark = "*"
		}
		fmt.Fprintf(a.out, "  %s %d %s -> %s %s\n", mark, r.N, visible(r.Rule), visible(r.Agent), visible(r.Why))
	}
	return nil
}

// listRoutes reads the configuration; no gateway is asked.
func (a *app) listRoutes() error {
	_, c, err := a.load()
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
	l := list[rule]{Items: []rule{}}
	var rows [][]string
	for i, r := range c.Routes {
		var match []string
		for _, f := range [][2]string{{"type", r.Type}, {"channel", r.Channel}, {"server", r.Server}, {"roles", strings.Join(r.Roles, "+")}, {"team", r.Team}, {"kind", r.Kind},
			{"peer", r.Peer}, {"thread", r.Thread}} {
			if f[1] != "" {
				match = append(match, f[0]+"="+f[1])
			}
		}
		x := rule{i + 1, strings.Join(match, " "), r.Agent, r.Session, r.Fanout}
		l.Items = append(l.Items, x)
		rows = append(rows, []string{strconv.Itoa(x.N), x.Match, x.Agent, x.Session, strings.Join(x.Fanout, ",")})
	}
	if a.json {
		return a.show(l)
	}
	return a.table([]string{"N", "MATCHES", "AGENT", "SESSION", "COPIES"}, rows)
}
