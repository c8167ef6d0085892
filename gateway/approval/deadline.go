// Deadlines: when a question is answered by nobody.

package approval

import (
	"sync"
	"time"

	"parley/workspace"
)

// deadlines has each question expire after as long as it may stand. It goes by the machine's steady clock: setting the wall
// clock neither ends a question nor lets it stand longer.
type deadlines struct {
	now    func() time.Time
	expire func(workspace.ApprovalID) // is called in a goroutine of its own, and must not block

	mu   sync.Mutex
	due  map[workspace.ApprovalID]*deadline
	shut bool
}

type deadline struct {
	at    time.Time
	timer *time.Timer
}

func newDeadlines(now func() time.Time, expire func(workspace.ApprovalID)) *deadlines {
	return &deadlines{now: now, expire: expire, due: map[workspace.ApprovalID]*deadline{}}
}

// watch sets the deadline of a question, of whose time what has passed before a restart counts. Once it is set it stays.
func (d *deadlines) watch(ap workspace.Approval) {
	left := remaining(ap, d.now())
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.shut || d.due[ap.ID] != nil {
		return
	}
	id := ap.ID
	d.due[id] = &deadline{at: time.Now().Add(left), timer: time.AfterFunc(left, func() { d.expire(id) })}
}

// remaining is how long a question may still stand by the wall clock, which is all that outlives a restart. A clock that
// was set back since does not make it longer than it was.
func remaining(ap workspace.Approval, now time.Time) time.Duration {
	return max(0, min(ap.Expires.Sub(now), ap.Expires.Sub(ap.Created)))
}

// over says that nobody can answer a question any more.
func (d *deadlines) over(id workspace.ApprovalID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.due[id]
	return l != nil && !time.Now().Before(l.at)
}

// forget is for a question that was answered.
func (d *deadlines) forget(id workspace.ApprovalID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if l := d.due[id]; l != nil {
		l.timer.Stop()
		delete(d.due, id)
	}
}

func (d *deadlines) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shut = true
	for _, l := range d.due {
		l.timer.Stop()
	}
}
