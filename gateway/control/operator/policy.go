package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"parley/channels"
	"parley/gateway/control"
	"parley/gateway/rights"
	"parley/gateway/spec"
	"parley/tools"
	"parley/workspace"
	"parley/workspace/clip"
)

// PolicyProbe is a made-up call of a tool, or of none in particular. Empty fields are an owner in a local session.
type PolicyProbe struct {
	Agent   workspace.AgentID `path:"id" flag:"agent"`
	Person  string            `json:"person,omitempty" help:"*id* of the person; left out: an owner"`
	Role    string            `json:"role,omitempty" help:"in place of the person's *role*: owner, member, guest, nobody"`
	Channel string            `json:"channel,omitempty" help:"configured *name* of the channel; left out: a local session"`
	Route   string            `json:"route,omitempty" help:"*label* of the rule that chose the agent, as the list of routes shows it"`
	Helper  bool              `json:"helper,omitempty" help:"a helper calls"`
	Tool    string            `json:"tool,omitempty" help:"*name* of the tool; left out: every one, as far as is known before a call"`
	Args    json.RawMessage   `json:"args,omitempty" help:"arguments of the call, as *JSON*; they need a tool"`
}

// PolicyTool is what tool policy says of one tool.
type PolicyTool struct {
	Tool    string            `json:"tool"`
	Group   string            `json:"group,omitempty"`
	Effect  string            `json:"effect,omitempty"` // pure, store, outside: what a crash may repeat
	Outcome string            `json:"outcome"`          // allow, ask, deny
	Domain  string            `json:"domain,omitempty"` // whose owner is asked
	Layer   string            `json:"layer,omitempty"`  // that decided
	Rule    string            `json:"rule,omitempty"`
	Reason  string            `json:"reason,omitempty"`
	Record  []workspace.Layer `json:"record"` // what each layer said, in order
}

// PolicyExplained is a dry run of tool policy.
type PolicyExplained struct {
	Agent   string       `json:"agent"`
	Person  string       `json:"person,omitempty"`
	Role    string       `json:"role"`
	Channel string       `json:"channel,omitempty"`
	Network string       `json:"network,omitempty"`
	Route   string       `json:"route,omitempty"`
	Helper  bool         `json:"helper,omitempty"`
	Layers  []string     `json:"layers"` // in the order in which they judge
	Tools   []PolicyTool `json:"tools"`
}

// ExplainPolicy says what tool policy would say. Nothing is run, asked or stored.
var ExplainPolicy = control.Verb[*Operator, PolicyProbe, PolicyExplained]{
	Name: "policy.explain", Help: "Say what tool policy would do with a call", Rights: rights.Owners,
	Long: "Say what tool policy would say of each tool of AGENT, or layer by layer of one call of TOOL. Nothing is run, asked or stored.",
	HTTP: "POST /v1/agents/{id}/policy/explain", Group: "agents", Unkept: true, CLI: "agent policy explain <agent> [tool]",
	Do: func(_ context.Context, c *Operator, _ control.Call, p PolicyProbe) (PolicyExplained, error) {
		agent, ok := c.Snapshot().Agents[p.Agent]
		if !ok {
			return PolicyExplained{}, workspace.Say(workspace.ErrNotFound, "There is no agent %q.", clip.Runes(string(p.Agent), 80))
		}
		x := PolicyExplained{Agent: string(p.Agent), Person: p.Person, Role: p.Role, Channel: p.Channel, Route: p.Route,
			Helper: p.Helper, Layers: tools.Layers(), Tools: []PolicyTool{}}
		s, err := c.subject(p, &x)
		if err != nil {
			return PolicyExplained{}, err
		}
		if p.Tool != "" {
			if len(p.Args) > 0 && !json.Valid(p.Args) {
				return PolicyExplained{}, workspace.Say(workspace.ErrInvalid, "The arguments are not JSON.")
			}
			tool := tools.Spec{Name: p.Tool}
			if t, ok := agent.Tools.Lookup(p.Tool); ok {
				tool = t.Spec()
			}
			x.Tools = append(x.Tools, policyTool(tool, agent.Tools.Decide(s, p.Tool, p.Args)))
			return x, nil
		}
		for _, j := range agent.Tools.All(s) {
			x.Tools = append(x.Tools, policyTool(j.Spec, j.Verdict))
		}
		return x, nil
	},
	Show: func(p PolicyProbe, x PolicyExplained) spec.Shown { return x.shown(p.Tool != "") },
}

// shown is what policy says of each tool in a line, or whole of one.
func (x PolicyExplained) shown(whole bool) spec.Shown {
	who, where := x.Role, "a local session"
	if x.Person != "" {
		who = x.Person + ", " + x.Role
	}
	if x.Channel != "" {
		where = "channel " + x.Channel
	}
	if x.Route != "" {
		where += ", route " + x.Route
	}
	if x.Helper {
		where += ", a helper"
	}
	s := spec.Shown{Line: fmt.Sprintf("agent %s for %s on %s", x.Agent, who, where)}
	if !whole {
		s.Heads = []string{"TOOL", "OUTCOME", "LAYER", "RULE", "REASON"}
		for _, t := range x.Tools {
			s.Rows = append(s.Rows, []any{t.Tool, t.Outcome, t.Layer, t.Rule, t.Reason})
		}
		return s
	}
	var lines []string
	for _, t := range x.Tools {
		outcome := t.Outcome
		if t.Domain != "" {
			outcome += ", domain " + t.Domain
		}
		lines = append(lines, t.Tool+": "+outcome)
		for _, l := range t.Record {
			lines = append(lines, fmt.Sprintf("  %-4s  %-8s  %s", l.Outcome, l.Layer, strings.TrimSpace(l.Rule+"  "+l.Reason)))
		}
	}
	s.Text = strings.Join(lines, "\n")
	return s
}

// subject is whom policy judges, as far as the probe says.
func (c *Operator) subject(p PolicyProbe, x *PolicyExplained) (tools.Subject, error) {
	s := tools.Subject{Agent: p.Agent, Channel: p.Channel, Route: p.Route}
	if p.Helper {
		s.Depth = 1
	}
	if p.Person != "" {
		h, err := c.Store.Human(workspace.PersonID(p.Person))
		if err != nil {
			return s, workspace.Say(err, "There is nobody with the id %q.", clip.Runes(p.Person, 80))
		}
		if x.Role == "" {
			x.Role = string(h.Role)
		}
	}
	if x.Role == "" {
		x.Role = string(workspace.Owner)
	}
	if !slices.Contains([]string{"owner", "member", "guest", "nobody"}, x.Role) {
		return s, workspace.Say(workspace.ErrInvalid, "There is no role %q. Roles are owner, member, guest and nobody.",
			clip.Runes(x.Role, 40))
	}
	s.Actor = workspace.Actor{Person: workspace.PersonID(p.Person), Role: workspace.Role(x.Role)}
	if x.Role == "nobody" {
		s.Actor.Role = workspace.Nobody
	}
	if p.Channel != "" {
		all := c.Channels.Views()
		i := slices.IndexFunc(all, func(ch Channel) bool { return ch.Name == p.Channel })
		if i < 0 && !c.Channels.IsLocal(channels.Network(p.Channel)) {
			return s, workspace.Say(workspace.ErrNotFound, "There is no channel %q.", clip.Runes(p.Channel, 80))
		}
		if i >= 0 {
			x.Network = all[i].Network
		}
		s.Network = x.Network
	}
	if p.Route != "" && !slices.ContainsFunc(c.routes(), func(r RouteRow) bool { return r.Rule == p.Route }) {
		return s, workspace.Say(workspace.ErrNotFound, "There is no route %q.", clip.Runes(p.Route, 80))
	}
	return s, nil
}

func policyTool(tool tools.Spec, v tools.Verdict) PolicyTool {
	d := v.Decision()
	return PolicyTool{Tool: clip.Runes(tool.Name, 80), Group: tool.Group, Effect: string(tool.Effect), Outcome: control.PolicyOutcome(*d),
		Domain: v.Domain, Layer: v.Layer, Rule: v.Rule, Reason: v.Reason, Record: append([]workspace.Layer{}, v.Record...)}
}
