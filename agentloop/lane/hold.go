package lane

import (
	"context"
	"math"
	"slices"

	"parley/agentloop"
	"parley/workspace"
)

// hold is why a turn that has not ended is suspended: it has neither goroutine nor place, and keeps its session.
type hold struct {
	begun any
	why   string
	after int64                     // a message of its requester with a larger number wakes it
	told  map[workspace.RoomID]bool // rooms that know that they wait behind it
}

// Hold is called by the Handler at the end of Turn for a turn that has not ended. The session stays its own; it goes
// on, with Begun as given, when Wake is called, when it is cancelled, and when its requester writes a message with a larger
// number than after. why is a half sentence for people.
func (t *Turn) Hold(begun any, why string, after int64) {
	t.lanes.mu.Lock()
	defer t.lanes.mu.Unlock()
	t.hold = &hold{begun: begun, why: why, after: after, told: map[workspace.RoomID]bool{}}
}

// Park is Hold for a turn of an earlier boot.
func (ls *Lanes) Park(key string, begun any, why string, after int64, inputs ...workspace.Input) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l := ls.lane(key)
	t := ls.newTurn(l, begun, inputs)
	t.hold = &hold{begun: begun, why: why, after: after, told: map[workspace.RoomID]bool{}}
	l.turn, l.asleep = t, true
}

// Wake lets the held turn of a session go on. One that is about to be held goes on at once, so that no wake-up is lost.
func (ls *Lanes) Wake(key string) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l := ls.lanes[key]
	if l == nil || l.turn == nil {
		return
	}
	l.turn.woken = true
	if l.asleep {
		ls.rouse(l)
	}
}

// Pausing asks the turn of a session, if match accepts its first input, to pause at its next step, or not to.
func (ls *Lanes) Pausing(key string, on bool, match func(first workspace.Input) bool) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if l := ls.lanes[key]; l != nil && l.turn != nil && len(l.turn.Inputs) > 0 && match(l.turn.Inputs[0]) {
		l.turn.pausing = on
	}
}

// Pausing says whether the turn was asked to pause.
func (t *Turn) Pausing() bool {
	t.lanes.mu.Lock()
	defer t.lanes.mu.Unlock()
	return t.pausing
}

// Never is behind every message: nothing that its requester writes wakes such a turn.
const Never = int64(math.MaxInt64)

// Superseded says whether the turn's requester has written again since the numbered input: what was asked in their name
// is asked no more.
func (t *Turn) Superseded(after int64) bool {
	t.lanes.mu.Lock()
	defer t.lanes.mu.Unlock()
	return t.superseded(after)
}

func (t *Turn) superseded(after int64) bool {
	return slices.ContainsFunc(t.lane.waiting, func(w item) bool { return w.Seq > after && t.joins(w.Input) })
}

// sleep leaves a lane without its goroutine, if nothing has happened since that wakes its turn. The lock is held.
func (ls *Lanes) sleep(l *lane, t *Turn) (slept bool) {
	if t.woken || t.ended != nil || t.cause != nil || t.superseded(t.hold.after) {
		l.turn = ls.revived(l, t)
		return false
	}
	l.turn, l.asleep, l.running = t, true, false
	return true
}

// rouse starts the lane of a held turn again. The lock is held.
func (ls *Lanes) rouse(l *lane) {
	t := ls.revived(l, l.turn)
	l.asleep = false
	ls.run(l, t)
}

// revived is a held turn that goes on. One that was cancelled needs no place: it only ends. The lock is held.
func (ls *Lanes) revived(l *lane, t *Turn) *Turn {
	n := &Turn{Key: t.Key, Inputs: t.Inputs, Begun: t.hold.begun, lanes: ls, lane: l, shown: true, last: t.last, needsSlot: true, pausing: t.pausing}
	n.ctx, n.cancel = context.WithCancelCause(ls.base)
	if n.ended, n.cause = t.ended, t.cause; n.ended != nil {
		n.cause, n.needsSlot, n.placeless = nil, false, true
		n.cancel(n.ended)
	} else if n.cause != nil {
		n.cancel(n.cause)
	}
	return n
}

// disturbHeld lets a message that comes to a held turn wake it, or says whom to tell that it waits. The lock is held.
func (ls *Lanes) disturbHeld(l *lane, it item, set Settings) (tell bool, why string) {
	t := l.turn
	switch {
	case it.Seq > t.hold.after && t.joins(it.Input):
		if set.Mode == Interrupt && it.Mode == workspace.ModeTurn && !it.steerOnly {
			t.cause = agentloop.ErrInterrupted
		}
		ls.rouse(l)
		return false, ""
	case it.steerOnly || t.hold.told[it.RoomID]:
		return false, ""
	}
	t.hold.told[it.RoomID] = true
	return true, t.hold.why
}
