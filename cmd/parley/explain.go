// Why: routes and tool policy, tried on what is made up.

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"parley/cmd/parley/internal/cli"
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

func routeCommand(a *cli.App) *cobra.Command {
	group := &cobra.Command{Use: "route", Short: "See which agent answers whom, and why", Args: cobra.NoArgs, RunE: cli.NeedsVerb}
	var p probe
	explain := &cobra.Command{Use: "explain CHANNEL [PEER]", Short: "Try gate and routes on a made-up message", Args: cobra.RangeArgs(1, 2),
		Example: "  parley route explain tg 123\n  parley route explain tg -- -1001 --kind group --user 123 --mentioned",
		RunE: func(c *cobra.Command, args []string) error {
			p.Channel = args[0]
			if len(args) == 2 {
				p.Peer = args[1]
			}
			x, err := cli.Post[explained](c.Context(), a, "/v1/routes/explain", p)
			if err != nil || a.JSON {
				return a.OrShow(x, err)
			}
			return printRoute(a, x)
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
	ls := &cobra.Command{Use: "list", Short: "List the configured routes", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return listRoutes(a) }}
	group.AddCommand(a.JSONFlag(explain), a.JSONFlag(ls))
	return group
}

func printRoute(a *cli.App, x explained) error {
	fmt.Fprintf(a.Out, "gate     %s %s (%s)\n", x.Outcome, x.Role, cli.Visible(x.Rule))
	if x.Reason != "" {
		fmt.Fprintf(a.Out, "reason   %s\n", cli.Visible(x.Reason))
	}
	if len(x.Gates) > 0 {
		fmt.Fprintf(a.Out, "passed   %s\n", cli.Visible(strings.Join(x.Gates, ", ")))
	}
	route := x.Route
	if x.Fallback {
		route += ", the default agent"
	}
	fmt.Fprintf(a.Out, "agent    %s (%s)\nsession  %s\n", cli.Visible(x.Agent), cli.Visible(route), cli.Visible(x.Session))
	if len(x.Fanout) > 0 {
		fmt.Fprintf(a.Out, "copies   %s\n", cli.Visible(strings.Join(x.Fanout, ", ")))
	}
	for _, r := range x.Rules {
		mark := "-"
		if r.Matched {
			mark = "*"
		}
		fmt.Fprintf(a.Out, "  %s %d %s -> %s %s\n", mark, r.N, cli.Visible(r.Rule), cli.Visible(r.Agent), cli.Visible(r.Why))
	}
	return nil
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

// policyProbe is a made-up call of a tool.
type policyProbe struct {
	Person  string          `json:"person,omitempty"`
	Role    string          `json:"role,omitempty"`
	Channel string          `json:"channel,omitempty"`
	Route   string          `json:"route,omitempty"`
	Helper  bool            `json:"helper,omitempty"`
	Tool    string          `json:"tool,omitempty"`
	Args    json.RawMessage `json:"args,omitempty"`
}

// policyExplained is what policy would say.
type policyExplained struct {
	Agent   string   `json:"agent"`
	Person  string   `json:"person,omitempty"`
	Role    string   `json:"role"`
	Channel string   `json:"channel,omitempty"`
	Network string   `json:"network,omitempty"`
	Route   string   `json:"route,omitempty"`
	Helper  bool     `json:"helper,omitempty"`
	Layers  []string `json:"layers"`
	Tools   []struct {
		Tool    string `json:"tool"`
		Group   string `json:"group,omitempty"`
		Effect  string `json:"effect,omitempty"`
		Outcome string `json:"outcome"`
		Domain  string `json:"domain,omitempty"`
		Layer   string `json:"layer,omitempty"`
		Rule    string `json:"rule,omitempty"`
		Reason  string `json:"reason,omitempty"`
		Record  []struct {
			Layer   string `json:"layer"`
			Rule    string `json:"rule"`
			Outcome string `json:"outcome"`
			Reason  string `json:"reason,omitempty"`
		} `json:"record"`
	} `json:"tools"`
}

func policyCommand(a *cli.App) *cobra.Command {
	group := &cobra.Command{Use: "policy", Short: "See what an agent's tools may do for whom", Args: cobra.NoArgs, RunE: cli.NeedsVerb}
	var p policyProbe
	var line, args string
	explain := &cobra.Command{Use: "explain AGENT [TOOL]", Short: "Try tool policy on a made-up call", Args: cobra.RangeArgs(1, 2),
		Long: "Say what tool policy would say of each tool of AGENT, or layer by layer of one call of TOOL. Nothing is run, " +
			"asked or stored.",
		Example: "  parley agent policy explain assistant --role guest --channel tg\n" +
			"  parley agent policy explain assistant exec --person ana --command \"git status\"",
		RunE: func(c *cobra.Command, names []string) error {
			if len(names) == 2 {
				p.Tool = names[1]
			}
			if err := p.arguments(line, args); err != nil {
				return cli.Misuse(err)
			}
			x, err := cli.Post[policyExplained](c.Context(), a, "/v1/agents/"+url.PathEscape(names[0])+"/policy/explain", p)
			if err != nil || a.JSON {
				return a.OrShow(x, err)
			}
			return explainPolicy(a, x, p.Tool != "")
		}}
	f := explain.Flags()
	f.StringVar(&p.Person, "person", "", "for this person, by `id`")
	f.StringVar(&p.Role, "role", "", "for this `role`: owner, member, guest, nobody (default: the person's, else owner)")
	f.StringVar(&p.Channel, "channel", "", "on this channel, by `name` (default: a local session)")
	f.StringVar(&p.Route, "route", "", "where this `rule` of routes chose the agent, such as peer:tg/123")
	f.BoolVar(&p.Helper, "helper", false, "for a helper of the agent")
	f.StringVar(&args, "args", "", "arguments of the call, as `JSON`")
	f.StringVar(&line, "command", "", "shell `line` for exec, in place of --args")
	group.AddCommand(a.JSONFlag(explain))
	return group
}

// arguments are those of the made-up call.
func (p *policyProbe) arguments(line, args string) error {
	switch {
	case line != "" && (args != "" || p.Tool != "" && p.Tool != "exec"):
		return errors.New("--command is for exec, and in place of --args")
	case line != "":
		text, err := json.Marshal(map[string]string{"command": line})
		p.Tool, p.Args = "exec", text
		return err
	case args != "" && p.Tool == "":
		return errors.New("--args needs a TOOL")
	case args != "" && !json.Valid([]byte(args)):
		return errors.New("--args is not JSON")
	case args != "":
		p.Args = json.RawMessage(args)
	}
	return nil
}

func explainPolicy(a *cli.App, x policyExplained, whole bool) error {
	who := x.Role
	if x.Person != "" {
		who = x.Person + ", " + x.Role
	}
	where := "a local session"
	if x.Channel != "" {
		where = "channel " + x.Channel
	}
	if x.Route != "" {
		where += ", route " + x.Route
	}
	if x.Helper {
		where += ", a helper"
	}
	fmt.Fprintf(a.Out, "agent %s for %s on %s\n", cli.Visible(x.Agent), cli.Visible(who), cli.Visible(where))
	if !whole {
		var rows [][]string
		for _, t := range x.Tools {
			rows = append(rows, []string{t.Tool, t.Outcome, t.Layer, t.Rule, t.Reason})
		}
		return a.Table([]string{"TOOL", "OUTCOME", "LAYER", "RULE", "REASON"}, rows)
	}
	for _, t := range x.Tools {
		outcome := t.Outcome
		if t.Domain != "" {
			outcome += ", domain " + t.Domain
		}
		fmt.Fprintf(a.Out, "%s: %s\n", cli.Visible(t.Tool), cli.Visible(outcome))
		for _, l := range t.Record {
			fmt.Fprintf(a.Out, "  %-4s  %-8s  %s\n", l.Outcome, cli.Visible(l.Layer), cli.Visible(strings.TrimSpace(l.Rule+"  "+l.Reason)))
		}
	}
	return nil
}
