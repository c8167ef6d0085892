package routes

import (
	"slices"
	"strings"

	"parley/channels"
	"parley/workspace"
)

// Fallback is the rule of a message that no rule matched: the default agent, which is no assignment.
const Fallback = "fallback"

// Route is where a message goes. Binding is what is stored and shown.
type Route struct {
	workspace.Binding
	Session workspace.Key
	Fanout  []Route // copies for other agents, each in a session of its own
}

// Considered is one rule as a dry run saw it, the most specific first.
type Considered struct {
	N       int    // position in the configuration, from 1
	Rule    string // label, as in Binding.Rule
	Agent   workspace.AgentID
	Matched bool
	Why     string // of a rule that did not match: the first field that differs
}

// Resolve says which agent and session a message goes to: the narrowest rule that matches, else the default
// agent. What the chat switched to outranks the rules, and "@<agent>" at the start of a text in a room outranks both.
// An agent that may not be routed to the channel is passed over everywhere.
//
// A local message names its session itself: whoever wrote it chose it, and may write there.
func (t *Table) Resolve(f Facts) Route {
	if f.Local {
		if key, err := workspace.ParseKey(string(f.In.To.Peer)); err == nil {
			r := Route{Binding: workspace.Binding{Agent: key.Agent, Rule: "local"}}
			r.seat(key)
			return r
		}
	}
	r := t.find(&f)
	route, name := t.bind(r, &f)
	if f.Agent != "" && f.Agent != route.Agent && t.may(f.Agent, f.Channel) {
		route, name = Route{Binding: workspace.Binding{Agent: f.Agent, Rule: "switch:" + string(f.Agent)}}, ""
	}
	if f.Session != "" {
		name = f.Session
	}
	if at, ok := t.Called(f); ok && at != route.Agent {
		route, name = Route{Binding: workspace.Binding{Agent: at, Rule: "called:@" + string(at)}}, ""
	}
	route.seat(t.key(route.Agent, name, &f))
	for i := range route.Fanout {
		route.Fanout[i].seat(t.key(route.Fanout[i].Agent, "", &f))
	}
	return route
}

// Explain resolves as Resolve does and tells how each rule was judged.
func (t *Table) Explain(f Facts) (Route, []Considered) {
	var list []Considered
	for _, r := range t.all {
		why := t.mismatch(r, &f)
		list = append(list, Considered{N: r.n, Rule: r.shown(&f), Agent: r.Agent, Matched: why == "", Why: why})
	}
	return t.Resolve(f), list
}

// Called is the agent that a text in a group or room begins with ("@research, look"), if it exists and may be
// routed there. The gateway counts such a message as addressed to us.
func (t *Table) Called(f Facts) (workspace.AgentID, bool) {
	if f.In.To.Kind == channels.DM {
		return "", false
	}
	text, ok := strings.CutPrefix(strings.TrimLeft(f.In.Text, " \t\r\n"), "@")
	if !ok {
		return "", false
	}
	word, _, _ := strings.Cut(text, "\n")
	if i := strings.IndexAny(word, " \t\r,:"); i >= 0 {
		word = word[:i]
	}
	for _, a := range t.o.Agents {
		if strings.EqualFold(word, string(a.ID)) {
			return a.ID, a.mayServe(f.Channel)
		}
	}
	return "", false
}

// find is the first rule by rank that matches, or nil. A message can match in few of the indexes, and in each of
// them the first match is its best.
func (t *Table) find(f *Facts) (best *rule) {
	try := func(rules []*rule) {
		for _, r := range rules {
			if best != nil && best.rank < r.rank {
				return
			}
			if t.mismatch(r, f) == "" {
				best = r
				return
			}
		}
	}
	in := &f.In
	if in.To.Thread != "" {
		try(t.byThread[in.To.Thread])
	}
	if len(t.byPeer) > 0 {
		try(t.byPeer[in.To.Peer])
		if f.Was != "" {
			try(t.byPeer[f.Was])
		}
		if in.To.Kind == channels.DM {
			try(t.byPeer[channels.PeerID(in.From.User)])
			for _, id := range in.From.Alt {
				try(t.byPeer[channels.PeerID(id)])
			}
		}
	}
	if in.Server != "" {
		try(t.byServer[in.Server])
	}
	if in.Team != "" {
		try(t.byTeam[in.Team])
	}
	try(t.byChannel[f.Channel])
	try(t.wide)
	return best
}

// mismatch names the first given field that differs, or is empty: the rule matches.
func (t *Table) mismatch(r *rule, f *Facts) string {
	in := &f.In
	switch {
	case r.Thread != "" && r.Thread != in.To.Thread:
		return "thread"
	case r.Peer != "" && !samePeer(r.Peer, f):
		return "peer"
	case r.Server != "" && r.Server != in.Server:
		return "server"
	case len(r.Roles) > 0 && !slices.ContainsFunc(r.Roles, func(s string) bool { return slices.Contains(in.From.Roles, s) }):
		return "roles"
	case r.Team != "" && r.Team != in.Team:
		return "team"
	case r.Channel != "" && r.Channel != f.Channel:
		return "channel"
	case r.Type != "" && r.Type != in.To.Network:
		return "type"
	case r.Kind != "" && r.Kind != in.To.Kind:
		return "kind"
	case !t.may(r.Agent, f.Channel):
		return "agent may not be routed to this channel"
	}
	return ""
}

// samePeer compares with the conversation's id and, in a DM, with the ids of who wrote it: a Slack or Discord DM
// has an id of its own that nobody knows by heart.
func samePeer(p channels.PeerID, f *Facts) bool {
	in := &f.In
	if p == in.To.Peer || p == f.Was {
		return true
	}
	u := channels.UserID(p)
	return in.To.Kind == channels.DM && (u == in.From.User || slices.Contains(in.From.Alt, u))
}

func (t *Table) bind(r *rule, f *Facts) (route Route, session string) {
	if r == nil {
		return Route{Binding: workspace.Binding{Agent: t.o.Default, Rule: Fallback, Fallback: true}}, ""
	}
	route.Agent, route.Rule = r.Agent, r.shown(f)
	for _, id := range r.Fanout {
		if t.may(id, f.Channel) {
			route.Fanout = append(route.Fanout, Route{Binding: workspace.Binding{Agent: id, Rule: "fanout:" + route.Rule}})
		}
	}
	return route, r.Session
}

// shown is the rule's label for this message: a message in a thread inherits its peer's rule from the parent.
func (r *rule) shown(f *Facts) string {
	if f.In.To.Thread != "" {
		return r.parent
	}
	return r.label
}

func (r *Route) seat(k workspace.Key) {
	r.Session, r.Key = k, k.String()
}

// key names the session of an agent in this conversation.
func (t *Table) key(agent workspace.AgentID, name string, f *Facts) workspace.Key {
	to := &f.In.To
	k := workspace.Key{Agent: agent, Name: name, Scope: workspace.ScopeAddress,
		Network: to.Network, Account: to.Account, Kind: to.Kind, Peer: to.Peer, Thread: to.Thread}
	if f.Was != "" { // the session goes on under the id that it began with
		k.Peer = f.Was
	}
	one := workspace.Key{Agent: agent, Name: name} // for scopes in which the conversation does not count
	switch {
	case f.Local: // sessions of pages, terminals and programs are shared
		one.Scope, one.Local = workspace.ScopeLocal, string(to.Peer)
		return one
	case to.Kind != channels.DM:
	case t.o.DMScope == PerChannelPeer:
		k.Scope, k.Account = workspace.ScopePeer, ""
	case t.o.DMScope == PerPeer && f.Person.ID != "":
		one.Scope, one.Person = workspace.ScopePerson, f.Person.ID
		return one
	case t.o.DMScope == MainScope && f.Alone && f.Person.Role == workspace.Owner:
		one.Scope = workspace.ScopeMain
		return one
	}
	return k
}
