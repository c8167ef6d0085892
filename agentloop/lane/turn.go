package lane

import (
	"context"
	"slices"
	"time"

	"parley/agentloop"
	"parley/workspace"
)

// Turn is the lane's side of a turn under way. Its methods are for the Handler.
type Turn struct {
	Key         string
	Inputs      []workspace.Input // all that it has taken so far, of one requester
	Begun       any               // of Start and Resume; nil: the handler begins the run
	Interrupted any               // what Stash kept of the turn that this one replaces

	lanes     *Lanes
	lane      *lane
	holder    workspace.PersonID // whose place it has
	needsSlot bool
	placeless bool // it only ends, and takes no place for it
	command   *workspace.Input
	late      *workspace.Input

	// under Lanes.mu
	ctx      context.Context //nolint:containedctx // one try of the turn, replaced by Restart
	cancel   context.CancelCauseFunc
	cause    error // restart or interrupt asked for
	shown    bool
	sealed   bool
	restarts int
	last     time.Time // arrival of its newest message
	stash    any
	back     []workspace.Input // given back
	ended    error             // of a stop: outlives a restart that was under way
	hold     *hold             // set: it has not ended, and is suspended
	woken    bool              // since it was begun
	pausing  bool              // it is to pause at its next step
}

func (ls *Lanes) newTurn(l *lane, begun any, inputs []workspace.Input) *Turn {
	t := &Turn{Key: l.key, Inputs: inputs, Begun: begun, lanes: ls, lane: l, last: ls.now()}
	t.ctx, t.cancel = context.WithCancelCause(ls.base)
	l.stuck = false
	return t
}

func (t *Turn) requester() workspace.PersonID {
	if len(t.Inputs) == 0 {
		return ""
	}
	return t.Inputs[0].Person
}

// first is the place in the journal of what the turn began with.
func (t *Turn) first() int64 {
	if len(t.Inputs) == 0 {
		return 0
	}
	return t.Inputs[0].Seq
}

// joins says whether an input is of the turn's requester and room: a turn answers one person in one place.
func (t *Turn) joins(in workspace.Input) bool {
	return len(t.Inputs) > 0 && in.Person == t.Inputs[0].Person && in.RoomID == t.Inputs[0].RoomID
}

func (t *Turn) has(seq int64) bool {
	return slices.ContainsFunc(t.Inputs, func(in workspace.Input) bool { return in.Seq == seq }) ||
		t.command != nil && t.command.Seq == seq || t.late != nil && t.late.Seq == seq
}

// Context is that of the present try. It ends with agentloop.ErrRestart, ErrInterrupted, ErrStopped or ErrShutdown.
func (t *Turn) Context() context.Context {
	t.lanes.mu.Lock()
	defer t.lanes.mu.Unlock()
	return t.ctx
}

// Cancel ends the present try with a cause.
func (t *Turn) Cancel(cause error) {
	t.lanes.mu.Lock()
	defer t.lanes.mu.Unlock()
	t.cancel(cause)
}

// Shown notes that something was shown or done: from now on no message restarts the turn.
func (t *Turn) Shown() {
	t.lanes.mu.Lock()
	defer t.lanes.mu.Unlock()
	t.shown = true
}

// Stuck notes whether the turn does nothing but wait for its model, which fails or has sent nothing yet.
func (t *Turn) Stuck(stuck bool) {
	t.lanes.mu.Lock()
	defer t.lanes.mu.Unlock()
	t.lane.stuck = stuck
}

// Stuck says whether the running turn of a session is.
func (ls *Lanes) Stuck(key string) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.stuck(key) != nil
}

func (ls *Lanes) stuck(key string) *Turn {
	l := ls.lanes[key]
	if l == nil || l.turn == nil || l.asleep || !l.stuck || l.turn.sealed || l.turn.ended != nil || len(l.turn.Inputs) == 0 {
		return nil
	}
	return l.turn
}

// Anew begins the running turn of a session again from its journal, if it is stuck and match accepts its first input. It says
// whether the turn begins again.
func (ls *Lanes) Anew(key string, match func(first workspace.Input) bool) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	t := ls.stuck(key)
	if t == nil || !match(t.Inputs[0]) {
		return false
	}
	if t.cause == nil {
		t.cause = agentloop.ErrRestart
		t.cancel(t.cause)
	}
	return true
}

// Boundary takes the waiting messages of the requester into the turn where the mode is steer, and in every mode the
// edits of those that it has taken.
func (t *Turn) Boundary() []workspace.Input {
	mode := t.lanes.settings(t.Key).Mode
	t.lanes.mu.Lock()
	defer t.lanes.mu.Unlock()
	t.shown = true
	inputs := t.lane.takeFor(t, t.lanes.now(), mode != Steer)
	t.Inputs = append(t.Inputs, inputs...)
	return inputs
}

// Forgo gives up inputs that Boundary or Restart handed over and that were not committed: the turn was ended, or they
// were, by a stop or a delete that came first.
func (t *Turn) Forgo(inputs []workspace.Input) {
	t.lanes.mu.Lock()
	defer t.lanes.mu.Unlock()
	t.Inputs = slices.DeleteFunc(slices.Clone(t.Inputs), func(in workspace.Input) bool {
		return slices.ContainsFunc(inputs, func(gone workspace.Input) bool { return gone.Seq == in.Seq })
	})
}

// Renew puts newer versions of inputs that the turn has taken in their places.
func (t *Turn) Renew(inputs []workspace.Input) {
	t.lanes.mu.Lock()
	defer t.lanes.mu.Unlock()
	t.Inputs = slices.Clone(t.Inputs)
	for i := range t.Inputs {
		for _, in := range inputs {
			if in.Seq == t.Inputs[i].Seq {
				t.Inputs[i] = in
			}
		}
	}
}

// Restart begins the next try after agentloop.ErrRestart and returns the messages that it takes as well.
func (t *Turn) Restart() []workspace.Input {
	mode := t.lanes.settings(t.Key).Mode
	t.lanes.mu.Lock()
	defer t.lanes.mu.Unlock()
	t.cancel(nil)
	t.ctx, t.cancel = context.WithCancelCause(t.lanes.base)
	t.cause = nil
	if t.ended != nil {
		t.cancel(t.ended)
		return nil
	}
	inputs := t.lane.takeFor(t, t.lanes.now(), mode == Followup || mode == Interrupt) // there only an edit restarts
	t.Inputs = append(t.Inputs, inputs...)
	return inputs
}

// Seal is called before the end is committed. From then on the turn cannot be disturbed; an error says that it has
// been already: agentloop.ErrRestart or ErrInterrupted.
func (t *Turn) Seal() error {
	t.lanes.mu.Lock()
	defer t.lanes.mu.Unlock()
	if t.cause != nil {
		return t.cause
	}
	t.sealed = true
	return nil
}

// Stash keeps how an interrupted turn ended for the one that replaces it: both are one commit.
func (t *Turn) Stash(end any) {
	t.lanes.mu.Lock()
	defer t.lanes.mu.Unlock()
	t.stash = end
}

// GiveBack returns inputs that could not be taken up. After a pause they are first in the session again, before what
// comes meanwhile.
func (t *Turn) GiveBack(inputs []workspace.Input) {
	t.lanes.mu.Lock()
	defer t.lanes.mu.Unlock()
	t.back = inputs
}

// Cancel ends the running turn of a session with a cause, if match accepts its first input. It says whether it did.
func (ls *Lanes) Cancel(key string, cause error, match func(first workspace.Input) bool) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l := ls.lanes[key]
	if l == nil || l.turn == nil || l.turn.sealed || len(l.turn.Inputs) == 0 || !match(l.turn.Inputs[0]) {
		return false
	}
	l.turn.cause, l.turn.ended = nil, cause // a stop outranks a restart that was asked for
	l.turn.shown = true
	l.turn.cancel(cause)
	if l.asleep {
		ls.rouse(l)
	}
	return true
}

// Remove takes inputs out of a queue that were ended elsewhere: stopped, deleted.
func (ls *Lanes) Remove(key string, seqs ...int64) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if l := ls.lanes[key]; l != nil {
		l.waiting = slices.DeleteFunc(l.waiting, func(w item) bool { return slices.Contains(seqs, w.Seq) })
	}
}

// Replace gives a waiting input its edited text.
func (ls *Lanes) Replace(key string, seq int64, text string) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l := ls.lanes[key]
	if l == nil {
		return
	}
	for i := range l.waiting {
		if l.waiting[i].Seq == seq {
			l.waiting[i].Text = text
		}
	}
}

// View of one lane, for /status and /queue.
type View struct {
	Running   bool
	Run       []workspace.Input // inputs of the turn
	Requester workspace.PersonID
	Waiting   []workspace.Input
	Held      string // why the turn has not begun, or is suspended; empty: it runs
	Asleep    bool   // it has begun, and is suspended
}

// Look returns what a session is doing.
func (ls *Lanes) Look(key string) View {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l := ls.lanes[key]
	if l == nil {
		return View{}
	}
	v := View{Running: l.turn != nil && l.turn.command == nil, Held: l.held}
	if l.asleep {
		v.Held, v.Asleep = l.turn.hold.why, true
	}
	if l.turn != nil {
		v.Run, v.Requester = slices.Clone(l.turn.Inputs), l.turn.requester()
	}
	for _, w := range l.waiting {
		v.Waiting = append(v.Waiting, w.Input)
	}
	return v
}

// Count is how many lanes have work, and how many turns run.
func (ls *Lanes) Count() (lanes, turns int) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	turns, _ = ls.places.Count()
	return len(ls.lanes), turns
}

// Drain takes up nothing new, lets running turns end until ctx does, then ends them with agentloop.ErrShutdown:
// their runs stay running and the next boot resumes them. It returns when every goroutine has ended.
func (ls *Lanes) Drain(ctx context.Context) {
	ls.mu.Lock()
	ls.shut = true
	for key, l := range ls.lanes {
		if l.asleep { // what is suspended is so in the record
			delete(ls.lanes, key)
		}
	}
	ls.mu.Unlock()
	done := make(chan struct{})
	go func() {
		ls.workers.Close()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		ls.stop(agentloop.ErrShutdown)
		<-done
	}
	ls.stop(nil)
}
