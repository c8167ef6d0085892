// Package lane gives every session with work one goroutine: turns of a session in order, sessions side by side
// under a cap. It knows queue modes, restarts and interrupts; what happens in a turn is its Handler's.
//
// Goroutines: one per session that has something to do. It ends when nothing waits, and while a turn is held (it waits
// for a person, or is paused); Drain waits for all.
package lane

import (
	"context"
	"slices"
	"sync"
	"time"

	"parley/agentloop"
	"parley/agentloop/fair"
	"parley/workspace"
	"parley/workspace/workers"
)

// Queue modes: what a message does that arrives during a turn.
const (
	Steer     = "steer"     // handed to the running turn at its next tool boundary
	Followup  = "followup"  // answered after it, one by one
	Collect   = "collect"   // answered after it, all at once
	Interrupt = "interrupt" // ends it; the new turn answers both
)

// AlbumWait is how long the items of an album are waited for after the last one that came.
const AlbumWait = 800 * time.Millisecond

// MaxRestarts bounds how often one run is begun again with a further message.
const MaxRestarts = 3

// givenBackWait is how long inputs rest that could not be taken up.
const givenBackWait = 2 * time.Second

// Handler does the work of lanes.
type Handler interface {
	// Turn runs one turn and returns when its end is committed, or when the gateway shuts down.
	Turn(ctx context.Context, t *Turn)
	// Command runs a command that keeps its place in the session's order.
	Command(ctx context.Context, key string, in workspace.Input)
	// Late is told of an edit or delete that was to be steered into a turn which has ended.
	Late(key string, in workspace.Input)
	// Dropped ends inputs that the cap pushed out of a queue, and tells the sender. It is called without a lock
	// from the goroutine that offered, and before its input is taken up.
	Dropped(key string, dropped []workspace.Input, keepLine bool)
	// Waits is told, once, that a turn waits for a place since Settings.Sign, and why. The turn has not begun.
	Waits(key string, inputs []workspace.Input, why string)
	// Behind is told, once a room, that an input waits behind a held turn, and why that is suspended. It is called without
	// a lock from the goroutine that offered.
	Behind(key string, in workspace.Input, why string)
}

// Settings of one session's queue.
type Settings struct {
	Mode     string
	Debounce time.Duration
	Cap      int
	Overflow string // summarize, old, new
	// Sign is the longest that a sender is left without a word while the turn waits for a place; 0: never told.
	Sign time.Duration `json:"-"`
}

// Lanes is all lanes. Safe for concurrent use.
type Lanes struct {
	h        Handler
	settings func(key string) Settings
	now      func() time.Time
	base     context.Context
	stop     context.CancelCauseFunc
	workers  *workers.Pool
	places   *fair.Places

	mu    sync.Mutex
	lanes map[string]*lane
	shut  bool
}

type lane struct {
	key      string
	waiting  []item
	turn     *Turn
	reserved bool               // a commit that begins a turn is under way
	holder   workspace.PersonID // whose place it has then
	held     string             // why its turn waits for a place
	running  bool               // its goroutine is up
	asleep   bool               // its turn is held, and it has no goroutine
	stuck    bool               // its turn does nothing but wait for its model, which fails or has sent nothing yet
	pause    time.Time          // nothing is taken up before
	changed  chan struct{}
}

type item struct {
	workspace.Input
	steerOnly bool
	kept      bool // the cap does not count it
	arrived   time.Time
}

// New makes Lanes under ctx with at most turns turns at once, of which one person has at most fair.Most.
func New(ctx context.Context, turns int, h Handler, settings func(key string) Settings, now func() time.Time) *Lanes {
	base, stop := context.WithCancelCause(ctx)
	return &Lanes{h: h, settings: settings, now: now, base: base, stop: stop, workers: workers.New(), places: fair.New(turns), lanes: map[string]*lane{}}
}

// Reserve holds an idle session and one of a person's places under the cap, so that the commit which journals their
// input can begin the turn as well. It says whether it did; then Start or Release must follow.
func (ls *Lanes) Reserve(key string, who workspace.PersonID) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.shut || ls.lanes[key] != nil {
		return false
	}
	if !ls.places.Try(who) {
		return false
	}
	ls.lanes[key] = &lane{key: key, reserved: true, holder: who, changed: make(chan struct{}, 1)}
	return true
}

// Release gives a reservation back.
func (ls *Lanes) Release(key string) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l := ls.lanes[key]
	ls.places.Leave(l.holder)
	l.reserved = false
	ls.run(l, nil)
}

// Start runs the reserved turn. begun is what the commit returned; the handler finds it in Turn.Begun.
func (ls *Lanes) Start(key string, begun any, inputs ...workspace.Input) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l := ls.lanes[key]
	l.reserved = false
	t := ls.newTurn(l, begun, inputs)
	t.holder = l.holder
	ls.run(l, t)
}

// Resume runs a turn that an earlier boot began. It comes before anything that waits in the session.
func (ls *Lanes) Resume(key string, begun any, inputs ...workspace.Input) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l := ls.lane(key)
	t := ls.newTurn(l, begun, inputs)
	t.needsSlot = true
	ls.run(l, t)
}

// Offer queues an input that is journalled as queued.
func (ls *Lanes) Offer(key string, in workspace.Input) { ls.offer(key, item{Input: in}) }

// Again queues an input that was set aside and is wanted after all: the cap does not count it.
func (ls *Lanes) Again(key string, in workspace.Input) { ls.offer(key, item{Input: in, kept: true}) }

// Steer offers an edit or delete of a message that a running turn has taken.
func (ls *Lanes) Steer(key string, in workspace.Input) {
	ls.offer(key, item{Input: in, steerOnly: true})
}

func (ls *Lanes) offer(key string, it item) {
	set := ls.settings(key)
	it.arrived = ls.now()
	ls.mu.Lock()
	l := ls.lane(key)
	if slices.ContainsFunc(l.waiting, func(w item) bool { return w.Seq == it.Seq }) || l.turn != nil && l.turn.has(it.Seq) {
		ls.mu.Unlock()
		return // the scan and the commit both told of it
	}
	dropped := l.overflow(it, set)
	tell, why := false, ""
	if len(dropped) == 0 || dropped[0].Seq != it.Seq {
		l.insert(it)
		if l.asleep {
			tell, why = ls.disturbHeld(l, it, set)
		} else {
			l.disturb(it, set)
		}
	}
	ls.run(l, nil)
	select {
	case l.changed <- struct{}{}:
	default:
	}
	ls.mu.Unlock()
	if len(dropped) > 0 {
		ls.h.Dropped(key, dropped, set.Overflow == "summarize")
	}
	if tell {
		ls.h.Behind(key, it.Input, why)
	}
}

// insert keeps the journal's order: two commits may be told of in the other order.
func (l *lane) insert(it item) {
	i := len(l.waiting)
	for i > 0 && l.waiting[i-1].Seq > it.Seq {
		i--
	}
	l.waiting = slices.Insert(l.waiting, i, it)
}

// overflow says which inputs the cap pushes out; the new one itself when overflow is "new" or it is a command.
func (l *lane) overflow(it item, set Settings) (dropped []workspace.Input) {
	if it.kept || set.Cap <= 0 {
		return nil
	}
	turns := 0 // of the same mode
	for _, w := range l.waiting {
		if w.Mode == it.Mode && !w.kept {
			turns++
		}
	}
	if turns < set.Cap {
		return nil
	}
	if set.Overflow == "new" || it.Mode == workspace.ModeCommand {
		return []workspace.Input{it.Input}
	}
	for i := 0; i < len(l.waiting) && turns >= set.Cap; i++ {
		if l.waiting[i].Mode == it.Mode && !l.waiting[i].kept {
			dropped = append(dropped, l.waiting[i].Input)
			l.waiting = slices.Delete(l.waiting, i, i+1)
			i--
			turns--
		}
	}
	return dropped
}

// disturb lets a new message end or restart the running turn, where its mode says so.
func (l *lane) disturb(it item, set Settings) {
	t := l.turn
	if t == nil || it.Mode != workspace.ModeTurn || !t.joins(it.Input) || t.cause != nil {
		return
	}
	both := it.steerOnly || set.Mode == Steer || set.Mode == Collect // an edit right behind its message is in every mode part of it
	switch {
	case set.Mode == Interrupt && !t.sealed && !it.steerOnly:
		t.cause = agentloop.ErrInterrupted
	case both && !t.sealed && !t.shown && t.restarts < MaxRestarts && it.arrived.Sub(t.last) <= set.Debounce:
		t.restarts++
		t.last = it.arrived
		t.cause = agentloop.ErrRestart
	default:
		return
	}
	t.cancel(t.cause)
}

func (ls *Lanes) lane(key string) *lane {
	l := ls.lanes[key]
	if l == nil {
		l = &lane{key: key, changed: make(chan struct{}, 1)}
		ls.lanes[key] = l
	}
	return l
}

// run starts the lane's goroutine if there is something to do. The lock is held.
func (ls *Lanes) run(l *lane, first *Turn) {
	if first != nil {
		l.turn = first
	}
	if l.running || l.reserved || l.asleep {
		return
	}
	if ls.shut && l.turn != nil && !l.turn.needsSlot && !l.turn.placeless {
		ls.places.Leave(l.turn.holder) // it was reserved before the shutdown; the next boot resumes the run
	}
	if ls.shut || l.turn == nil && len(l.waiting) == 0 {
		delete(ls.lanes, l.key)
		return
	}
	l.running = true
	ls.workers.Go(func() { ls.work(l) })
}

// work is the lane's goroutine.
func (ls *Lanes) work(l *lane) {
	ls.mu.Lock()
	t := l.turn
	ls.mu.Unlock()
	for {
		if t == nil {
			if t = ls.next(l); t == nil {
				return
			}
			if t.command != nil {
				ls.h.Command(ls.base, l.key, *t.command)
				t = ls.clear(l)
				continue
			}
			if t.late != nil {
				ls.h.Late(l.key, *t.late)
				t = ls.clear(l)
				continue
			}
		}
		if t.needsSlot {
			switch ls.place(l, t) {
			case shutDown:
				ls.end(l)
				return
			case stopped:
				t = ls.clear(l)
				continue
			}
		}
		ls.h.Turn(ls.base, t)
		if !t.placeless {
			ls.places.Leave(t.holder)
		}
		var held bool
		if t, held = ls.after(l, t); held {
			return
		}
	}
}

func (ls *Lanes) clear(l *lane) *Turn {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l.turn = nil
	return nil
}

func (ls *Lanes) end(l *lane) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	delete(ls.lanes, l.key)
}

// after clears the ended turn; an interrupted one is followed at once by the turn that answers both. held says that
// the turn has not ended and is suspended, so that the goroutine has nothing to do.
func (ls *Lanes) after(l *lane, t *Turn) (next *Turn, held bool) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	t.cancel(nil)
	if t.hold != nil && !ls.shut {
		held = ls.sleep(l, t)
		return l.turn, held
	}
	l.turn = nil
	for _, in := range t.back {
		l.insert(item{Input: in, kept: true, arrived: ls.now()})
		l.pause = ls.now().Add(givenBackWait)
	}
	if t.stash == nil || ls.shut {
		return nil, false
	}
	inputs := slices.Clone(t.Inputs)
	if t.ended == nil { // what came behind a stop has a turn of its own
		inputs = append(inputs, l.takeFor(t, ls.now(), false)...)
	}
	next = ls.newTurn(l, nil, inputs)
	next.Interrupted, next.needsSlot = t.stash, true
	if next.ended = t.ended; next.ended != nil { // a stop came after the interrupt: what was interrupted is not taken up
		next.cancel(next.ended)
	}
	l.turn = next
	return next, false
}

// next waits for and takes what comes next in the session; nil ends the goroutine.
func (ls *Lanes) next(l *lane) *Turn {
	for {
		set := ls.settings(l.key)
		ls.mu.Lock()
		if ls.shut || len(l.waiting) == 0 {
			delete(ls.lanes, l.key)
			ls.mu.Unlock()
			return nil
		}
		wait := max(ls.albumWait(l), l.pause.Sub(ls.now()))
		if wait <= 0 {
			t := ls.take(l, set)
			l.turn = t
			ls.mu.Unlock()
			return t
		}
		ls.mu.Unlock()
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-l.changed:
		case <-ls.base.Done():
		}
		timer.Stop()
	}
}

// albumWait is how long the first waiting message may still grow.
func (ls *Lanes) albumWait(l *lane) time.Duration {
	album := l.waiting[0].Data.Album
	if album == "" {
		return 0
	}
	last := l.waiting[0].arrived
	for _, w := range l.waiting {
		if w.Data.Album == album && w.arrived.After(last) {
			last = w.arrived
		}
	}
	return AlbumWait - ls.now().Sub(last)
}

// take removes the inputs of the next turn, command or late edit from the queue.
func (ls *Lanes) take(l *lane, set Settings) *Turn {
	first := l.waiting[0]
	l.waiting = l.waiting[1:]
	switch {
	case first.steerOnly:
		return &Turn{late: &first.Input, lanes: ls, lane: l, cancel: func(error) {}}
	case first.Mode == workspace.ModeCommand:
		return &Turn{command: &first.Input, lanes: ls, lane: l, cancel: func(error) {}}
	}
	inputs := []workspace.Input{first.Input}
	if first.Data.Album != "" {
		l.waiting = slices.DeleteFunc(l.waiting, func(w item) bool {
			same := w.Data.Album == first.Data.Album && w.Person == first.Person
			if same {
				inputs = append(inputs, w.Input)
			}
			return same
		})
	}
	if set.Mode == Collect {
		for len(l.waiting) > 0 && l.waiting[0].Mode == workspace.ModeTurn && l.waiting[0].Person == first.Person && !l.waiting[0].steerOnly {
			inputs = append(inputs, l.waiting[0].Input)
			l.waiting = l.waiting[1:]
		}
	}
	t := ls.newTurn(l, nil, inputs)
	t.needsSlot = true
	t.last = first.arrived
	return t
}

// takeFor removes the waiting messages that may join a turn: its requester's, in its room, with no command before.
// Edits of what it has taken may always; onlyEdits leaves the rest waiting.
func (l *lane) takeFor(t *Turn, now time.Time, onlyEdits bool) (inputs []workspace.Input) {
	blocked := false
	l.waiting = slices.DeleteFunc(l.waiting, func(w item) bool {
		if w.Mode == workspace.ModeCommand {
			blocked = true
		}
		if (blocked || onlyEdits) && !w.steerOnly || w.Mode != workspace.ModeTurn || !t.joins(w.Input) || w.Data.Album != "" && now.Sub(w.arrived) < AlbumWait {
			return false
		}
		inputs = append(inputs, w.Input)
		return true
	})
	return inputs
}
