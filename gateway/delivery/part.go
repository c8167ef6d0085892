// One part: the moves of its state, and what a failed send means.

package delivery

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"parley/channels"
	"parley/gateway/transport"
	"parley/workspace"
	"parley/workspace/clip"
	"parley/workspace/store"
)

// part makes one move with a part and says whether it has come to its end.
func (d *Outbox) part(ctx context.Context, r *room, ch *transport.Channel, o *workspace.Outbound, p *workspace.Part, i int) (ended bool) {
	switch p.State {
	case workspace.PartReady:
		if !d.rest(ctx, r, ch, p, i) {
			return true
		}
		if d.stale.overdue(o) {
			return d.setAside(o, p)
		}
		if !d.enter(ctx, r, ch, o) {
			return true
		}
		defer d.leave(r)
		if err := d.Store.MovePart(store.Move{Part: *p, To: workspace.PartSending}); err != nil {
			return d.lost(p, err)
		}
		p.State, p.Tries = workspace.PartSending, p.Tries+1
		return d.send(ctx, r, ch, o, p)
	case workspace.PartSending:
		if p.Epoch < d.Store.Epoch() {
			return d.doubt(p, workspace.DoubtEnded)
		}
		if !d.enter(ctx, r, ch, o) {
			return true
		}
		defer d.leave(r)
		return d.send(ctx, r, ch, o, p)
	case workspace.PartLive:
		return d.edit(ctx, r, ch, o, p)
	case workspace.PartUnknown:
		return d.resolve(ctx, r, ch, o, p)
	}
	return true // sent, cancelled, parked, dead
}

// setAside parks a part that is too late to be sent unasked. A doubt about it stays.
func (d *Outbox) setAside(o *workspace.Outbound, p *workspace.Part) bool {
	d.settle(p, store.Move{To: workspace.PartParked, Doubt: p.Doubt, Error: "past its age"})
	d.stale.late(o)
	return true
}

// send makes the network call of a part that is stored as sending.
func (d *Outbox) send(ctx context.Context, r *room, ch *transport.Channel, o *workspace.Outbound, p *workspace.Part) bool {
	post, err := d.post(ch, r, o, p)
	if err != nil {
		return d.dead(r, o, p, err)
	}
	r.pass.begin()
	send := Starter(ch.Adapter.Send)
	if r.job.start != nil && o.State == workspace.OutOpen {
		send = r.job.start
	}
	id, err := d.call(ctx, r, func(ctx context.Context) (channels.MessageID, error) { return send(ctx, post) })
	if err == nil {
		switch {
		case o.State == workspace.OutOpen && p.Blob == "":
			return d.settle(p, store.Move{To: workspace.PartLive, Remote: id})
		case p.Doubt == workspace.DoubtPlaceholder && ch.Traits.Idempotent: // perhaps that is what people see
			p.RemoteID = id
			return d.found(ctx, r, ch, o, p)
		}
		return d.settle(p, store.Move{To: workspace.PartSent, Remote: id})
	}
	return d.failedSend(r, ch, o, p, err)
}

// networkCall is one that may tell the id of a message.
type networkCall func(context.Context) (channels.MessageID, error)

// call bounds a network call and stamps the room. An adapter that panics may have sent.
func (d *Outbox) call(ctx context.Context, r *room, f networkCall) (id channels.MessageID, err error) {
	defer func() {
		if p := recover(); p != nil {
			d.Log.Error("adapter panicked", "room", r.id, "panic", p, "stack", string(debug.Stack()))
			err = &channels.Error{Class: channels.Unknown, Err: fmt.Errorf("panic: %v", p)}
		}
	}()
	// a shutdown lets a send that has begun come to its answer
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendTimeout)
	defer cancel()
	id, err = f(ctx)
	d.mu.Lock()
	r.last = d.Now()
	d.mu.Unlock()
	return id, err
}

// failedSend decides what a failed send means. The adapter has classified, nothing is guessed here.
func (d *Outbox) failedSend(r *room, ch *transport.Channel, o *workspace.Outbound, p *workspace.Part, err error) bool {
	var e *channels.Error
	if !errors.As(err, &e) {
		e = &channels.Error{Class: channels.Unknown, Err: err}
	}
	switch e.Class {
	case channels.Retry:
		if d.enough(o, p.Tries) {
			return d.dead(r, o, p, err)
		}
		wait := e.After
		if wait > 0 {
			d.hold(r, wait)
		} else {
			wait = transport.Backoff(p.Tries)
		}
		if e.Global {
			ch.Hold(d.Now().Add(wait))
		}
		p.NextAt = d.Now().Add(wait)
		return d.again(p, p.Doubt, err)
	case channels.Fatal:
		ch.Suspect(err)
		p.NextAt = d.Now().Add(transport.Backoff(p.Tries))
		return d.again(p, p.Doubt, err)
	case channels.PeerGone:
		if e.Moved != "" && p.Tries < maxTries {
			return d.moved(r, p, e)
		}
		return d.dead(r, o, p, err)
	case channels.BadMessage:
		return d.dead(r, o, p, err)
	}
	return d.doubt(p, err)
}

// enough says that an answer was tried often and long enough to give it up.
func (d *Outbox) enough(o *workspace.Outbound, tries int) bool {
	return tries >= maxTries && d.Now().Sub(o.Created) > giveUpAfter
}

// again puts a part back to ready, with the doubt that there is about it now: what was refused just now may all the same
// have been sent before.
func (d *Outbox) again(p *workspace.Part, doubt workspace.Doubt, err error) bool {
	next := p.NextAt
	d.settle(p, store.Move{To: workspace.PartReady, Doubt: doubt, Error: d.short(err), NextAt: next})
	p.NextAt = next
	return false
}

// settle records a move without waiting for its commit.
func (d *Outbox) settle(p *workspace.Part, m store.Move) bool {
	m.Part = *p
	d.Store.Receipt(m)
	p.State, p.Doubt, p.Error = m.To, m.Doubt, m.Error
	if m.Remote != "" {
		p.RemoteID = m.Remote
	}
	return true
}

// lost ends a job whose part somebody else has moved: a stop, an operator.
func (d *Outbox) lost(p *workspace.Part, err error) bool {
	if errors.Is(err, workspace.ErrConflict) {
		d.Log.Debug("part state changed concurrently", "outbound", p.OutboundID, "part", p.N, "err", err)
	} else {
		d.Log.Error("part cannot be moved", "outbound", p.OutboundID, "part", p.N, "err", err)
	}
	p.State = workspace.PartCancelled
	return true
}

// dead gives a part up, with its rest, and tells the room once if the room can still be told.
func (d *Outbox) dead(r *room, o *workspace.Outbound, p *workspace.Part, err error) bool {
	d.Log.Error("answer is a dead letter", "room", d.where(r).String(), "outbound", o.ID, "part", p.N, "run", o.RunID, "err", err)
	var notice *store.NewOutbound
	if channels.ClassOf(err) != channels.PeerGone {
		notice = undelivered(o)
	}
	move := store.Move{Part: *p}
	switch {
	case errors.As(err, &move.Doubt):
	case p.Doubt == workspace.DoubtMarked: // what it repeats may be there: a retry is marked too
		move.Doubt = workspace.DoubtMarked
	default:
		move.Error = d.short(err)
	}
	out, storeErr := d.Store.Dead(move, notice)
	if storeErr != nil {
		return d.lost(p, storeErr)
	}
	p.State = workspace.PartDead
	d.PushAll(out)
	return true
}

// undelivered is the one notice of an answer, or of a file, that its room does not get; nil: nobody waits for it.
func undelivered(o *workspace.Outbound) *store.NewOutbound {
	n := &store.NewOutbound{RoomID: o.RoomID, RunID: o.RunID, Kind: workspace.OutNotice, OnUnknown: workspace.DropUnknown}
	switch o.Kind {
	case workspace.OutAnswer:
		n.Key = "run:" + string(o.RunID) + ":notice:undelivered"
		n.Text = fmt.Sprintf("I have an answer but could not deliver it here (run %s).", workspace.Short(o.RunID))
	case workspace.OutFile:
		n.Key = o.Key + ":undelivered"
		n.Text = fmt.Sprintf("I could not deliver the file `%s` here (run %s).", workspace.Line(o.Text, 80), workspace.Short(o.RunID))
	default:
		return nil
	}
	n.Spans = []store.Span{{To: len(n.Text)}}
	return n
}

// moved follows a group that became a supergroup.
func (d *Outbox) moved(r *room, p *workspace.Part, e *channels.Error) bool {
	from := d.where(r)
	if err := d.Moves.Follow(from, e.Moved); err != nil {
		d.Log.Error("room cannot follow its peer", "room", from.String(), "err", err)
	}
	d.mu.Lock()
	r.addr.Peer = e.Moved
	d.mu.Unlock()
	return d.again(p, p.Doubt, e)
}

// short is what is stored of an error; nil: nothing.
func (d *Outbox) short(err error) string {
	if err == nil {
		return ""
	}
	return d.Hide.Redact(clip.Runes(err.Error(), maxError))
}

const maxError = 300 // characters
