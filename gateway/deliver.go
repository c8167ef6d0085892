package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"parley/channels"
	"parley/gateway/transport"
	"parley/workspace"
	"parley/workspace/blob"
	"parley/workspace/clip"
	"parley/workspace/store"
)

// Limits of delivery.
const (
	sendTimeout = 45 * time.Second // of one network call; longer than any network's own
	maxTries    = 12               // sends of one part that were surely refused, at least …
	giveUpAfter = 24 * time.Hour   // … and over so long: an outage of the network is no reason to lose an answer
	paceFor     = time.Minute      // how long a room is paced after a 429
)

// deliver is the way out: one queue per room, in the order of the journal. An answer's parts are sent one by one,
// each after the commit that says so; what a send came to is recorded and never guessed.
//
// Goroutines: one per room with something to send. wait returns when all have ended.
type deliver struct {
	store    *store.Store
	channels *transport.Channels // the connected channels
	blobs    blobs
	moves    *transport.Moves
	log      *slog.Logger
	hide     *workspace.Redactor
	now      func() time.Time
	base     context.Context // ends when sending must stop

	parking *parking                                      // nil: answers have no age
	buttons func(*workspace.Outbound) [][]channels.Action // of a message that asks

	burst *burst // nil: nothing was left by a crash

	mu     sync.Mutex
	rooms  map[workspace.RoomID]*room
	active int           // rooms that send
	quiet  chan struct{} // closed when none does
	ending chan struct{} // closed when no room may wait any longer than until flushed
	once   sync.Once
	flush  time.Time
	shut   bool           // no room begins any more
	signs  sync.WaitGroup // last calls of signs that ended

	sent, failed, unknown atomic.Int64
}

type blobs interface {
	Open(ref string) (*blob.File, error)
}

// room is one conversation's queue. Its fields are guarded by deliver.mu, but for what only its goroutine uses.
type room struct {
	id    workspace.RoomID
	addr  channels.Address
	jobs  []*job
	busy  bool
	until time.Time // Retry-After: nothing is sent before
	pace  time.Time // until then every send keeps the network's published rate
	last  time.Time // of the last send
	finds int       // questions about the part at hand that failed
	pass  *pass     // of a reservation
	start starter   // of the job at hand
	stop  context.CancelFunc
}

// starter opens a message that grows.
type starter func(context.Context, channels.Post) (channels.MessageID, error)

// job is one outbound in a room's queue.
type job struct {
	out   workspace.Outbound
	prev  *job          // the placeholder that this answer finishes
	start starter       // opens the message of a placeholder; nil: it is sent
	begun bool          // a send of it was tried
	done  chan struct{} // closed when the room has done with it
}

// Know tells the address of a room, so that it need not be read again.
func (d *deliver) Know(id workspace.RoomID, addr channels.Address) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.rooms) > 10_000 {
		for id, r := range d.rooms {
			if !r.busy && len(r.jobs) == 0 && d.now().After(r.pace) {
				delete(d.rooms, id)
			}
		}
	}
	d.room(id).addr = addr
}

// where is a room's address now: it moves when a group becomes a supergroup.
func (d *deliver) where(r *room) channels.Address {
	d.mu.Lock()
	defer d.mu.Unlock()
	return r.addr
}

func (d *deliver) room(id workspace.RoomID) *room {
	r := d.rooms[id]
	if r == nil {
		r = &room{id: id}
		d.rooms[id] = r
	}
	return r
}

// Reserve holds an idle room whose channel is ready, so that the commit of an answer can have its first part
// `sending`. Then Push or Release must follow.
func (d *deliver) Reserve(id workspace.RoomID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.rooms[id]
	if r == nil || r.busy || len(r.jobs) > 0 || d.now().Before(r.until) || d.now().Before(r.pace) || !d.channels.Ready(r.addr) || d.shut {
		return false
	}
	var ok bool
	if r.pass, ok = d.burst.try(d.channels.Find(r.addr)); !ok {
		return false
	}
	r.busy = true
	return true
}

// Release gives a reservation back.
func (d *deliver) Release(id workspace.RoomID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.rooms[id]
	r.pass.leave()
	r.busy, r.pass = false, nil
	d.run(r)
}

// Push queues a stored answer. reserved says that the caller holds the room; prev is the job of the placeholder
// that the answer finishes, or nil.
func (d *deliver) Push(o workspace.Outbound, reserved bool, prev *job) *job {
	return d.push(&job{out: o, prev: prev, done: make(chan struct{})}, reserved)
}

func (d *deliver) push(j *job, reserved bool) *job {
	d.mu.Lock()
	defer d.mu.Unlock()
	o := &j.out
	r := d.room(o.RoomID)
	i := len(r.jobs)
	for i > 0 && r.jobs[i-1].out.N > o.N {
		i--
	}
	r.jobs = append(r.jobs, nil)
	copy(r.jobs[i+1:], r.jobs[i:])
	r.jobs[i] = j
	if reserved {
		r.busy = false
	}
	d.run(r)
	return j
}

// PushAll queues what a unit stored.
func (d *deliver) PushAll(list []workspace.Outbound) {
	for _, o := range list {
		d.Push(o, false, nil)
	}
}

// run starts the room's goroutine if it has work. The lock is held.
func (d *deliver) run(r *room) {
	if r.busy || len(r.jobs) == 0 || d.shut {
		return
	}
	r.busy = true
	if d.active++; d.active == 1 {
		d.quiet = make(chan struct{})
	}
	ctx, stop := context.WithCancel(d.base)
	r.stop = stop
	go func() { // drain waits for it
		defer d.ended()
		defer stop()
		d.work(ctx, r)
	}()
}

func (d *deliver) ended() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.active--; d.active == 0 {
		close(d.quiet)
	}
}

// work sends a room's answers in order until none is left.
func (d *deliver) work(ctx context.Context, r *room) {
	for ctx.Err() == nil {
		d.mu.Lock()
		if len(r.jobs) == 0 {
			r.busy = false
			d.mu.Unlock()
			return
		}
		j := r.jobs[0]
		d.mu.Unlock()
		d.safely(ctx, r, j)
		d.leave(r)
		if ctx.Err() != nil {
			return
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

// safely is job; after a panic in rendering or an adapter the answer stays as it is stored, and the room goes on.
func (d *deliver) safely(ctx context.Context, r *room, j *job) {
	defer guard(d.log, "delivery")
	d.job(ctx, r, j)
}

// job brings every part of one answer to an end.
func (d *deliver) job(ctx context.Context, r *room, j *job) {
	line, ok := d.address(ctx, r)
	if !ok {
		return // it stays as it is; the next boot looks at it again
	}
	j.begun = true
	r.start = j.start
	o := &j.out
	if j.prev != nil { // what became of the placeholder is known here before it is stored
		copyStates(o.Parts, j.prev.out.Parts)
	}
	if o.Text == "" && o.BodyRef != "" {
		if full, err := d.store.OutboundByKey(o.Key); err == nil {
			o.Text = full.Text
		}
	}
	for i := range o.Parts {
		p := &o.Parts[i]
		r.finds = 0
		if i > 0 {
			if line, ok = d.address(ctx, r); !ok { // the channel may connect anew meanwhile
				return
			}
		}
		for try := 0; ctx.Err() == nil; try++ {
			if d.part(ctx, r, line, o, p, i) {
				break
			}
			if try > 0 || p.State != workspace.PartUnknown {
				line, ok = d.address(ctx, r) // the channel may have gone meanwhile
			}
			if !ok {
				return
			}
		}
		if p.State == workspace.PartDead && p.Error != droppedDoubt {
			return
		}
	}
}

func copyStates(to, from []workspace.Part) {
	for i := range min(len(to), len(from)) {
		to[i].State, to[i].RemoteID, to[i].Error, to[i].Epoch, to[i].Tries = from[i].State, from[i].RemoteID, from[i].Error, from[i].Epoch, from[i].Tries
	}
}

// address waits until the room's channel can send.
func (d *deliver) address(ctx context.Context, r *room) (*transport.Channel, bool) {
	addr, err := d.Address(r.id)
	if err != nil {
		d.log.Error("room of an answer is not known", "room", r.id, "err", err)
		return nil, false
	}
	return d.channels.Wait(ctx, d.ending, addr)
}

// Address of a room, read once.
func (d *deliver) Address(id workspace.RoomID) (channels.Address, error) {
	d.mu.Lock()
	addr := d.room(id).addr
	d.mu.Unlock()
	if addr != (channels.Address{}) {
		return addr, nil
	}
	stored, err := d.store.Room(id)
	if err != nil {
		return channels.Address{}, err
	}
	d.Know(id, stored.Address)
	return stored.Address, nil
}

// part makes one move with a part and says whether it has come to its end.
func (d *deliver) part(ctx context.Context, r *room, line *transport.Channel, o *workspace.Outbound, p *workspace.Part, i int) (ended bool) {
	switch p.State {
	case workspace.PartReady:
		if !d.rest(ctx, r, line, p, i) {
			return true
		}
		if d.parking != nil && d.parking.overdue(o) {
			return d.park(o, p)
		}
		if !d.enter(ctx, r, line, o) {
			return true
		}
		defer d.leave(r)
		if err := d.store.MovePart(store.Move{Part: *p, To: workspace.PartSending}); err != nil {
			return d.lost(p, err)
		}
		p.State, p.Tries = workspace.PartSending, p.Tries+1
		return d.send(ctx, r, line, o, p)
	case workspace.PartSending:
		if p.Epoch < d.store.Epoch() {
			return d.doubt(p, errEnded)
		}
		if !d.enter(ctx, r, line, o) {
			return true
		}
		defer d.leave(r)
		return d.send(ctx, r, line, o, p)
	case workspace.PartLive:
		return d.edit(ctx, r, line, o, p)
	case workspace.PartUnknown:
		return d.resolve(ctx, r, line, o, p)
	}
	return true // sent, cancelled, parked, dead
}

// park sets a part aside that is too late to be sent unasked. A doubt about it stays.
func (d *deliver) park(o *workspace.Outbound, p *workspace.Part) bool {
	why := p.Error
	if why != markedOnce {
		why = "past its age"
	}
	d.settle(p, store.Move{To: workspace.PartParked, Error: why})
	d.parking.answer(o)
	return true
}

// rest waits for what the room and the network ask: Retry-After, backoff, the pace of further parts.
func (d *deliver) rest(ctx context.Context, r *room, line *transport.Channel, p *workspace.Part, i int) bool {
	d.mu.Lock()
	at := r.until
	now := d.now()
	if p.NextAt.After(at) {
		at = p.NextAt
	}
	if every := line.Traits.SendEvery; every > 0 && (i > 0 || now.Before(r.pace)) && r.last.Add(every).After(at) {
		at = r.last.Add(every)
	}
	d.mu.Unlock()
	if hold := line.HeldUntil(); hold.After(at) {
		at = hold
	}
	return d.pause(ctx, r, at.Sub(now))
}

// pause waits. It is false when ctx ended; a wait that outlasts the end of the gateway ends the room's work.
func (d *deliver) pause(ctx context.Context, r *room, wait time.Duration) bool {
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

// enter waits for a place in the burst after a crash, if the room does not hold one. A placeholder needs none: it is no
// answer. It is false when ctx ended.
func (d *deliver) enter(ctx context.Context, r *room, line *transport.Channel, o *workspace.Outbound) (ok bool) {
	if o.State == workspace.OutOpen || r.pass != nil {
		return true
	}
	r.pass, ok = d.burst.enter(ctx, line)
	return ok
}

func (d *deliver) leave(r *room) {
	r.pass.leave()
	r.pass = nil
}

// send makes the network call of a part that is stored as sending.
func (d *deliver) send(ctx context.Context, r *room, line *transport.Channel, o *workspace.Outbound, p *workspace.Part) bool {
	post, err := d.post(line, r, o, p)
	if err != nil {
		return d.dead(r, o, p, err)
	}
	r.pass.begin()
	send := starter(line.Adapter.Send)
	if r.start != nil && o.State == workspace.OutOpen {
		send = r.start
	}
	id, err := d.call(ctx, r, func(ctx context.Context) (channels.MessageID, error) { return send(ctx, post) })
	if err == nil {
		d.sent.Add(1)
		if o.State == workspace.OutOpen && p.Blob == "" {
			return d.settle(p, store.Move{To: workspace.PartLive, Remote: id})
		}
		return d.settle(p, store.Move{To: workspace.PartSent, Remote: id})
	}
	return d.failedSend(r, line, o, p, err)
}

// call bounds a network call and stamps the room. An adapter that panics may have sent.
func (d *deliver) call(ctx context.Context, r *room, f func(context.Context) (channels.MessageID, error)) (id channels.MessageID, err error) {
	defer func() {
		if p := recover(); p != nil {
			d.log.Error("adapter panicked", "room", r.id, "panic", p, "stack", string(debug.Stack()))
			err = &channels.Error{Class: channels.Unknown, Err: fmt.Errorf("panic: %v", p)}
		}
	}()
	// a shutdown lets a send that has begun come to its answer
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendTimeout)
	defer cancel()
	id, err = f(ctx)
	d.mu.Lock()
	r.last = d.now()
	d.mu.Unlock()
	return id, err
}

// failedSend decides what a failed send means. The adapter has classified, nothing is guessed here.
func (d *deliver) failedSend(r *room, line *transport.Channel, o *workspace.Outbound, p *workspace.Part, err error) bool {
	d.failed.Add(1)
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
		d.mu.Lock()
		if wait > 0 {
			r.until, r.pace = d.now().Add(wait), d.now().Add(wait+paceFor)
		} else {
			wait = transport.Backoff(p.Tries)
		}
		d.mu.Unlock()
		if e.Global {
			line.Hold(d.now().Add(wait))
		}
		p.NextAt = d.now().Add(wait)
		return d.again(p, err)
	case channels.Fatal:
		line.Suspect(err)
		p.NextAt = d.now().Add(transport.Backoff(p.Tries))
		return d.again(p, err)
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
func (d *deliver) enough(o *workspace.Outbound, tries int) bool {
	return tries >= maxTries && d.now().Sub(o.Created) > giveUpAfter
}

// again puts a part that was surely not sent back to ready.
func (d *deliver) again(p *workspace.Part, err error) bool {
	next := p.NextAt
	d.settle(p, store.Move{To: workspace.PartReady, Error: d.hide.Redact(short(err)), NextAt: next})
	p.NextAt = next
	return false
}

// errEnded is a doubt that the network is not to blame for: the answer may go out, marked, after each of three crashes.
var errEnded = errors.New("the gateway ended while it was being sent")

// doubt notes that a part may have been sent.
func (d *deliver) doubt(p *workspace.Part, err error) bool {
	d.unknown.Add(1)
	d.log.Warn("a part may have been sent", "outbound", p.OutboundID, "part", p.N, "err", err)
	text := d.hide.Redact(short(err))
	if p.Error == markedOnce && (!errors.Is(err, errEnded) || p.Tries > maxBegins) {
		text = markedOnce
	}
	move := store.Move{Part: *p, To: workspace.PartUnknown, Error: text}
	if err := d.store.MovePart(move); err != nil {
		return d.lost(p, err)
	}
	p.State, p.Error, p.Epoch = workspace.PartUnknown, text, d.store.Epoch()
	return false
}

// settle records a move without waiting for its commit.
func (d *deliver) settle(p *workspace.Part, m store.Move) bool {
	m.Part = *p
	d.store.Receipt(m)
	p.State, p.Error = m.To, m.Error
	if m.Remote != "" {
		p.RemoteID = m.Remote
	}
	return true
}

// lost ends a job whose part somebody else has moved: a stop, an operator.
func (d *deliver) lost(p *workspace.Part, err error) bool {
	if errors.Is(err, workspace.ErrConflict) {
		d.log.Debug("part was moved by somebody else", "outbound", p.OutboundID, "part", p.N, "err", err)
	} else {
		d.log.Error("part cannot be moved", "outbound", p.OutboundID, "part", p.N, "err", err)
	}
	p.State = workspace.PartCancelled
	return true
}

// dead gives a part up, with its rest, and tells the room once if the room can still be told.
func (d *deliver) dead(r *room, o *workspace.Outbound, p *workspace.Part, err error) bool {
	d.log.Error("answer is a dead letter", "room", d.where(r).String(), "outbound", o.ID, "part", p.N, "run", o.RunID, "err", err)
	var notice *store.NewOutbound
	if channels.ClassOf(err) != channels.PeerGone {
		notice = undelivered(o)
	}
	out, storeErr := d.store.Dead(store.Move{Part: *p, Error: d.hide.Redact(short(err))}, notice)
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
		n.Key, n.Text = "run:"+string(o.RunID)+":notice:undelivered", fmt.Sprintf("I have an answer but could not deliver it here (run %s).", workspace.Short(o.RunID))
	case workspace.OutFile:
		n.Key, n.Text = o.Key+":undelivered", fmt.Sprintf("I could not deliver the file `%s` here (run %s).", workspace.Line(o.Text, 80), workspace.Short(o.RunID))
	default:
		return nil
	}
	n.Spans = []store.Span{{To: len(n.Text)}}
	return n
}

// moved follows a group that became a supergroup.
func (d *deliver) moved(r *room, p *workspace.Part, e *channels.Error) bool {
	from := d.where(r)
	if err := d.moves.Follow(from, e.Moved); err != nil {
		d.log.Error("room cannot follow its peer", "room", from.String(), "err", err)
	}
	d.mu.Lock()
	r.addr.Peer = e.Moved
	d.mu.Unlock()
	return d.again(p, e)
}

// idle is closed when no room sends.
func (d *deliver) idle() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.active == 0 {
		none := make(chan struct{})
		close(none)
		return none
	}
	return d.quiet
}

// drain lets rooms send what they have for a while, or until ctx ends, then stops them by stop. A room that must wait for
// longer is not waited for. What was not begun is ready again, so that the next boot need not doubt it.
func (d *deliver) drain(ctx context.Context, flush time.Duration, stop context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, flush)
	defer cancel()
	d.mu.Lock()
	d.flush = time.Now().Add(flush)
	d.mu.Unlock()
	d.once.Do(func() { close(d.ending) })
	select {
	case <-d.idle():
	case <-ctx.Done():
	}
	d.signs.Wait() // each is bounded
	d.mu.Lock()
	d.shut = true
	d.mu.Unlock()
	stop()
	<-d.idle()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range d.rooms {
		for _, j := range r.jobs {
			for _, p := range j.out.Parts {
				if p.State == workspace.PartSending && p.Epoch == d.store.Epoch() && !j.begun {
					d.store.Receipt(store.Move{Part: p, To: workspace.PartReady, Error: "not begun before the gateway ended"})
				}
			}
		}
	}
}

// backoff doubles from a second to five minutes, with a quarter of jitter.
func short(err error) string { return clip.Runes(err.Error(), 300) }
