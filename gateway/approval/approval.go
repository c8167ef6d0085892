// Package approval is the questions that turns ask people, and what becomes of them: who may decide (rule.go), which rooms
// are asked and told the answer (rooms.go), the systems of domains that decide themselves (system.go), and when a question
// expires (deadline.go). All of it can be made again from the record, which alone says what was decided.
//
// Goroutines: one for each question that expires, for each system that is asked, and for each orphaned message that is
// closed. Questions.Stop waits for them.
package approval

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"parley/gateway/bus"
	"parley/gateway/live"
	"parley/workspace"
	"parley/workspace/store"
	"parley/workspace/workers"
)

// Store is the units and readers of the store that questions need. *store.Store has them.
type Store interface {
	Ask(store.Ask) (store.Asked, error)
	Decide(store.Verdict) (workspace.Approval, []workspace.Entry, error)

	Approval(workspace.ApprovalID) (workspace.Approval, error)
	ApprovalOf(run workspace.RunID, call string) (workspace.Approval, error)
	RunApprovals(workspace.RunID) ([]workspace.Approval, error)
	OpenApprovals() ([]workspace.Approval, error)
	IDs() *workspace.IDs
}

// Options of Questions; all of them are needed.
type Options struct {
	Rule    *Rule
	Rooms   *Rooms
	Store   Store
	Systems http.RoundTripper // to the systems of domains
	Feed    *live.Feed
	Bus     *bus.Bus // wakes the session of a question that was decided
	Now     func() time.Time
	Log     *slog.Logger
}

// Questions is what turns ask people: each stands until the first answer, or until it expires. Safe for concurrent use.
type Questions struct {
	*Rule
	opt       Options
	base      context.Context
	end       context.CancelFunc
	deadlines *deadlines
	counts    counts

	mu   sync.Mutex
	shut bool
	wg   sync.WaitGroup
}

// New makes one whose goroutines end with base at the latest.
func New(base context.Context, o Options) *Questions {
	q := &Questions{Rule: o.Rule, opt: o}
	q.base, q.end = context.WithCancel(base)
	q.deadlines = newDeadlines(o.Now, func(id workspace.ApprovalID) { q.begin(func(context.Context) { q.expire(id) }) })
	return q
}

// Stop ends timers and waits for what they began. The record has what is left.
func (q *Questions) Stop() {
	q.deadlines.stop()
	q.mu.Lock()
	q.shut = true
	q.mu.Unlock()
	q.end()
	q.wg.Wait()
}

// begin runs f in a goroutine, unless the gateway ends.
func (q *Questions) begin(f func(ctx context.Context)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.shut {
		return
	}
	q.wg.Go(func() {
		defer workers.Guard(q.opt.Log, "approval")
		f(q.base)
	})
}

// Current is a question as it stands now: one that waits and whose time is over expires first.
func (q *Questions) Current(ap workspace.Approval) (workspace.Approval, error) {
	if ap.State != workspace.ApprovalPending || !q.deadlines.over(ap.ID) {
		return ap, nil
	}
	q.expire(ap.ID)
	return q.opt.Store.Approval(ap.ID)
}

// expire is the answer of nobody, which is a no.
func (q *Questions) expire(id workspace.ApprovalID) {
	ap, _, err := q.opt.Store.Decide(expired(id))
	switch {
	case err == nil:
		q.opt.Log.Info("approval expired", "approval", ap.ID, "tool", ap.Tool, "session", ap.Session)
		q.Resolved(ap)
	case errors.Is(err, store.ErrClosed), errors.Is(err, workspace.ErrConflict):
	default:
		q.opt.Log.Error("approval not expired", "approval", id, "err", err)
	}
}

func expired(id workspace.ApprovalID) store.Verdict {
	return store.Verdict{ID: id, To: workspace.ApprovalExpired, Via: "expiry", Reason: "nobody answered in time"}
}

// Resolved does what follows from an answer: the messages that asked say it, pages count again, the turn goes on.
func (q *Questions) Resolved(ap workspace.Approval) {
	q.deadlines.forget(ap.ID)
	q.counts.add(ap)
	if ap.Grant == workspace.ForSession {
		q.Over(ap) // its time is reckoned from here
	}
	q.opt.Rooms.close(ap)
	q.opt.Feed.Publish(ap.Session, live.Update{Session: ap.SessionID, Run: ap.RunID, Stored: true})
	q.opt.Feed.Needs()
	q.opt.Bus.Wake(ap.Session)
}

// Revoked tells pages that a grant was taken back. What runs already goes on; the next call asks.
func (q *Questions) Revoked() { q.opt.Feed.Needs() }

// CloseOrphan closes a message that was pressed, as far as it asks about what is decided by now and is none of those that are
// known: the network took it without saying so, and it was sent again, or given up. Its buttons would stay for good. Who
// presses it again has this tried again.
func (q *Questions) CloseOrphan(in workspace.Input) {
	press := q.PressOf(in)
	if press == nil {
		return
	}
	ap, err := q.opt.Store.Approval(press.Approval)
	if err != nil || ap.State == workspace.ApprovalPending {
		return
	}
	if edit := q.opt.Rooms.orphan(ap, in.RoomID, in.Data.Target); edit != nil {
		q.begin(edit)
	}
}

// Backlog is the questions of earlier boots, and the messages that ask.
type Backlog struct {
	open     []workspace.Approval
	messages []workspace.Outbound
}

// Backlog reads the questions of earlier boots and sends what was not sent of them. It is done before any run goes on: what
// one asks from then on is this boot's, and must not be taken up as well.
func (q *Questions) Backlog() (b Backlog, err error) {
	if b.open, err = q.opt.Store.OpenApprovals(); err != nil {
		return b, fmt.Errorf("read open approvals: %w", err)
	}
	if b.messages, err = q.opt.Rooms.reopen(); err != nil {
		return b, fmt.Errorf("read messages that ask: %w", err)
	}
	return b, nil
}

// Recover takes up the questions of earlier boots. Their runs are suspended already.
func (q *Questions) Recover(b Backlog) {
	for _, ap := range b.open {
		if ap.State == workspace.ApprovalPending {
			q.deadlines.watch(ap)
			q.askSystem(ap)
		}
	}
	q.opt.Rooms.sweep(b.messages)
}
