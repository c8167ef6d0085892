// Which agent answers in which session, and how the input starts.

package intake

import (
	"strings"

	"parley/channels"
	"parley/gateway/attachment"
	"parley/gateway/rights"
	"parley/gateway/transport"
	"parley/routes"
	"parley/workspace"
	"parley/workspace/store"
)

// draft is an input as far as the event itself says.
func (r *Receiver) draft(ch *transport.Channel, in channels.Inbound, v routes.Verdict) *arrival {
	a := &arrival{channel: ch, in: in}
	if ch.Adapter != nil { // what comes from inside has no room: who asks reads what came of it
		a.Room, a.Title, a.Handle = in.To, in.Title, in.Handle.Pack()
	}
	a.Backfill = ch.Traits.Backfill && in.Kind == channels.KindMessage
	a.Input = workspace.Input{ID: workspace.InputID(r.Store.IDs().New()), Source: string(in.To.Network), Account: string(in.To.Account),
		Key: in.Key, Kind: in.Kind, Sender: in.From.Name, Decision: v.Decision, Mode: workspace.ModeTurn, Sent: in.Time,
		Data: workspace.InputData{Message: in.ID, Channel: ch.Name, User: in.From.User, BodyHash: in.Hash, Borrowed: in.Borrowed}}
	if in.Key == "" { // a program that does not mind sending twice
		a.Input.Key = "id:" + string(a.Input.ID)
	}
	if in.Target != "" {
		a.Input.TargetKey, a.Input.Data.Target = in.TargetKey(), in.Target
		a.Steered = amendment(in)
	}
	if v.Outcome == routes.Note {
		a.Input.Text = string(in.Data)
	}
	return a
}

// bind asks the routes, decides how the input starts, and adds the copies of a fan-out.
func (r *Receiver) bind(a *arrival, facts routes.Facts, v routes.Verdict, place store.Place) []*arrival {
	in := a.in
	a.Input.Text = in.Text
	a.Input.Data.ReplyTo, a.Input.Data.Quote, a.Input.Data.Album, a.Input.Data.Attachments = in.ReplyTo, in.Quote, in.Album, in.Attachments
	who := workspace.Actor{Person: a.Input.Person, Role: a.Input.Role}
	route := switched(r.Snapshot().Table.Resolve(facts), place, who, in.To.Kind)
	list := []*arrival{a}
	for _, f := range route.Fanout {
		c := *a
		r.copied(&c, f.Agent)
		c.Input.Agent, c.Input.Binding, c.Key, c.key = f.Agent, f.Binding, f.Session, f.Binding.Key
		c.Input.State = workspace.InputQueued
		list = append(list, &c)
	}
	a.Input.Agent, a.Input.Binding, a.Key, a.key = route.Agent, route.Binding, route.Session, route.Binding.Key
	if v.Outcome == routes.Context {
		a.Input.State, a.Input.Mode = workspace.InputContext, workspace.ModeNote
		return list[:1]
	}
	if press := r.Questions.Press(a.channel, in); press != nil {
		a.Input.Data.Press, a.Input.Mode, a.Input.State = press, workspace.ModeCommand, workspace.InputQueued
		return list[:1]
	}
	if in.Kind == channels.KindReaction || in.Kind == channels.KindButton {
		a.Input.State = workspace.InputNoted
		return list[:1]
	}
	a.Input.State = workspace.InputQueued
	if in.Kind == channels.KindMessage && isCommand(in) {
		a.Input.Mode = workspace.ModeCommand
		return list[:1]
	}
	for _, x := range list {
		x.stale = r.Stale.Old(in.Time, a.channel)
		x.mayBegin = in.Kind == channels.KindMessage && in.Album == "" && !x.stale && !attachment.Carries(&x.Input.Data) && !r.asksFirst(x)
	}
	return list
}

// switched is where a message goes whose room was switched to another session of the agent. Whether its writer may write
// there is asked for each message: a role that is taken away ends it (T16).
func switched(route routes.Route, place store.Place, who workspace.Actor, kind channels.PeerKind) routes.Route {
	if place.SessionKey == "" {
		return route
	}
	to, err := workspace.ParseKey(place.SessionKey)
	if err != nil || to == route.Session || !rights.Switchable(who, kind, route.Session, to) {
		return route
	}
	route.Binding.Home = route.Binding.Key
	route.Session, route.Binding.Key, route.Binding.Rule, route.Binding.Fallback = to, place.SessionKey, "switch:session", false
	return route
}

// copied makes an arrival another agent's copy; what is about a message is about each agent's copy of it.
func (r *Receiver) copied(c *arrival, reader workspace.AgentID) {
	c.Input.ID, c.Input.Key, c.Guest = workspace.InputID(r.Store.IDs().New()), channels.CopyKey(c.Input.Key, string(reader)), nil
	if c.Input.TargetKey != "" {
		c.Input.TargetKey = channels.CopyKey(c.Input.TargetKey, string(reader))
	}
}

// asksFirst says that the turn must first ask the network what was said in the thread before.
func (r *Receiver) asksFirst(a *arrival) bool {
	if _, ok := a.channel.Historian(a.in.To); !ok {
		return false
	}
	first, err := r.Transcripts.Fresh(a.Key)
	return first || err != nil
}

func isCommand(in channels.Inbound) bool {
	return in.Command || in.To.Kind == channels.DM && strings.HasPrefix(in.Text, "/")
}
