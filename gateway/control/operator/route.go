package operator

import (
	"cmp"
	"context"
	"fmt"
	"strings"

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
	Channel   string            `json:"channel" help:"configured *name* of the channel that it comes by"`
	Kind      channels.PeerKind `json:"kind,omitempty" help:"*kind* of the chat: dm, group or room; left out: dm"`
	Peer      string            `json:"peer,omitempty" help:"the network's *id* of the chat"`
	Thread    string            `json:"thread,omitempty" help:"the network's *id* of the thread in it"`
	User      string            `json:"user,omitempty" help:"the network's *id* of the sender; left out: the peer"`
	Roles     []string          `json:"roles,omitempty" help:"the sender's *roles* on the network"`
	Server    string            `json:"server,omitempty" help:"the network's *id* of the server"`
	Team      string            `json:"team,omitempty" help:"the network's *id* of the team"`
	Text      string            `json:"text,omitempty" help:"what it says"`
	Mentioned bool              `json:"mentioned,omitempty" help:"it names the bot"`
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
var ExplainRoute = control.Verb[*Operator, Probe, Explained]{
	Name: "route.explain", Help: "Say what gate and routes would do with a message", Rights: rights.Owners,
	HTTP: "POST /v1/routes/explain", Group: "routes", Unkept: true, CLI: "route explain <channel> [peer]",
	Do: func(_ context.Context, c *Operator, _ control.Call, p Probe) (Explained, error) {
		p.Kind = cmp.Or(p.Kind, channels.DM)
		if p.Kind != channels.DM && p.Kind != channels.Group && p.Kind != channels.Room {
			return Explained{}, workspace.Say(workspace.ErrInvalid, "There is no kind %q. Kinds are dm, group and room.", string(p.Kind))
		}
		from := channels.Sender{User: channels.UserID(cmp.Or(p.User, p.Peer)), Roles: p.Roles}
		to := channels.Address{Kind: p.Kind, Peer: channels.PeerID(p.Peer), Thread: channels.ThreadID(p.Thread)}
		in := channels.Inbound{Kind: channels.KindMessage, From: from, To: to, Text: p.Text, Mentioned: p.Mentioned,
			Server: p.Server, Team: p.Team}
		v, route, considered, err := c.Dry.Explain(routes.Facts{In: in}, p.Channel)
		if err != nil {
			return Explained{}, err
		}
		x := Explained{Outcome: string(v.Outcome), Role: string(v.Role), Rule: v.Decision.Rule,
			Gates: append([]string{}, v.Decision.Gates...), Reason: v.Decision.Reason,
			Agent: string(route.Agent), Session: route.Binding.Key, Route: route.Rule, Fallback: route.Fallback,
			Rules: []Tried{}}
		for _, f := range route.Fanout {
			x.Fanout = append(x.Fanout, string(f.Agent))
		}
		for _, r := range considered {
			x.Rules = append(x.Rules, Tried{N: r.N, Rule: r.Rule, Agent: string(r.Agent), Matched: r.Matched, Why: r.Why})
		}
		return x, nil
	},
	Show: func(_ Probe, x Explained) spec.Shown { return x.shown() },
}

func (x Explained) shown() spec.Shown {
	route := x.Route
	if x.Fallback {
		route += ", the default agent"
	}
	s := spec.Shown{Rows: [][]any{{"gate", x.Outcome + " " + x.Role + " (" + x.Rule + ")"}, {"reason", x.Reason},
		{"passed", strings.Join(x.Gates, ", ")}, {"agent", x.Agent + " (" + route + ")"}, {"session", x.Session},
		{"copies", strings.Join(x.Fanout, ", ")}}}
	for _, r := range x.Rules {
		mark := "-"
		if r.Matched {
			mark = "*"
		}
		s.Text += fmt.Sprintf("  %s %d %s -> %s %s\n", mark, r.N, r.Rule, r.Agent, r.Why)
	}
	s.Text = strings.TrimSuffix(s.Text, "\n")
	return s
}
