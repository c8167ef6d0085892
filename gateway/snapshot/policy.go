package snapshot

import (
	"parley/configs"
	"parley/routes"
	"parley/tools"
	"parley/tools/builtin"
	"parley/workspace"
	"parley/workspace/rule"
)

// Granted finds the rules for commands that people gave a session (tools.PolicyConfig).
type Granted = func(s workspace.SessionID, tool string, agent workspace.AgentID, who workspace.PersonID) []rule.Granted

// policy is what a configuration says of tools; network says that commands reach hosts, granted what people gave sessions.
func policy(c *configs.Config, table *routes.Table, network bool, granted Granted) tools.PolicyConfig {
	p := tools.PolicyConfig{Global: rules(c.Tools), Agents: map[workspace.AgentID]tools.AgentPolicy{}, Channels: map[string]tools.Rules{},
		Routes: map[string]tools.Rules{}, Resolve: builtin.FindProgram, Network: network,
		Granted: granted, Stamp: builtin.StampProgram}
	for _, a := range c.Agents {
		p.Agents[workspace.AgentID(a.ID)] = agentPolicy(a)
	}
	for _, ch := range c.Channels {
		p.Channels[ch.Name] = rules(ch.Tools)
	}
	for _, r := range table.List() {
		if rules := rules(c.Routes[r.N-1].Tools); rules.Allow != nil || rules.Deny != nil {
			p.Routes[r.Label], p.Routes[r.Inherited] = rules, rules
		}
	}
	for _, d := range c.Domains {
		p.Domains = append(p.Domains, tools.Domain{Name: d.Name, Tools: d.Match.Tools, Programs: d.Match.Programs, Hosts: d.Match.Hosts,
			MCP: d.Match.MCP, Disabled: d.Handler == "deny"})
	}
	return p
}

// rules is a layer whose empty list of allowed tools does not narrow.
func rules(f configs.ToolFilter) tools.Rules {
	r := tools.Rules{Deny: f.Deny}
	if len(f.Allow) > 0 {
		r.Allow = f.Allow
	}
	return r
}

func agentPolicy(a configs.Agent) tools.AgentPolicy {
	p := tools.AgentPolicy{Rules: tools.Rules{Allow: a.Tools.Allow, Deny: a.Tools.Deny}, Profile: a.Tools.Profile,
		Exec: tools.Level(a.Tools.Exec), ByRole: map[workspace.Role]tools.RoleRules{}, Helper: rules(a.Tools.Subagents.Tools)}
	for _, r := range a.Tools.ExecAllow {
		p.ExecAllow = append(p.ExecAllow, execRule(r))
	}
	for role, rt := range a.Tools.ByRole {
		p.ByRole[workspace.Role(role)] = tools.RoleRules{Rules: tools.Rules{Allow: rt.Allow, Deny: rt.Deny}, Exec: tools.Level(rt.Exec)}
	}
	return p
}

func execRule(r configs.ExecRule) tools.ExecRule {
	return tools.ExecRule{Program: r.Program, Args: r.Args, Trusted: r.Trusted}
}

// Warnings are what a configuration allows and probably does not mean, with what is known of its programs.
func Warnings(c *configs.Config) []configs.Problem {
	return c.Warnings(func(r configs.ExecRule) string { return execRule(r).Warning() })
}
