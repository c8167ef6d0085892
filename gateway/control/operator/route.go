package operator

import (
	"context"

	"parley/channels"
	"parley/gateway/control"
	"parley/gateway/rights"
	"parley/gateway/spec"
	"parley/routes"
	"parley/workspace"
)

// RouteRow is a rule of the table of routes, or the fallback behind them all.
type RouteRow struct {
	Precedence int    `json:"precedence"`  // 1 is asked first
	N          int    `json:"n,omitempty"` // position in the configuration, from 1
	Rule       string `json:"rule"`        // as bindings name it
	Match      Match  `json:"match"`
	Agent      string `json:"agent"`
	Session    string `json:"session,omitempty"` // a named one beside the room's first
	// Fanout are further agents, each of which gets a copy.
	Fanout   []string `json:"fanout,omitempty"`
	Fallback bool     `json:"fallback"` // the default agent, where no rule matches: no assignment
}

// Match is what all must fit; what is not given fits everything.
type Match struct {
	Type    string   `json:"type,omitempty"`
	Channel string   `json:"channel,omitempty"`
	Server  string   `json:"server,omitempty"`
	Roles   []string `json:"roles,omitempty"`
	Team    string   `json:"team,omitempty"`
	Kind    string   `json:"kind,omitempty"`
	Peer    string   `json:"peer,omitempty"`
	Thread  string   `json:"thread,omitempty"`
}

func (c *Operator) routes() []RouteRow {
	snap := c.Snapshot()
	var out []RouteRow
	for i, l := range snap.Table.List() {
		row := RouteRow{Precedence: i + 1, N: l.N, Rule: l.Label, Agent: string(l.Agent), Session: l.Session,
			Match: Match{Type: string(l.Type), Channel: l.Channel, Server: l.Server, Roles: l.Roles, Team: l.Team, Kind: string(l.Kind),
				Peer: string(l.Peer), Thread: string(l.Thread)}}
		for _, f := range l.Fanout {
			row.Fanout = append(row.Fanout, string(f))
		}
		out = append(out, row)
	}
	return append(out, RouteRow{Precedence: len(out) + 1, Rule: routes.Fallback, Agent: string(snap.Default), Fallback: true})
}

// ListRoutes lists the rules in the order in which they are asked, and last the fallback.
var ListRoutes = control.Verb[*Operator, struct{}, spec.List[RouteRow]]{
	Name: "routes", Help: "List the routes in the order in which they are asked", Rights: rights.Owners,
	HTTP: "GET /v1/routes", Group: "routes",
	Do: func(_ context.Context, c *Operator, _ control.Call, _ struct{}) (spec.List[RouteRow], error) {
		return spec.Whole(c.routes()), nil
	},
}

// Probe is a made-up message for a dry run of gate and routes.
type Probe struct {
	Channel   string // configured name
	Kind      channels.PeerKind
	Peer      string
	Thread    string
	User      string
	Roles     []string
	Server    string
	Team      string
	Text      string
	Mentioned bool
}

// Tried is one rule as a dry run saw it, the most specific first.
type Tried struct {
	N       int    `json:"n"` // position in the configuration, from 1
	Rule    string `json:"rule"`
	Agent   string `json:"agent"`
	Matched bool   `json:"matched"`
	Why     string `json:"why,omitempty"` // of a rule that did not match
}

// Explained is what would happen to a made-up message.
type Explained struct {
	Outcome  string   `json:"outcome"`
	Role     string   `json:"role,omitempty"`
	Rule     string   `json:"rule"` // of the gate
	Gates    []string `json:"gates"`
	Reason   string   `json:"reason,omitempty"`
	Agent    string   `json:"agent"`
	Session  string   `json:"session"`
	Route    string   `json:"route"`
	Fallback bool     `json:"fallback"` // the default agent, not an assignment
	Fanout   []string `json:"fanout,omitempty"`
	Rules    []Tried  `json:"rules"`
}

// ExplainRoute runs gate and routes over a made-up message and stores nothing.
func (c *Operator) ExplainRoute(_ context.Context, call control.Call, p Probe) (Explained, error) {
	if p.Kind == "" {
		p.Kind = channels.DM
	}
	if p.Kind != channels.DM && p.Kind != channels.Group && p.Kind != channels.Room {
		return Explained{}, workspace.Say(workspace.ErrInvalid, "There is no kind %q. Kinds are dm, group and room.", string(p.Kind))
	}
	if p.User == "" {
		p.User = p.Peer
	}
	f := routes.Facts{In: channels.Inbound{Kind: channels.KindMessage, From: channels.Sender{User: channels.UserID(p.User), Roles: p.Roles},
		To:   channels.Address{Kind: p.Kind, Peer: channels.PeerID(p.Peer), Thread: channels.ThreadID(p.Thread)},
		Text: p.Text, Mentioned: p.Mentioned, Server: p.Server, Team: p.Team}}
	v, route, considered, err := c.explain(call, f, p.Channel)
	if err != nil {
		return Explained{}, err
	}
	x := Explained{Outcome: string(v.Outcome), Role: string(v.Role), Rule: v.Decision.Rule,
		Gates: append([]string{}, v.Decision.Gates...), Reason: v.Decision.Reason,
		Agent: string(route.Agent), Session: route.Binding.Key, Route: route.Rule, Fallback: route.Fallback, Rules: []Tried{}}
	for _, f := range route.Fanout {
		x.Fanout = append(x.Fanout, string(f.Agent))
	}
	for _, r := range considered {
		x.Rules = append(x.Rules, Tried{N: r.N, Rule: r.Rule, Agent: string(r.Agent), Matched: r.Matched, Why: r.Why})
	}
	return x, nil
}

// explain is a dry run of gate and routes for a made-up message.
func (c *Operator) explain(call control.Call, f routes.Facts, channel string) (routes.Verdict, routes.Route, []routes.Considered, error) {
	if err := c.Allow(call, "route.explain"); err != nil {
		return routes.Verdict{}, routes.Route{}, nil, err
	}
	return c.Dry.Explain(f, channel)
}
