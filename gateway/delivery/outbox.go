// Package delivery is the way out: a queue for each room, in which answers are sent part by part, in the order of the
// journal, each after the commit that says so. What a send came to is recorded and never guessed; a part of which nobody
// knows whether it was sent is a doubt (doubt.go), and what comes too late is set aside (stale.go).
//
// Goroutines: one for each room with something to send, those that Go was given, and the timer's of Stale. Drain and
// Stale.Stop wait for them.
package delivery

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"parley/channels"
	"parley/gateway/transport"
	"parley/workspace"
	"parley/workspace/blob"
	"parley/workspace/store"
	"parley/workspace/workers"
)

// Limits of delivery.
const (
	sendTimeout = 45 * time.Second // of one network call; longer than any network's own
	maxTries    = 12               // sends of one part that were surely refused, at least …
	giveUpAfter = 24 * time.Hour   // … and over so long: an outage of the network is no reason to lose an answer
	maxBegins   = 3                // sends of one part that the end of the gateway may interrupt
	maxFinds    = 5                // questions about one part that failed
	paceFor     = time.Minute      // how long a room is paced after a 429
	longestWait = 24 * time.Hour   // that a network asks for before the next send: Telegram has asked for most of a day
	knownRooms  = 10_000           // rooms whose address is remembered
)

// Store is the units and readers of the store that delivery uses. *store.Store has them.
type Store interface {
	Outbound(list ...store.NewOutbound) ([]workspace.Outbound, error)
	MovePart(moves ...store.Move) error
	Receipt(moves ...store.Move) // not waited for
	Dead(m store.Move, notice *store.NewOutbound) ([]workspace.Outbound, error)

	OutboundByID(id workspace.OutboundID) (workspace.Outbound, error)
	InputHandle(id workspace.InputID) (packed string, err error)
	Room(id workspace.RoomID) (workspace.Room, error)
	Epoch() int64
}

// Blobs is where the files of answers are kept.
type Blobs interface {
	Put(data []byte) (ref string, err error)
	Open(ref string) (*blob.File, error)
}

// Options of an Outbox; all of them are needed.
type Options struct {
	Store    Store
	Channels *transport.Channels
	Moves    *transport.Moves
	Blobs    Blobs
	Hide     *workspace.Redactor
	Now      func() time.Time
	Log      *slog.Logger
}

// Outbox is the queues of all rooms. Safe for concurrent use.
type Outbox struct {
	Options
	base    context.Context // ends when sending must stop
	stop    context.CancelFunc
	stale   *Stale
	burst   *burst        // nil: nothing was left by a crash
	workers *workers.Pool // of rooms that send

	mu     sync.Mutex
	rooms  map[workspace.RoomID]*room
	wakes  int           // calls of Wake
	active int           // rooms that send
	quiet  chan struct{} // closed when none does
	ending chan struct{} // closed when no room may wait any longer than until flushed
	once   sync.Once
	flush  time.Time
	shut   bool           // no room begins any more
	others sync.WaitGroup // what Go was given
}

// New makes an outbox that sends until base ends. What is too late it hands to stale, which tells the rooms through it.
func New(base context.Context, o Options, stale *Stale) *Outbox {
	d := &Outbox{Options: o, stale: stale, rooms: map[workspace.RoomID]*room{}, ending: make(chan struct{}), workers: workers.New()}
	d.base, d.stop = context.WithCancel(base)
	stale.push = d.PushAll
	return d
}

// AfterCrash holds back what goes out in the first seconds of a process that began then. It is called before anything is
// pushed.
func (d *Outbox) AfterCrash(began time.Time) { d.burst = newBurst(began) }

// Starter opens a message that grows.
type Starter func(context.Context, channels.Post) (channels.MessageID, error)

// Buttons are the buttons of a message that asks.
type Buttons func(*workspace.Outbound) [][]channels.Action

// Job is one outbound in a room's queue.
type Job struct {
	out     workspace.Outbound
	prev    *Job    // the placeholder that this answer finishes
	start   Starter // opens the message of a placeholder; nil: it is sent
	buttons Buttons // of a question; nil: it has none
	begun   bool    // a send of it was tried
	done    chan struct{}
}

// Done is closed when the room has done with it.
func (j *Job) Done() <-chan struct{} { return j.done }

// Remote is the id of its first message; empty while it is not known.
func (j *Job) Remote() channels.MessageID {
	select {
	case <-j.done:
	default:
		return ""
	}
	if len(j.out.Parts) == 0 {
		return ""
	}
	return j.out.Parts[0].RemoteID
}

// Push queues a stored answer. reserved says that the caller holds the room; prev is the job of the placeholder that the
// answer finishes, or nil.
func (d *Outbox) Push(o workspace.Outbound, reserved bool, prev *Job) *Job {
	return d.push(&Job{out: o, prev: prev}, reserved)
}

// PushAll queues what a unit stored.
func (d *Outbox) PushAll(list []workspace.Outbound) {
	for _, o := range list {
		d.Push(o, false, nil)
	}
}

// Open queues the placeholder of an answer that grows; start opens its message, nil: it is sent as any other.
func (d *Outbox) Open(o workspace.Outbound, start Starter) *Job {
	return d.push(&Job{out: o, start: start}, false)
}

// Ask queues a message that asks, with its buttons.
func (d *Outbox) Ask(o workspace.Outbound, buttons Buttons) *Job {
	return d.push(&Job{out: o, buttons: buttons}, false)
}

func (d *Outbox) push(j *Job, reserved bool) *Job {
	j.done = make(chan struct{})
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

// Reserve holds an idle room whose channel is ready, so that the commit of an answer can have its first part
// `sending`. Then Push or Release must follow.
func (d *Outbox) Reserve(id workspace.RoomID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.rooms[id]
	if r == nil || r.busy || len(r.jobs) > 0 || d.Now().Before(r.until) || d.Now().Before(r.pace) || !d.Channels.Ready(r.addr) || d.shut {
		return false
	}
	var ok bool
	if r.pass, ok = d.burst.try(d.Channels.Find(r.addr)); !ok {
		return false
	}
	r.busy = true
	return true
}

// Release gives a reservation back.
func (d *Outbox) Release(id workspace.RoomID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.rooms[id]
	r.pass.leave()
	r.busy, r.pass = false, nil
	d.run(r)
}

// Recover takes up what earlier processes left undelivered: what is final is queued, and what is open — an answer that
// grew, not a question — is returned by its run, which finishes it.
func (d *Outbox) Recover(list []workspace.Outbound) (open map[workspace.RunID]*workspace.Outbound) {
	open = map[workspace.RunID]*workspace.Outbound{}
	for i := range list {
		o := &list[i]
		d.forgetWaits(o)
		switch {
		case o.State != workspace.OutOpen:
			d.Push(*o, false, nil)
		case o.Kind != workspace.OutApproval:
			d.settleOpen(o)
			open[o.RunID] = o
		}
	}
	return open
}

// forgetWaits drops waits that no network asks for, or that began in the future: the clock was set back since. One that
// still minds says so.
func (d *Outbox) forgetWaits(o *workspace.Outbound) {
	for i := range o.Parts {
		if p := &o.Parts[i]; p.NextAt.Sub(d.Now()) > longestWait || d.Now().Before(o.Created) {
			p.NextAt = time.Time{}
		}
	}
}

// settleOpen decides about the message of a streamed answer that an earlier process was sending. It carried no answer
// text, so it can safely be sent again.
func (d *Outbox) settleOpen(o *workspace.Outbound) {
	for i := range o.Parts {
		p := &o.Parts[i]
		if p.State != workspace.PartSending || p.Epoch == d.Store.Epoch() {
			continue
		}
		d.Store.Receipt(store.Move{Part: *p, To: workspace.PartUnknown, Doubt: workspace.DoubtEnded},
			store.Move{Part: *p, To: workspace.PartReady, Doubt: workspace.DoubtPlaceholder})
		p.State, p.Doubt = workspace.PartReady, workspace.DoubtPlaceholder
	}
}

// Know tells the address of a room, so that it need not be read again.
func (d *Outbox) Know(id workspace.RoomID, addr channels.Address) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.rooms) > knownRooms {
		for id, r := range d.rooms {
			if !r.busy && len(r.jobs) == 0 && d.Now().After(r.pace) {
				delete(d.rooms, id)
			}
		}
	}
	d.room(id).addr = addr
}

// Address of a room, read once.
func (d *Outbox) Address(id workspace.RoomID) (channels.Address, error) {
	d.mu.Lock()
	addr := d.room(id).addr
	d.mu.Unlock()
	if addr != (channels.Address{}) {
		return addr, nil
	}
	stored, err := d.Store.Room(id)
	if err != nil {
		return channels.Address{}, err
	}
	d.Know(id, stored.Address)
	return stored.Address, nil
}

// Go runs a last call to a network beside the rooms; Drain waits for it, so it must be bounded.
func (d *Outbox) Go(f func()) {
	d.others.Go(func() {
		defer workers.Guard(d.Log, "delivery")
		f()
	})
}

// idle is closed when no room sends.
func (d *Outbox) idle() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.active == 0 {
		none := make(chan struct{})
		close(none)
		return none
	}
	return d.quiet
}

// Drain lets rooms send what they have for a while, or until ctx ends, then ends sending. A room that must wait for
// longer is not waited for. What was not begun is ready again, so that the next boot need not doubt it.
func (d *Outbox) Drain(ctx context.Context, flush time.Duration) {
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
	d.others.Wait() // each is bounded
	d.mu.Lock()
	d.shut = true
	d.mu.Unlock()
	d.stop()
	<-d.idle()
	d.workers.Close()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range d.rooms {
		for _, j := range r.jobs {
			for _, p := range j.out.Parts {
				if p.State == workspace.PartSending && p.Epoch == d.Store.Epoch() && !j.begun {
					d.Store.Receipt(store.Move{Part: p, To: workspace.PartReady, Error: "not begun before the gateway ended"})
				}
			}
		}
	}
}
