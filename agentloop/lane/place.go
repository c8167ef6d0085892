package lane

import (
	"context"
	"errors"
	"fmt"
	"time"

	"parley/agentloop"
	"parley/agentloop/fair"
)

// What waiting for a place came to.
type placed int

const (
	taken placed = iota
	stopped
	shutDown
)

// place waits for a place of the turn's requester. The turns of all sessions stand in one line, in the journal's
// order; who has as many places as one person may is passed over until one of them is free again.
func (ls *Lanes) place(l *lane, t *Turn) placed {
	t.holder = t.requester()
	ticket := ls.places.Ask(t.holder, t.first())
	if ticket.Given() {
		return taken
	}
	sign := ls.settings(l.key).Sign
	if sign <= 0 {
		sign = 1 << 62
	}
	timer := time.NewTimer(sign)
	defer timer.Stop()
	ls.hold(l, ls.reason(ticket))
	defer ls.hold(l, "")
	var stop <-chan struct{} // nil: a run that has begun ends itself
	if t.Begun == nil && t.Interrupted == nil {
		stop = t.Context().Done()
	}
	for {
		select {
		case <-ticket.C:
			return taken
		case <-ls.base.Done():
			ls.places.Cancel(ticket)
			return shutDown
		case <-stop:
			if stop = nil; errors.Is(context.Cause(t.Context()), agentloop.ErrStopped) { // its inputs have ended with the stop
				ls.places.Cancel(ticket)
				return stopped
			}
		case <-timer.C:
			why := ls.reason(ticket)
			ls.hold(l, why)
			ls.h.Waits(l.key, t.Inputs, why)
		}
	}
}

func (ls *Lanes) reason(t *fair.Ticket) string {
	if ls.places.Why(t) == fair.Share {
		return fmt.Sprintf("one person has at most %d questions under way at once; this one begins when one of those ends", ls.places.Held(t))
	}
	used, _ := ls.places.Count()
	return fmt.Sprintf("%d conversations are under way, as many as I can have at once; this one is in line", used)
}

func (ls *Lanes) hold(l *lane, why string) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l.held = why
}
