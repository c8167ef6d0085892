package routes

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/channels"
	"parley/workspace"
)

// MaxFanout is how many agents a rule may hand a copy of a message to.
const MaxFanout = 3

// Rule sends what matches all of its given fields to an agent. An empty field is not given.
type Rule struct {
	Type    channels.Network
	Channel string // configured name
	Server  string
	Roles   []string // of the sender on the server; one of them is enough
	Team    string
	Kind    channels.PeerKind
	Peer    channels.PeerID // of a DM: the user's id will do
	Thread  channels.ThreadID
	Agent   workspace.AgentID
	Session string // a named session beside the room's first
	Fanout  []workspace.AgentID
}

// Agent is what the table knows of an agent: agents[].may.channels, where "*" stands for every channel.
type Agent struct {
	ID       workspace.AgentID
	Channels []string
}

// DMScope says which DMs share a session. Groups and rooms always have one each, as have threads.
type DMScope string

const (
	PerAccountChannelPeer DMScope = "per-account-channel-peer" // default
	PerChannelPeer        DMScope = "per-channel-peer"
	PerPeer               DMScope = "per-peer" // by person
	MainScope             DMScope = "main"     // holds only while one owner is the only person
)

// Options are what the rules are checked against.
type Options struct {
	Default  workspace.AgentID
	Agents   []Agent
	Channels map[string]channels.Network // by configured name
	DMScope  DMScope
}

// Table answers who gets a message. It never changes and is safe for concurrent use; a reload makes a new one.
type Table struct {
	o      Options
	agents map[workspace.AgentID]Agent
	all    []*rule // by rank

	// Each rule stands in one index: that of its narrowest field that names one thing.
	byThread  map[channels.ThreadID][]*rule
	byPeer    map[channels.PeerID][]*rule
	byServer  map[string][]*rule
	byTeam    map[string][]*rule
	byChannel map[string][]*rule
	wide      []*rule
}

type rule struct {
	Rule
	n      int    // position in the configuration, from 1
	rank   int    // 0 is asked first
	label  string // as bindings show it
	parent string // the same for a message in a thread that inherits
}

// The narrowest given field decides between two rules that match, then the next, then the order of writing.
const (
	givenKind = 1 << iota
	givenType
	givenChannel
	givenTeam
	givenServer
	givenRoles
	givenPeer
	givenThread
)

// Listed is a rule as lists show it.
type Listed struct {
	Rule
	N     int    // position in the configuration, from 1
	Label string // as bindings show it
	// Inherited is the same for a message in a thread that inherits.
	Inherited string
}

// List is every rule in the order in which they are asked; behind them all stands the default agent.
func (t *Table) List() []Listed {
	var out []Listed
	for _, r := range t.all {
		out = append(out, Listed{r.Rule, r.n, r.label, r.parent})
	}
	return out
}

// NewTable checks the rules and indexes them. Its error joins all problems, each with the number of its rule.
func NewTable(rules []Rule, o Options) (*Table, error) {
	t := &Table{o: o, agents: map[workspace.AgentID]Agent{},
		byThread: map[channels.ThreadID][]*rule{}, byPeer: map[channels.PeerID][]*rule{},
		byServer: map[string][]*rule{}, byTeam: map[string][]*rule{}, byChannel: map[string][]*rule{}}
	for _, a := range o.Agents {
		t.agents[a.ID] = a
	}
	var problems []error
	seen := map[string]int{}
	for i, r := range rules {
		c := &rule{Rule: r, n: i + 1}
		for _, p := range t.check(r) {
			problems = append(problems, fmt.Errorf("routes[%d]: %s", i, p))
		}
		if c.Channel != "" {
			c.Type = "" // said by the channel
		}
		c.Roles = slices.Sorted(slices.Values(r.Roles))
		key := fmt.Sprintf("%q", []any{c.Type, c.Channel, c.Server, c.Roles, c.Team, c.Kind, c.Peer, c.Thread})
		if first, twice := seen[key]; twice {
			problems = append(problems, fmt.Errorf("routes[%d]: matches the same as routes[%d]", i, first))
		} else {
			seen[key] = i
		}
		c.label, c.parent = c.name("peer"), c.name("parent")
		t.all = append(t.all, c)
	}
	problems = append(problems, t.checkDefault()...)
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	slices.SortStableFunc(t.all, func(a, b *rule) int { return cmp.Compare(b.given(), a.given()) })
	for i, r := range t.all {
		r.rank = i
		t.index(r)
	}
	return t, nil
}

func (t *Table) check(r Rule) (problems []string) {
	bad := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	network, known := t.o.Channels[r.Channel]
	switch {
	case r.Channel != "" && !known:
		bad("channel %q is not configured", r.Channel)
	case r.Channel != "" && r.Type != "" && r.Type != network:
		bad("channel %q is of type %q, not %q", r.Channel, network, r.Type)
	}
	if len(r.Roles) > 0 && r.Server == "" {
		bad("roles need a server")
	}
	if slices.Contains(r.Roles, "") {
		bad("a role is empty")
	}
	if !slices.Contains([]channels.PeerKind{"", channels.DM, channels.Group, channels.Room}, r.Kind) {
		bad("kind %q is none of dm, group, room", r.Kind)
	}
	if (&rule{Rule: r}).given() == 0 {
		bad("it matches everything: make its agent the default instead")
	}
	if len(r.Fanout) > MaxFanout {
		bad("fanout names %d agents; at most %d", len(r.Fanout), MaxFanout)
	}
	named := map[workspace.AgentID]bool{}
	for _, id := range append([]workspace.AgentID{r.Agent}, r.Fanout...) {
		a, known := t.agents[id]
		switch {
		case !known:
			bad("agent %q is not configured", id)
		case named[id]:
			bad("agent %q is named twice", id)
		case r.Channel != "" && !a.mayServe(r.Channel):
			bad("agent %q may not be routed to channel %q", id, r.Channel)
		}
		named[id] = true
	}
	return problems
}

// checkDefault makes sure that somebody answers everywhere: Resolve never comes back empty.
func (t *Table) checkDefault() (problems []error) {
	switch t.o.DMScope {
	case "", PerAccountChannelPeer, PerChannelPeer, PerPeer, MainScope:
	default:
		problems = append(problems, fmt.Errorf("dm_scope %q is not known", t.o.DMScope))
	}
	a, known := t.agents[t.o.Default]
	if !known {
		return append(problems, fmt.Errorf("default agent %q is not configured", t.o.Default))
	}
	for _, name := range slices.Sorted(maps.Keys(t.o.Channels)) {
		covered := slices.ContainsFunc(t.all, func(r *rule) bool {
			return r.given() == givenChannel && r.Channel == name
		})
		if !covered && !a.mayServe(name) {
			problems = append(problems, fmt.Errorf("channel %q: the default agent %q may not be routed there, and no rule covers the whole channel", name, a.ID))
		}
	}
	return problems
}

func (a Agent) mayServe(channel string) bool {
	return slices.Contains(a.Channels, "*") || slices.Contains(a.Channels, channel)
}

func (t *Table) may(id workspace.AgentID, channel string) bool {
	a, known := t.agents[id]
	return known && a.mayServe(channel)
}

// given is the set of given fields, which is also the rule's weight.
func (r *rule) given() (set int) {
	for bit, is := range []bool{r.Kind != "", r.Type != "", r.Channel != "", r.Team != "",
		r.Server != "", len(r.Roles) > 0, r.Peer != "", r.Thread != ""} {
		if is {
			set |= 1 << bit
		}
	}
	return set
}

// name is how people see the rule: its tier and what it names, such as peer:tg/123.
func (r *rule) name(peer string) string {
	given := r.given()
	var tier string
	switch {
	case given >= givenThread:
		tier = "thread"
	case given >= givenPeer:
		tier = peer
	case given >= givenRoles:
		tier = "server+roles"
	case given >= givenServer:
		tier = "server"
	case given >= givenTeam:
		tier = "team"
	case given >= givenChannel:
		tier = "channel"
	case given >= givenType:
		tier = "network"
	default:
		tier = "kind"
	}
	var parts []string
	for _, s := range []string{string(r.Type), r.Channel, r.Team, r.Server, strings.Join(r.Roles, "|"), string(r.Peer), string(r.Thread), string(r.Kind)} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	return tier + ":" + strings.Join(parts, "/")
}

func (t *Table) index(r *rule) {
	switch {
	case r.Thread != "":
		t.byThread[r.Thread] = append(t.byThread[r.Thread], r)
	case r.Peer != "":
		t.byPeer[r.Peer] = append(t.byPeer[r.Peer], r)
	case r.Server != "":
		t.byServer[r.Server] = append(t.byServer[r.Server], r)
	case r.Team != "":
		t.byTeam[r.Team] = append(t.byTeam[r.Team], r)
	case r.Channel != "":
		t.byChannel[r.Channel] = append(t.byChannel[r.Channel], r)
	default:
		t.wide = append(t.wide, r)
	}
}
