package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"
)

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

func (a *app) policyCommand() *cobra.Command {
	group := &cobra.Command{Use: "policy", Short: "See what an agent's tools may do for whom", Args: cobra.NoArgs, RunE: needsVerb}
	var p policyProbe
	var line, args string
	explain := &cobra.Command{Use: "explain AGENT [TOOL]", Short: "Try tool policy on a made-up call", Args: cobra.RangeArgs(1, 2),
		Long:    "Say what tool policy would say of each tool of AGENT, or layer by layer of one call of TOOL. Nothing is run, asked or stored.",
		Example: "  parley agent policy explain assistant --role guest --channel tg\n  parley agent policy explain assistant exec --person ana --command \"git status\"",
		RunE: func(c *cobra.Command, names []string) error {
			if len(names) == 2 {
				p.Tool = names[1]
			}
			if err := p.arguments(line, args); err != nil {
				return &misuseError{err}
			}
			x, err := post[policyExplained](c.Context(), a, "/v1/agents/"+url.PathEscape(names[0])+"/policy/explain", p)
			if err != nil || a.json {
				return a.orShow(x, err)
			}
			return a.explainPolicy(x, p.Tool != "")
		}}
	f := explain.Flags()
	f.StringVar(&p.Person, "person", "", "for this person, by `id`")
	f.StringVar(&p.Role, "role", "", "for this `role`: owner, member, guest, nobody (default: the person's, else owner)")
	f.StringVar(&p.Channel, "channel", "", "on this channel, by `name` (default: a local session)")
	f.StringVar(&p.Route, "route", "", "where this `rule` of routes chose the agent, such as peer:tg/123")
	f.BoolVar(&p.Helper, "helper", false, "for a helper of the agent")
	f.StringVar(&args, "args", "", "arguments of the call, as `JSON`")
	f.StringVar(&line, "command", "", "shell `line` for exec, in place of --args")
	group.AddCommand(a.jsonFlag(explain))
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
		return errors.New("--args is no JSON")
	case args != "":
		p.Args = json.RawMessage(args)
	}
	return nil
}

func (a *app) explainPolicy(x policyExplained, whole bool) error {
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
	fmt.Fprintf(a.out, "agent %s for %s on %s\n", visible(x.Agent), visible(who), visible(where))
	if !whole {
		var rows [][]string
		for _, t := range x.Tools {
			rows = append(rows, []string{t.Tool, t.Outcome, t.Layer, t.Rule, t.Reason})
		}
		return a.table([]string{"TOOL", "OUTCOME", "LAYER", "RULE", "REASON"}, rows)
	}
	for _, t := range x.Tools {
		outcome := t.Outcome
		if t.Domain != "" {
			outcome += ", domain " + t.Domain
		}
		fmt.Fprintf(a.out, "%s: %s\n", visible(t.Tool), visible(outcome))
		for _, l := range t.Record {
			fmt.Fprintf(a.out, "  %-4s  %-8s  %s\n", l.Outcome, visible(l.Layer), visible(strings.TrimSpace(l.Rule+"  "+l.Reason)))
		}
	}
	return nil
}
