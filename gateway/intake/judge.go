// Who wrote, and may they: the gate's questions about one event.

package intake

import (
	"errors"

	"parley/channels"
	"parley/gateway/delivery"
	"parley/gateway/transport"
	"parley/routes"
	"parley/workspace"
	"parley/workspace/store"
)

// judge asks the gate and the routes, and says what is to be stored. It is nil for what is not stored at all.
func (r *Receiver) judge(ch *transport.Channel, in channels.Inbound) ([]*arrival, error) {
	if in.Kind == channels.KindMoved && in.Text != "" {
		if err := r.Directory.follow(in.To, channels.PeerID(in.Text)); err != nil {
			return nil, err
		}
		in.To.Peer = channels.PeerID(in.Text) // the event belongs to the room that goes on
	}
	age := r.Directory.people.stamp()
	facts, place, known, err := r.facts(ch, in)
	if err != nil {
		return nil, err
	}
	verdict := routes.Gate(ch.Access(), facts)
	if verdict.Outcome == routes.Ignore {
		return nil, nil
	}
	a := r.draft(ch, in, verdict)
	switch verdict.Outcome {
	case routes.Refuse, routes.Pair:
		return r.refuse(a, verdict)
	case routes.Note:
		a.Input.State = workspace.InputNoted
		if in.Kind == channels.KindDelete {
			return r.deletions(a, facts.Person)
		}
		return []*arrival{a}, nil
	}
	a.Input.Person, a.Input.Role = facts.Person.ID, facts.Person.Role
	if !known {
		a.Guest, a.age = r.Directory.guest(in), age
		a.Input.Person, facts.Person = a.Guest.Person, workspace.Person{ID: a.Guest.Person, Role: workspace.Guest}
	}
	if verdict.Role != workspace.Nobody {
		a.Input.Role = verdict.Role
	}
	return r.bind(a, facts, verdict, place), nil
}

// facts are what gate and routes decide by, and what is set for the room. known is false for a stranger.
func (r *Receiver) facts(ch *transport.Channel, in channels.Inbound) (f routes.Facts, place store.Place, known bool, err error) {
	snap := r.Snapshot()
	f = routes.Facts{Channel: ch.Name, Local: ch.Traits.Local, In: in}
	if f.Person, known, err = r.Directory.sender(ch, &in); err != nil {
		return f, place, known, err
	}
	about := in.TargetKey()
	if about == "" { // where a thread grows from a message, what is said in it answers that one
		about = in.To.RootKey()
	}
	if about != "" && f.Person.ID != "" {
		if f.Addressed, err = r.addressed(in.To, about); err != nil {
			return f, place, known, err
		}
	}
	if _, called := snap.Table.Called(f); called { // "@research, look" is said to us
		f.Addressed = true
	}
	if f.Was, err = r.Directory.moves.Was(in.To); err != nil {
		return f, place, known, err
	}
	f.Alone = snap.MainScope && r.Directory.people.alone()
	if !ch.Traits.Local {
		if place, err = r.Directory.places.of(in.To); err != nil {
			return f, place, known, err
		}
	}
	f.Activation = place.Activation
	return f, place, known, nil
}

// addressed says whether the message that an edit, delete or reaction is about, or that a thread grows from, was for us.
func (r *Receiver) addressed(to channels.Address, about string) (bool, error) {
	target, err := r.Store.InputByKey(string(to.Network), string(to.Account), about)
	if errors.Is(err, workspace.ErrNotFound) {
		return false, nil
	}
	return err == nil && target.Decision.Allow && target.State != workspace.InputContext, err
}

// refuse keeps that somebody was refused, and of a stranger the request to be let in.
func (r *Receiver) refuse(a *arrival, v routes.Verdict) ([]*arrival, error) {
	r.refused.Add(1)
	if !r.refusals.allow(string(a.in.To.Network) + "/" + string(a.in.From.User)) {
		return nil, nil // counted; the journal keeps the first twenty an hour
	}
	a.Input.State, a.Input.Reason = workspace.InputRefused, v.Decision.Reason
	if v.Outcome == routes.Pair {
		return []*arrival{a}, r.pair(a)
	}
	return []*arrival{a}, nil
}

// pair stores a stranger's request and sends the code, at most one in ten minutes.
func (r *Receiver) pair(a *arrival) error {
	in := a.in
	last, err := r.Store.LastPairing(in.To.Network, in.To.Account, in.From.User)
	if err != nil {
		return err
	}
	code := routes.NewCode()
	fresh := workspace.Pairing{ID: r.Store.IDs().New(), Channel: a.channel.Name, Network: in.To.Network, Account: in.To.Account,
		User: in.From.User, Name: in.From.Name}
	p, send := routes.AskPairing(last, fresh, code, r.Now())
	if !send {
		return nil
	}
	a.Pairing = &p
	text := "I don't know you yet. Ask my owner to approve this code within ten minutes: " + code +
		"\n\nOn the machine that I run on: parley pairing approve " + code
	a.Replies = []store.NewOutbound{delivery.NoticeTo(a.Input.ID, "refused", "", workspace.OutRefusal, text)}
	return nil
}

// oneCode keeps the first code of each stranger in a batch: the journal did not know of it when the next was judged.
func oneCode(list []*arrival) {
	sent := map[channels.UserID]bool{}
	for _, a := range list {
		if a.Pairing == nil {
			continue
		}
		if sent[a.Pairing.User] {
			a.Pairing, a.Replies = nil, nil
			continue
		}
		sent[a.Pairing.User] = true
	}
}
