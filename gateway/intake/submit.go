// What comes from inside, and the dry run.

package intake

import (
	"context"
	"errors"

	"parley/channels"
	"parley/gateway/rights"
	"parley/gateway/snapshot"
	"parley/gateway/transport"
	"parley/routes"
	"parley/workspace"
	"parley/workspace/clip"
	"parley/workspace/store"
)

// Submit journals a message that already knows its session, such as one of the API, and returns after the commit. It takes the way
// of every channel's, but has no room: it is answered in its transcript. Who it is from and where it goes is filled in.
func (r *Receiver) Submit(ctx context.Context, who workspace.Actor, key workspace.Key, in channels.Inbound) (_ store.Accepted, err error) {
	if who.Person == workspace.LocalOwner { // who may have become somebody else
		if who, err = r.Directory.Local(who.Person); err != nil {
			return store.Accepted{}, err
		}
	}
	in.Kind, in.From = channels.KindMessage, channels.Sender{User: channels.UserID(who.Person), Name: who.Name}
	in.To = channels.Address{Network: r.inside.Network, Account: channels.AccountID(who.Person), Kind: channels.DM,
		Peer: channels.PeerID(key.String())}
	list, err := r.receive(ctx, r.inside, in)
	if err != nil {
		return store.Accepted{}, err
	}
	got := list[0].got
	if !got.Input.Decision.Allow {
		return store.Accepted{}, workspace.Say(workspace.ErrDenied, "You may not write there.")
	}
	return got, nil
}

// LocalKey is the session that somebody names who writes from inside, as rights.SessionKey takes it; empty are the default agent
// and main.
func (r *Receiver) LocalKey(who workspace.Actor, agent workspace.AgentID, session string) (workspace.Key, error) {
	snap := r.Snapshot()
	if agent == "" {
		agent = snap.Default
	}
	if session == "" {
		session = "main"
	}
	key, err := rights.SessionKey(who, agent, session)
	switch {
	case err != nil:
		return key, err
	case !rights.Reaches(who, key):
		return key, workspace.Say(workspace.ErrDenied, "Only owners may write into that session.")
	}
	if _, ok := snap.Agents[key.Agent]; !ok {
		return key, workspace.Say(workspace.ErrNotFound, "There is no agent %q.", clip.Runes(string(key.Agent), 80))
	}
	return key, nil
}

// Explain is what would become of a made-up event on a channel: what the gate says, which route it takes and why. Nothing is stored.
func (r *Receiver) Explain(f routes.Facts, channel string) (routes.Verdict, routes.Route, []routes.Considered, error) {
	ch := r.Channels.Named(channel)
	if ch == nil {
		return routes.Verdict{}, routes.Route{}, nil, workspace.Say(workspace.ErrNotFound, "There is no channel %q.", channel)
	}
	f.Channel, f.Local, f.In.To.Network = channel, ch.Traits.Local, ch.Network
	if f.In.To.Account == "" {
		f.In.To.Account = ch.Account()
	}
	var err error
	if f.Person.ID == "" {
		f.Person, _, err = r.Directory.sender(ch, &f.In)
	}
	if err == nil {
		f.Was, err = r.Directory.moves.Was(f.In.To)
	}
	route, considered := r.Snapshot().Table.Explain(f)
	return routes.Gate(ch.Access(), f), route, considered, err
}

// PeopleChanged drops what is remembered of who is who, and tells lists that fewer people or more may wait to be let in.
func (r *Receiver) PeopleChanged() {
	r.Directory.ForgetPeople()
	r.Feed.Needs()
}

// RoomsChanged drops what is remembered of what is set for rooms.
func (r *Receiver) RoomsChanged() { r.Directory.places.forget() }

// bindAccounts binds the configured people to a channel's users, once the network has told the account.
func (r *Receiver) bindAccounts(ch *transport.Channel) error {
	accounts := snapshot.Accounts(r.Snapshot().Config, ch.Name)
	if ch.Account() == "" {
		if len(accounts) == 0 {
			return nil
		}
		return errors.New("the network has not told the account yet")
	}
	return r.Directory.bind(ch, accounts)
}
