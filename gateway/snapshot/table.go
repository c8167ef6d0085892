package snapshot

import (
	"parley/channels"
	"parley/configs"
	"parley/routes"
	"parley/workspace"
)

// defaultAgent is who answers where no rule names somebody.
func defaultAgent(c *configs.Config) (id workspace.AgentID) {
	for _, a := range c.Agents {
		if a.Default || len(c.Agents) == 1 {
			id = workspace.AgentID(a.ID)
		}
	}
	return id
}

// table is the configured routes. WebChat and the API are always there.
func table(c *configs.Config, fallback workspace.AgentID) (*routes.Table, error) {
	o := routes.Options{Default: fallback,
		Channels: map[string]channels.Network{configs.WebChat: configs.WebChat, configs.API: configs.API},
		DMScope:  routes.DMScope(c.Sessions.DMScope)}
	for _, ch := range c.Channels {
		o.Channels[ch.Name] = channels.Network(ch.Type)
	}
	for _, a := range c.Agents {
		o.Agents = append(o.Agents, routes.Agent{ID: workspace.AgentID(a.ID), Channels: a.May.Channels})
	}
	var rules []routes.Rule
	for _, r := range c.Routes {
		rule := routes.Rule{Type: channels.Network(r.Type), Channel: r.Channel, Server: r.Server, Roles: r.Roles, Team: r.Team,
			Kind: channels.PeerKind(r.Kind), Peer: channels.PeerID(r.Peer), Thread: channels.ThreadID(r.Thread),
			Agent: workspace.AgentID(r.Agent), Session: r.Session}
		for _, f := range r.Fanout {
			rule.Fanout = append(rule.Fanout, workspace.AgentID(f))
		}
		rules = append(rules, rule)
	}
	return routes.NewTable(rules, o)
}
