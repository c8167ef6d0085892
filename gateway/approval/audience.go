// The audience: which rooms hear a question.

package approval

import (
	"errors"
	"fmt"
	"strings"

	"parley/channels"
	"parley/gateway/delivery"
	"parley/gateway/transport"
	"parley/workspace"
	"parley/workspace/rule"
	"parley/workspace/store"
)

// audience says who hears a question, and writes what they read. Where the requester may decide, it is asked where they
// wrote; in a group by buttons alone, which only those who may decide can press. Else those who may decide are asked
// where they last wrote directly, and the requester is told so. Pages, the command line and the API show every question.
func (r *Rooms) audience(by Asker, ap workspace.Approval) (rooms []workspace.AskedRoom, list []store.NewOutbound) {
	here := by.Room.ID != "" && by.Channel != nil && !by.Channel.Traits.Local
	own := r.opt.Rule.decides(ap, ap.Requester)
	asked := map[workspace.RoomID]bool{}
	ask := func(room workspace.RoomID, ch *transport.Channel, direct bool) bool {
		if asked[room] || ch == nil {
			return asked[room]
		}
		q, whole := r.question(by, ap, ch, room, direct)
		if !whole && !direct { // nobody can answer there
			return false
		}
		asked[room] = true
		rooms, list = append(rooms, workspace.AskedRoom{Room: room, Whole: whole}), append(list, r.replying(by, q))
		return true
	}
	if d := r.opt.Rule.Domains()[ap.Domain]; ap.Domain != "" && len(d.Surfaces) > 0 { // it is decided there and nowhere else
		r.surfaces(d.Surfaces, ask)
	} else if !d.Elsewhere {
		r.people(by, ap, here, own, ask)
	}
	if here && !asked[by.Room.ID] {
		text := elsewhere(ap, len(rooms))
		list = append(list, r.replying(by, delivery.Notice("approval:"+string(ap.ID)+":notice", by.Room.ID, workspace.OutNotice, text)))
	}
	return rooms, list
}

// replying is a message of the turn as a reply to what it answers.
func (r *Rooms) replying(by Asker, n store.NewOutbound) store.NewOutbound {
	if len(by.Answers) == 0 {
		return n
	}
	return r.opt.Outbox.Replying(n, by.Answers[0])
}

// people are asked where they are.
func (r *Rooms) people(by Asker, ap workspace.Approval, here, own bool, ask func(workspace.RoomID, *transport.Channel, bool) bool) {
	there := false
	switch {
	case here && by.Room.Kind == channels.DM && own:
		there = ask(by.Room.ID, by.Channel, true)
	case here && by.Room.Kind != channels.DM && by.Channel.Traits.Buttons:
		there = ask(by.Room.ID, by.Channel, false)
	}
	if own && (there || !here) { // else the page, the command line and the API are where they asked
		return
	}
	people, err := r.opt.Rule.deciders(ap)
	if err != nil {
		r.opt.Log.Error("people not read", "err", err)
	}
	for _, who := range people {
		room, err := r.opt.Store.DirectRoom(who, r.opt.Channels.Local()...)
		if errors.Is(err, workspace.ErrNotFound) {
			continue
		}
		addr, err := r.opt.Outbox.Address(room)
		if err != nil {
			r.opt.Log.Error("address of a decider not read", "person", who, "err", err)
			continue
		}
		if ch := r.opt.Channels.Serving(addr); ch != nil && !ch.Traits.Local {
			ask(room, ch, true)
		}
	}
}

// surfaces are the rooms among the ways by which a domain is decided about: channel:NAME:PEER.
func (r *Rooms) surfaces(list []string, ask func(workspace.RoomID, *transport.Channel, bool) bool) {
	for _, s := range list {
		rest, ok := strings.CutPrefix(s, "channel:")
		name, peer, both := strings.Cut(rest, ":")
		ch := r.opt.Channels.Named(name)
		if !ok || !both || ch == nil || ch.Traits.Local {
			continue
		}
		for _, kind := range []channels.PeerKind{channels.DM, channels.Group, channels.Room} {
			at := channels.Address{Network: ch.Network, Account: ch.Account(), Kind: kind, Peer: channels.PeerID(peer)}
			if room, err := r.opt.Store.RoomByAddress(at); err == nil {
				ask(room.ID, ch, kind == channels.DM)
			}
		}
	}
}

// elsewhere tells a requester that somebody else is asked.
func elsewhere(ap workspace.Approval, rooms int) string {
	if rooms == 0 { // nobody who may decide has ever written directly, or a system of its own is asked
		who := fmt.Sprintf("An owner gives it in WebChat or by `parley approval approve %s`.", workspace.Short(ap.ID))
		if ap.Domain != "" {
			who = fmt.Sprintf("Whom %s belongs to is asked.", plainLabel(ap.Domain))
		}
		return fmt.Sprintf("I need a permission for this (%s, approval %s). %s I go on when it is decided, at the latest in %s.",
			ap.Tool, workspace.Short(ap.ID), who, rule.Span(ap.Expires.Sub(ap.Created)))
	}
	return fmt.Sprintf("I need a permission for this (%s) and have asked for it (approval %s). "+
		"I go on when it is decided, at the latest in %s.", ap.Tool, workspace.Short(ap.ID), rule.Span(ap.Expires.Sub(ap.Created)))
}
