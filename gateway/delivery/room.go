// One room: its queue, and the waits between its sends.

package delivery

import (
	"context"
	"time"

	"parley/channels"
	"parley/gateway/transport"
	"parley/workspace"
	"parley/workspace/workers"
)

// room is one conversation's queue. Its fields are guarded by Outbox.mu, but for what only its goroutine uses.
type room struct {
	id    workspace.RoomID
	addr  channels.Address
	jobs  []*Job
	busy  bool
	until time.Time // Retry-After: nothing is sent before
	pace  time.Time // until then every send keeps the network's published rate
	last  time.Time // of the last send
	finds int       // questions about the part at hand that failed
	pass  *pass     // of a reservation
	job   *Job      // at hand
	stop  context.CancelFunc
}

// room finds a room or makes it. The lock is held.
func (d *Outbox) room(id workspace.RoomID) *room {
	r := d.rooms[id]
	if r == nil {
		r = &room{id: id}
		d.rooms[id] = r
	}
	return r
}

// where is a room's address now: it moves when a group becomes a supergroup.
func (d *Outbox) where(r *room) channels.Address {
	d.mu.Lock()
	defer d.mu.Unlock()
	return r.addr
}

// run starts the room's goroutine if it has work. The lock is held.
func (d *Outbox) run(r *room) {
	if r.busy || len(r.jobs) == 0 || d.shut {
		return
	}
	r.busy = true
	if d.active++; d.active == 1 {
		d.quiet = make(chan struct{})
	}
	ctx, stop := context.WithCancel(d.base)
	r.stop = stop
	d.workers.Go(func() { // Drain waits for it
		defer d.ended()
		defer stop()
		d.work(ctx, r)
	})
}

func (d *Outbox) ended() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.active--; d.active == 0 {
		close(d.quiet)
	}
}

// Wake has rooms try again whose channel was not there: it may be by now.
func (d *Outbox) Wake() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wakes++
	for _, r := range d.rooms {
		d.run(r)
	}
}

// work sends a room's answers in order until none is left, or until its channel is not there: then they wait for Wake.
func (d *Outbox) work(ctx context.Context, r *room) {
	for ctx.Err() == nil {
		d.mu.Lock()
		if len(r.jobs) == 0 {
			r.busy = false
			d.mu.Unlock()
			return
		}
		j, wakes := r.jobs[0], d.wakes
		d.mu.Unlock()
		there := d.safely(ctx, r, j)
		d.leave(r)
		if ctx.Err() != nil {
			return
		}
		if !there && !d.over() {
			if d.rests(r, wakes) {
				return
			}
			continue
		}
		d.mu.Lock()
		for i := range r.jobs {
			if r.jobs[i] == j {
				r.jobs = append(r.jobs[:i], r.jobs[i+1:]...)
				break
			}
		}
		d.mu.Unlock()
		close(j.done)
	}
}

// rests ends the work of a room whose channel is not there, unless rooms were woken since.
func (d *Outbox) rests(r *room, wakes int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.wakes != wakes {
		return false
	}
	r.busy = false
	return true
}

// over says that the gateway ends: what cannot be sent now is left to the next boot.
func (d *Outbox) over() bool {
	select {
	case <-d.ending:
		return true
	default:
		return false
	}
}

// safely is do; after a panic in rendering or an adapter the answer stays as it is stored, and the room goes on.
func (d *Outbox) safely(ctx context.Context, r *room, j *Job) (there bool) {
	defer workers.Guard(d.Log, "delivery")
	there = true
	return d.do(ctx, r, j)
}

// do brings every part of one answer to an end. It is false where the room's channel is not there, or not any more: then the
// answer stays as it is.
func (d *Outbox) do(ctx context.Context, r *room, j *Job) (there bool) {
	ch, ok := d.channel(ctx, r)
	if !ok {
		return false
	}
	r.job = j
	o := &j.out
	if j.prev != nil && !j.begun { // what became of the placeholder is known here before it is stored
		copyStates(o.Parts, j.prev.out.Parts)
	}
	j.begun = true
	if o.Text == "" && o.BodyRef != "" {
		if full, err := d.Store.OutboundByID(o.ID); err == nil {
			o.Text = full.Text
		}
	}
	for i := range o.Parts {
		p := &o.Parts[i]
		r.finds = 0
		if i > 0 {
			if ch, ok = d.channel(ctx, r); !ok { // it may connect again meanwhile
				return false
			}
		}
		for try := 0; ctx.Err() == nil; try++ {
			if d.part(ctx, r, ch, o, p, i) {
				break
			}
			if try > 0 || p.State != workspace.PartUnknown {
				ch, ok = d.channel(ctx, r) // it may have gone meanwhile
			}
			if !ok {
				return false
			}
		}
		if p.State == workspace.PartDead && p.Doubt != workspace.DoubtDropped {
			return true
		}
	}
	return true
}

func copyStates(to, from []workspace.Part) {
	for i := range min(len(to), len(from)) {
		p := &from[i]
		to[i].State, to[i].RemoteID, to[i].Doubt, to[i].Error, to[i].Epoch, to[i].Tries = p.State, p.RemoteID, p.Doubt, p.Error, p.Epoch, p.Tries
	}
}

// channel waits until the room's channel can send.
func (d *Outbox) channel(ctx context.Context, r *room) (*transport.Channel, bool) {
	addr, err := d.Address(r.id)
	if err != nil {
		d.Log.Error("room of an answer unknown", "room", r.id, "err", err)
		return nil, false
	}
	return d.Channels.Wait(ctx, d.ending, addr)
}

// rest waits for what the room and the network ask: Retry-After, backoff, the pace of further parts.
func (d *Outbox) rest(ctx context.Context, r *room, ch *transport.Channel, p *workspace.Part, i int) bool {
	d.mu.Lock()
	at := r.until
	now := d.Now()
	if p.NextAt.After(at) {
		at = p.NextAt
	}
	if every := ch.Traits.SendEvery; every > 0 && (i > 0 || now.Before(r.pace)) && r.last.Add(every).After(at) {
		at = r.last.Add(every)
	}
	d.mu.Unlock()
	if hold := ch.HeldUntil(); hold.After(at) {
		at = hold
	}
	return d.pause(ctx, r, at.Sub(now))
}

// pause waits. It is false when ctx ended; a wait that outlasts the end of the gateway ends the room's work.
func (d *Outbox) pause(ctx context.Context, r *room, wait time.Duration) bool {
	if wait <= 0 {
		return true
	}
	until := time.Now().Add(wait)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	ending := d.ending
	for {
		select {
		case <-timer.C:
			return true
		case <-ctx.Done():
			return false
		case <-ending:
			ending = nil
			d.mu.Lock()
			late := until.After(d.flush)
			d.mu.Unlock()
			if late {
				r.stop()
				return false
			}
		}
	}
}

// hold has the room wait, and keeps the network's published rate for a while after that.
func (d *Outbox) hold(r *room, wait time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r.until, r.pace = d.Now().Add(wait), d.Now().Add(wait+paceFor)
}

// enter waits for a place in the burst after a crash, if the room does not hold one. A placeholder needs none: it is no
// answer. It is false when ctx ended.
func (d *Outbox) enter(ctx context.Context, r *room, ch *transport.Channel, o *workspace.Outbound) (ok bool) {
	if o.State == workspace.OutOpen || r.pass != nil {
		return true
	}
	r.pass, ok = d.burst.enter(ctx, ch)
	return ok
}

func (d *Outbox) leave(r *room) {
	r.pass.leave()
	r.pass = nil
}
