// Doubt: parts that may have been sent, and live messages that get their final text.

package delivery

import (
	"context"
	"errors"

	"parley/channels"
	"parley/gateway/transport"
	"parley/workspace"
	"parley/workspace/store"
)

// doubt notes that a part may have been sent. One that was sent again already stays marked, so that it is given up; but the
// end of the gateway is not a network's fault, and after each of three crashes it may go out, marked, once more.
func (d *Outbox) doubt(p *workspace.Part, err error) bool {
	d.Log.Warn("a part may have been sent", "outbound", p.OutboundID, "part", p.N, "err", err)
	move := store.Move{Part: *p, To: workspace.PartUnknown}
	if !errors.As(err, &move.Doubt) {
		move.Doubt, move.Error = workspace.DoubtUnanswered, d.short(err)
	}
	if p.Doubt == workspace.DoubtMarked && (move.Doubt != workspace.DoubtEnded || p.Tries > maxBegins) {
		move.Doubt = workspace.DoubtMarked
	}
	if err := d.Store.MovePart(move); err != nil {
		return d.lost(p, err)
	}
	p.State, p.Doubt, p.Error, p.Epoch = workspace.PartUnknown, move.Doubt, move.Error, d.Store.Epoch()
	return false
}

// resolve brings a part out of unknown: a network that dedupes gets the same token again, one that can be asked is
// asked, a known message is edited; else it is sent once more with a mark, or dropped, as the operator chose.
func (d *Outbox) resolve(ctx context.Context, r *room, ch *transport.Channel, o *workspace.Outbound, p *workspace.Part) bool {
	if p.RemoteID != "" { // it was live: its message is known, and an edit can be repeated
		return d.found(ctx, r, ch, o, p)
	}
	fresh := ch.Traits.SameFor == 0 || d.Now().Sub(o.Created) < ch.Traits.SameFor
	asks := asking(o) // a second one would keep its buttons, whatever is answered
	if ch.Traits.Idempotent && fresh || o.State == workspace.OutOpen && !asks {
		var doubt workspace.Doubt
		if p.N == 0 && p.Blob == "" && ch.Streams() {
			doubt = workspace.DoubtPlaceholder
		}
		return d.again(p, doubt, errors.New("same token"))
	}
	if finder, ok := channels.As[channels.Finder](ch.Adapter); ok && r.finds < maxFinds {
		post, err := d.post(ch, r, o, p)
		if err != nil {
			return d.dead(r, o, p, err)
		}
		id, found, sure, err := finder.Find(ctx, post, o.Created)
		switch {
		case err != nil:
			return d.notFound(ctx, r, ch, o, p, err)
		case found && p.N == 0 && p.Blob == "": // what was sent may have been the placeholder, which has the same token
			p.RemoteID = id
			return d.found(ctx, r, ch, o, p)
		case found:
			return d.settle(p, store.Move{To: workspace.PartSent, Remote: id})
		case sure:
			return d.again(p, "", errors.New("surely absent"))
		}
	}
	if asks {
		return d.again(p, "", errors.New("a question is asked twice rather than never"))
	}
	if o.OnUnknown == workspace.DropUnknown {
		return d.settle(p, store.Move{To: workspace.PartDead, Doubt: workspace.DoubtDropped})
	}
	if p.Doubt == workspace.DoubtMarked {
		return d.dead(r, o, p, workspace.DoubtTwice)
	}
	return d.again(p, workspace.DoubtMarked, nil)
}

// notFound is a question that failed. One room's failure holds nobody else up; what cannot be asked is handled as on a
// network that cannot be asked.
func (d *Outbox) notFound(ctx context.Context, r *room, ch *transport.Channel, o *workspace.Outbound, p *workspace.Part, err error) bool {
	d.Log.Warn("the network does not tell whether a part was sent", "outbound", o.ID, "part", p.N, "err", err)
	switch channels.ClassOf(err) {
	case channels.PeerGone:
		return d.dead(r, o, p, err)
	case channels.Fatal:
		ch.Suspect(err)
	case channels.Retry, channels.BadMessage, channels.Unknown:
	}
	r.finds++
	d.pause(ctx, r, transport.Backoff(r.finds))
	return false
}

// found is for a part whose message is known after all.
func (d *Outbox) found(ctx context.Context, r *room, ch *transport.Channel, o *workspace.Outbound, p *workspace.Part) bool {
	p.State = workspace.PartLive
	return d.edit(ctx, r, ch, o, p)
}

// edit gives a live message its final text. Edits can be repeated, so a doubt is no doubt.
func (d *Outbox) edit(ctx context.Context, r *room, ch *transport.Channel, o *workspace.Outbound, p *workspace.Part) bool {
	if o.State == workspace.OutOpen {
		return true // its text is not final yet
	}
	editor, ok := channels.As[channels.Editor](ch.Adapter)
	if !ok {
		return d.settle(p, store.Move{To: workspace.PartSent})
	}
	for try := 1; ctx.Err() == nil; try++ {
		if p.From == p.To && p.Blob == "" {
			return d.surplus(ctx, r, ch, p)
		}
		post, err := d.post(ch, r, o, p)
		if err == nil {
			if !d.rest(ctx, r, ch, p, p.N) {
				return true
			}
			_, err = d.call(ctx, r, func(ctx context.Context) (channels.MessageID, error) { return "", editor.Edit(ctx, p.RemoteID, post) })
		}
		var e *channels.Error
		switch {
		case err == nil:
			return d.settle(p, store.Move{To: workspace.PartSent, Remote: p.RemoteID})
		case errors.As(err, &e) && (e.Class == channels.BadMessage || e.Class == channels.PeerGone):
			return d.resend(r, o, p, e)
		case d.enough(o, try):
			return d.dead(r, o, p, err)
		}
		if e != nil && e.After > 0 {
			d.hold(r, e.After)
			continue
		}
		p.NextAt = d.Now().Add(transport.Backoff(try))
	}
	return true
}

// resend is for a live message that cannot be edited any more (deleted by somebody, too old): its text goes out as
// a message of its own. The placeholder carried no answer, so this is not a repeat.
func (d *Outbox) resend(r *room, o *workspace.Outbound, p *workspace.Part, e *channels.Error) bool {
	if e.Class == channels.PeerGone && e.Moved == "" {
		return d.dead(r, o, p, e)
	}
	again := store.NewOutbound{Key: o.Key + ":again", RoomID: o.RoomID, RunID: o.RunID, InputID: o.InputID, Kind: o.Kind, Text: o.Text,
		OnUnknown: o.OnUnknown, ReplyTo: o.ReplyTo}
	rest := o.Parts[p.N:] // what is behind it must not overtake it
	for _, q := range rest {
		again.Spans = append(again.Spans, store.Span{From: q.From, To: q.To, Blob: q.Blob})
	}
	out, err := d.Store.Outbound(again)
	if err != nil {
		return d.lost(p, err)
	}
	d.settle(p, store.Move{To: workspace.PartSent, Error: resent})
	for i := range rest[1:] {
		if q := &rest[1+i]; q.State == workspace.PartReady {
			d.settle(q, store.Move{To: workspace.PartCancelled, Error: resent})
		}
	}
	d.PushAll(out)
	return true
}

const resent = "could not be edited; sent again"

// surplus removes a live message that the final text does not need.
func (d *Outbox) surplus(ctx context.Context, r *room, ch *transport.Channel, p *workspace.Part) bool {
	if deleter, ok := channels.As[channels.Deleter](ch.Adapter); ok {
		_, err := d.call(ctx, r, func(ctx context.Context) (channels.MessageID, error) {
			return "", deleter.Delete(ctx, d.where(r), p.RemoteID)
		})
		if err != nil {
			d.Log.Warn("surplus message not deleted", "room", d.where(r).String(), "err", err)
		}
	}
	return d.settle(p, store.Move{To: workspace.PartCancelled})
}
