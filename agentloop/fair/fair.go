// Package fair shares a number of places among people: turns at once, calls to one model. Who waits is served in
// order, but nobody holds so many places that the others wait for what one person left hanging. It knows nothing of
// what is done in a place, and starts no goroutine.
package fair

import (
	"slices"
	"sync"

	"parley/workspace"
)

// few is the least that one person may hold.
const few = 4

// Why says what a place is waited for.
type Why int

const (
	Busy  Why = iota // all places are taken
	Share            // the person holds as many as one may
)

// Places is a number of places. Safe for concurrent use.
type Places struct {
	mu    sync.Mutex
	total int
	used  int
	held  map[workspace.PersonID]int
	line  []*Ticket // who waits, the smallest number first
}

// Ticket is a place that was asked for.
type Ticket struct {
	C <-chan struct{} // closed when the place is yours

	got   chan struct{}
	who   workspace.PersonID
	order int64
}

// New makes total places, all free.
func New(total int) *Places {
	return &Places{total: max(total, 1), held: map[workspace.PersonID]int{}}
}

// Most is how many places one person holds at most: half of them while others leave them free, a quarter of them when
// not, and never less than a few.
func Most(total int) int { return min(total, max(few, total/2)) }

// fits says whether one more place may go to a person. The lock is held.
func (p *Places) fits(who workspace.PersonID) bool {
	if p.used >= p.total {
		return false
	}
	held := p.held[who]
	return held < max(few, p.total/4) || held < Most(p.total) && p.used < p.total/2
}

func (p *Places) give(who workspace.PersonID) {
	p.used++
	p.held[who]++
}

// Try takes a place if there is one for this person now. Whoever may have it and waits has had it before.
func (p *Places) Try(who workspace.PersonID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.fits(who) {
		return false
	}
	p.give(who)
	return true
}

// Given says that the place is yours already.
func (t *Ticket) Given() bool {
	select {
	case <-t.C:
		return true
	default:
		return false
	}
}

// Ask stands in line for a place. Of those who wait, the smallest order is first; equal ones stay as they came.
// Then Leave must follow when the place was given, or Cancel.
func (p *Places) Ask(who workspace.PersonID, order int64) *Ticket {
	p.mu.Lock()
	defer p.mu.Unlock()
	got := make(chan struct{})
	t := &Ticket{C: got, got: got, who: who, order: order}
	if p.fits(who) {
		p.give(who)
		close(t.got)
		return t
	}
	i := len(p.line)
	for i > 0 && p.line[i-1].order > order {
		i--
	}
	p.line = slices.Insert(p.line, i, t)
	return t
}

// Why a ticket is not served yet.
func (p *Places) Why(t *Ticket) Why {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.used < p.total && !p.fits(t.who) {
		return Share
	}
	return Busy
}

// Held is how many places the one who asked has.
func (p *Places) Held(t *Ticket) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held[t.who]
}

// Cancel gives up waiting, or the place if it was given meanwhile.
func (p *Places) Cancel(t *Ticket) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.line, t); i >= 0 {
		p.line = slices.Delete(p.line, i, i+1)
		return
	}
	p.leave(t.who)
}

// Leave gives a person's place back, to the first who waits and may have it.
func (p *Places) Leave(who workspace.PersonID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leave(who)
}

func (p *Places) leave(who workspace.PersonID) {
	p.used--
	if p.held[who]--; p.held[who] == 0 {
		delete(p.held, who)
	}
	p.serve()
}

// serve gives what is free to those who wait and may have it. The lock is held.
func (p *Places) serve() {
	p.line = slices.DeleteFunc(p.line, func(t *Ticket) bool {
		if p.used >= p.total || !p.fits(t.who) {
			return false
		}
		p.give(t.who)
		close(t.got)
		return true
	})
}

// Resize changes how many places there are. Who has one keeps it.
func (p *Places) Resize(total int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total = max(total, 1)
	p.serve()
}

// Count is how many places are taken, and how many there are.
func (p *Places) Count() (used, total int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used, p.total
}
