package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/agentloop"
	"parley/agentloop/lane"
	"parley/gateway/api"
	"parley/gateway/delivery"
	"parley/gateway/live"
	"parley/workspace"
	"parley/workspace/store"
)

// maxShown bounds what a person is asked to read, in bytes. What is longer is refused, never shortened.
const maxShown = 256 << 10

// approvals keeps what a turn asks people: who hears it, when it lapses, what becomes of the messages that asked, and
// that the turn goes on. All of it can be made anew from the record.
//
// Goroutines: those of its timers and of domains that are asked elsewhere, for which stop waits.
type approvals struct {
	g     *Gateway
	store *store.Store
	log   *slog.Logger
	now   func() time.Time
	base  context.Context
	end   context.CancelFunc
	// lapsed is what becomes of a question when its time is over.
	lapsed func(workspace.ApprovalID)

	mu   sync.Mutex
	due  map[workspace.ApprovalID]*lapse
	jobs map[workspace.OutboundID]*delivery.Job // of messages that ask
	shut bool
	wg   sync.WaitGroup

	counts decisions
}

// lapse is when a question is answered by nobody. It goes by the machine's steady clock: setting the wall clock neither
// ends a question nor lets it stand longer.
type lapse struct {
	at    time.Time
	timer *time.Timer
}

func newApprovals(g *Gateway) *approvals {
	a := &approvals{g: g, store: g.store, log: g.log, now: g.opt.Now, due: map[workspace.ApprovalID]*lapse{}, jobs: map[workspace.OutboundID]*delivery.Job{}}
	a.base, a.end = context.WithCancel(g.base)
	a.lapsed = a.expire
	return a
}

// stop ends timers and waits for what they began. The record has what is left.
func (a *approvals) stop() {
	a.mu.Lock()
	a.shut = true
	for _, l := range a.due {
		l.timer.Stop()
	}
	a.mu.Unlock()
	a.end()
	a.wg.Wait()
}

// begin runs f beside everything else, unless the gateway ends.
func (a *approvals) begin(f func(ctx context.Context)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.shut {
		return
	}
	a.wg.Go(func() {
		defer guard(a.log, "approval")
		f(a.base)
	})
}

// watch sets when a question lapses: after as long as it may stand, of which what has passed before a restart counts.
func (a *approvals) watch(ap workspace.Approval) {
	left := remaining(ap, a.now())
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.shut || a.due[ap.ID] != nil {
		return
	}
	id := ap.ID
	a.due[id] = &lapse{at: time.Now().Add(left), timer: time.AfterFunc(left, func() { a.begin(func(context.Context) { a.lapsed(id) }) })}
}

// remaining is how long a question may still stand by the wall clock, which is all that outlives a restart. A clock that
// was set back since does not make it longer than it was.
func remaining(ap workspace.Approval, now time.Time) time.Duration {
	return max(0, min(ap.Expires.Sub(now), ap.Expires.Sub(ap.Created)))
}

// Overdue says that nobody can answer a question any more.
func (a *approvals) Overdue(id workspace.ApprovalID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.due[id]
	return l != nil && !time.Now().Before(l.at)
}

// expire is the answer of nobody, which is a no.
func (a *approvals) expire(id workspace.ApprovalID) {
	ap, _, err := a.store.Decide(store.Verdict{ID: id, To: workspace.ApprovalExpired, Via: "expiry", Reason: "nobody answered in time"})
	switch {
	case err == nil:
		a.log.Info("nobody answered a question in time", "approval", ap.ID, "tool", ap.Tool, "session", ap.Session)
		a.resolved(ap)
	case errors.Is(err, store.ErrClosed), errors.Is(err, workspace.ErrConflict):
	default:
		a.log.Error("a question cannot lapse", "approval", id, "err", err)
	}
}

// resolved does what follows from an answer: the messages that asked say it, pages count anew, the turn goes on.
func (a *approvals) resolved(ap workspace.Approval) {
	a.mu.Lock()
	if l := a.due[ap.ID]; l != nil {
		l.timer.Stop()
		delete(a.due, ap.ID)
	}
	a.mu.Unlock()
	a.counts.add(ap)
	a.close(ap)
	a.g.feed.Publish(ap.Session, live.Update{Session: ap.SessionID, Run: ap.RunID, Stored: true})
	a.g.feed.Needs()
	a.g.bus.Wake(ap.Session)
}

// close tells the rooms that were asked how it was answered. It can be done again.
func (a *approvals) close(ap workspace.Approval) {
	for _, r := range ap.Body.Rooms {
		text := a.answered(ap)
		o, err := a.store.Outbound(store.NewOutbound{Key: ap.QuestionKey(r.Room), RoomID: r.Room, RunID: ap.RunID, Kind: workspace.OutApproval, Text: text,
			Spans: a.closing(ap, r, text), OnUnknown: workspace.DropUnknown})
		if err != nil {
			a.log.Error("a question cannot be told its answer", "approval", ap.ID, "room", r.Room, "err", err)
			continue
		}
		a.mu.Lock()
		for _, one := range o {
			a.g.deliver.Push(one, false, a.jobs[one.ID])
			delete(a.jobs, one.ID)
		}
		a.mu.Unlock()
	}
}

// push sends messages that ask, each by one job: a second one would send it twice, or believe it cancelled, and its
// buttons would stay when it is answered.
func (a *approvals) push(list []workspace.Outbound) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, o := range list {
		if o.State != workspace.OutOpen {
			a.g.deliver.Push(o, false, nil)
		} else if a.jobs[o.ID] == nil {
			a.jobs[o.ID] = a.g.deliver.Ask(o, a.actions)
		}
	}
}

// leftovers are the questions of earlier boots.
type leftovers struct {
	open     []workspace.Approval
	messages []workspace.Outbound // that ask
}

// left reads the questions of earlier boots and sends what was not sent of them. It is done before any run goes on: what
// one asks from then on is this boot's, and must not be taken up as well.
func (a *approvals) left() (l leftovers, err error) {
	if l.open, err = a.store.OpenApprovals(); err != nil {
		return l, fmt.Errorf("read open questions: %w", err)
	}
	if l.messages, err = a.store.OpenQuestions(); err != nil {
		return l, fmt.Errorf("read messages that ask: %w", err)
	}
	a.push(l.messages)
	return l, nil
}

// recover takes up the questions of earlier boots. Their runs are parked already.
func (a *approvals) recover(l leftovers) {
	for _, ap := range l.open {
		if ap.State == workspace.ApprovalPending {
			a.watch(ap)
			a.handOver(ap)
		}
	}
	a.sweep(l.messages)
}

// sweep closes messages that ask about what is answered, where a crash or a full disk came between.
func (a *approvals) sweep(list []workspace.Outbound) {
	for _, o := range list {
		ap, err := a.store.ApprovalAskedBy(o)
		if err != nil {
			a.log.Error("a message asks about nothing", "outbound", o.ID, "err", err)
			continue
		}
		if ap.State != workspace.ApprovalPending {
			a.close(ap)
		}
	}
}

// pending counts the questions that stand, and how long the oldest has.
func (a *approvals) pending() (n int, oldest time.Duration, err error) {
	open, err := a.store.OpenApprovals()
	for _, ap := range open {
		if ap.State == workspace.ApprovalPending {
			n++
			oldest = max(oldest, a.g.opt.Now().Sub(ap.Created))
		}
	}
	return n, oldest, err
}

// Ask is how a turn asks: it finds the answer to a call, or has a person asked and the run wait.
func (r *recorder) Ask(_ context.Context, w agentloop.Wanted) (agentloop.Answer, error) {
	r.asked = true
	ap, err := r.ts.store.ApprovalOf(r.run.ID, w.Step.CallID)
	if errors.Is(err, workspace.ErrNotFound) {
		return r.askFirst(w)
	}
	if err != nil {
		return agentloop.Answer{}, err
	}
	return r.askedBefore(ap, w)
}

// askFirst asks about a call that nobody was asked about.
func (r *recorder) askFirst(w agentloop.Wanted) (agentloop.Answer, error) {
	a := r.ts.approvals
	if len(w.Question.Shown) > maxShown {
		return agentloop.Answer{Rule: "approval: too long", Refused: fmt.Sprintf("Refused: a person must approve this call and would have to read %d bytes. Make it shorter than %d.", len(w.Question.Shown), maxShown)}, nil
	}
	if granted, err := a.granted(r, w); granted || err != nil {
		return agentloop.Answer{}, err
	}
	before, err := r.ts.store.RunApprovals(r.run.ID)
	if err != nil {
		return agentloop.Answer{}, err
	}
	if i := slices.IndexFunc(before, func(ap workspace.Approval) bool {
		return ap.Hash == w.Hash && (ap.State == workspace.ApprovalDenied || ap.State == workspace.ApprovalExpired)
	}); i >= 0 {
		return agentloop.Answer{Rule: "approval: " + string(before[i].State) + " before",
			Refused: "Refused: the answer to this very call was no already in this turn, and nobody is asked twice."}, nil
	}
	if r.ts.mode(r.lane.Key) == lane.Steer && r.lane.Superseded(0) {
		return wroteInstead(), nil
	}
	ap := workspace.Approval{ID: workspace.ApprovalID(r.ts.store.IDs().New()), RunID: r.run.ID, CallID: w.Step.CallID, SessionID: r.run.SessionID,
		Session: r.lane.Key, Agent: r.key.Agent, Tool: w.Step.Tool, Hash: w.Hash, Requester: r.run.Requester, Role: r.turn.Requester.Role, RoomID: r.room.ID, Domain: w.Domain,
		Body: workspace.ApprovalBody{Shown: workspace.Exact(w.Question.Shown), Args: w.Question.Args, Cwd: w.Question.Cwd, Env: w.Question.Env, Sandbox: w.Question.Sandbox,
			Asked: r.turn.Requester.Name, Grants: w.Grants}}
	ap.Created = r.ts.now()
	ap.Expires = ap.Created.Add(r.snapshot.TTL(w.Domain))
	unit := store.Ask{Run: r.run, Approval: ap}
	unit.Approval.Body.Rooms, unit.Questions = a.audience(&unit.Approval, r)
	got, err := r.ts.store.Ask(unit)
	if err != nil {
		return agentloop.Answer{}, err
	}
	if got.StopBy != "" {
		return agentloop.Answer{Stop: true}, nil
	}
	ap = got.Approval
	a.log.Info("a person is asked about a call", "approval", ap.ID, "tool", ap.Tool, "run", ap.RunID, "session", ap.Session, "domain", ap.Domain)
	a.watch(ap)
	a.push(got.Pushed)
	r.ts.feed.Publish(r.lane.Key, live.Update{Session: r.run.SessionID, Run: r.run.ID, Stored: true})
	r.ts.feed.Needs()
	a.handOver(ap)
	r.waits = &ap
	return agentloop.Answer{Wait: true}, nil
}

// after is the number behind which a message of the requester takes the place of a question; where messages are steered
// in, any that still waits does.
func (r *recorder) after(ap workspace.Approval) int64 {
	if r.ts.mode(r.lane.Key) == lane.Steer {
		return 0
	}
	return ap.Body.After
}

func wroteInstead() agentloop.Answer {
	return agentloop.Answer{Rule: "approval: the person wrote instead", Refused: "Not run: the person wrote a new message instead of approving this. Read it before you go on."}
}

// askedBefore says what became of a question about a call, which is looked at as it would run now.
func (r *recorder) askedBefore(ap workspace.Approval, w agentloop.Wanted) (agentloop.Answer, error) {
	a := r.ts.approvals
	same := ap.Hash == w.Hash
	switch ap.State {
	case workspace.ApprovalPending:
		switch {
		case a.Overdue(ap.ID):
			return r.settle(ap, w, store.Verdict{To: workspace.ApprovalExpired, Via: "expiry", Reason: "nobody answered in time"})
		case r.lane.Superseded(r.after(ap)):
			return r.settle(ap, w, store.Verdict{To: workspace.ApprovalCancelled, By: r.run.Requester, Via: "message", Reason: reasonWrote})
		case !same:
			return r.settle(ap, w, store.Verdict{To: workspace.ApprovalCancelled, Via: "gateway", Reason: reasonChanged})
		}
		got, err := r.ts.store.Ask(store.Ask{Run: r.run, Approval: ap})
		if err != nil || got.StopBy != "" {
			return agentloop.Answer{Stop: true}, err
		}
		if got.Approval.State != workspace.ApprovalPending { // just now
			return r.askedBefore(got.Approval, w)
		}
		a.watch(ap)
		r.waits = &ap
		return agentloop.Answer{Wait: true}, nil
	case workspace.ApprovalApproved:
		switch {
		case !same:
			return r.settle(ap, w, store.Verdict{To: workspace.ApprovalCancelled, Via: "gateway", Reason: reasonChanged})
		case !a.g.control.Stands(ap):
			return r.settle(ap, w, store.Verdict{To: workspace.ApprovalCancelled, Via: "gateway", Reason: reasonRights})
		}
		return agentloop.Answer{Approval: ap.ID}, nil
	case workspace.ApprovalConsumed:
		return agentloop.Answer{}, nil // begun by an earlier try; what may run again does
	case workspace.ApprovalDenied:
		said := "Refused: " + a.nameOf(ap) + " said no."
		if ap.Reason != "" {
			said += " Their words: " + strings.TrimRight(workspace.Line(ap.Reason, 300), ". ") + "."
		}
		return agentloop.Answer{Rule: "approval: denied", Refused: said + " Do not try it in another way."}, nil
	case workspace.ApprovalExpired:
		return agentloop.Answer{Rule: "approval: expired", Refused: fmt.Sprintf("Refused: nobody approved it within %s, which is a no. Say so.", ap.Expires.Sub(ap.Created).Round(time.Second))}, nil
	}
	if ap.Reason == reasonWrote {
		return wroteInstead(), nil
	}
	return agentloop.Answer{Rule: "approval: cancelled", Refused: "Not run: " + ap.Reason + ". If it is still wanted, make the call again; a person will be asked anew."}, nil
}

// Why a question is taken back.
const (
	reasonWrote   = "the person wrote instead"
	reasonChanged = "what would run now is not what was asked about"
	reasonRights  = "who approved it may not do so any more"
)

// settle takes a question back, unless somebody was quicker.
func (r *recorder) settle(ap workspace.Approval, w agentloop.Wanted, v store.Verdict) (agentloop.Answer, error) {
	v.ID = ap.ID
	now, _, err := r.ts.store.Decide(v)
	if err == nil {
		r.ts.approvals.resolved(now)
	} else if !errors.Is(err, workspace.ErrConflict) {
		return agentloop.Answer{}, err
	}
	return r.askedBefore(now, w)
}

// granted says whether the requester was given leave to use the tool for the rest of this session.
func (a *approvals) granted(r *recorder, w agentloop.Wanted) (bool, error) {
	if w.Domain != "" || !slices.Contains(w.Grants, workspace.ForSession) {
		return false, nil
	}
	list, err := a.store.SessionGrants(r.run.SessionID, w.Step.Tool, r.key.Agent, r.run.Requester)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(list, a.g.control.Stands), nil
}

// nameOf is who decided, as people call them.
func (a *approvals) nameOf(ap workspace.Approval) string { return a.g.control.DeciderName(ap) }

// mayAnswer says whether a person may decide about a question somewhere.
func (a *approvals) mayAnswer(ap workspace.Approval, person workspace.PersonID) bool {
	p, err := a.store.PersonByID(person)
	return err == nil && a.g.control.Decides(ap, workspace.Actor{Person: p.ID, Role: p.Role}) == nil
}

// decisions counts how questions were answered, by domain, for /metrics.
type decisions struct {
	mu sync.Mutex
	n  map[decision]int64
}

type decision struct {
	domain string
	state  workspace.ApprovalState
}

func (d *decisions) add(ap workspace.Approval) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.n == nil {
		d.n = map[decision]int64{}
	}
	d.n[decision{ap.Domain, ap.State}]++
}

// hold ends a pass whose turn has not ended.
func (r *recorder) hold(t *lane.Turn, why string, after int64) {
	open, j := r.sign.stop()
	r.sign.rest(why)
	r.ts.transcripts.Forget(r.lane.Key) // what was said is in the record; a wait may be long
	r.ts.feed.Settle(r.lane.Key)
	t.Hold(held{run: r.run.ID, open: open, job: j}, why, after)
}

// held is a run that lies still, handed to its lane.
type held struct {
	run  workspace.RunID
	open *workspace.Outbound // its streamed answer
	job  *delivery.Job
}

// waitsFor is what people are told that a turn waits for.
func waitsFor(ap workspace.Approval) string {
	if ap.Domain != "" {
		return fmt.Sprintf("it waits for the owner of %s to decide about %s (approval %s)", ap.Domain, ap.Tool, workspace.Short(ap.ID))
	}
	return fmt.Sprintf("it waits for an owner to approve %s (approval %s)", ap.Tool, workspace.Short(ap.ID))
}

const pausedWhy = "it is paused"

// metrics writes how many questions stand, for how long, and how they were answered since the start.
func (a *approvals) metrics(w io.Writer) {
	n, oldest, err := a.pending()
	if err != nil {
		a.log.Error("open questions cannot be counted", "err", err)
	}
	api.Metric(w, "parley_approvals_pending", "gauge", "Questions that wait for a person.", n)
	api.Metric(w, "parley_approvals_oldest_seconds", "gauge", "Age of the oldest of them.", oldest.Seconds())
	a.counts.mu.Lock()
	defer a.counts.mu.Unlock()
	list := slices.SortedFunc(maps.Keys(a.counts.n), func(x, y decision) int {
		return cmp.Or(strings.Compare(x.domain, y.domain), strings.Compare(string(x.state), string(y.state)))
	})
	// Prometheus wants all samples of one name together
	fmt.Fprint(w, "# HELP parley_approvals_decided_total Questions by how they were answered.\n# TYPE parley_approvals_decided_total counter\n")
	for _, d := range list {
		fmt.Fprintf(w, "parley_approvals_decided_total{domain=%q,state=%q} %d\n", d.domain, d.state, a.counts.n[d])
	}
}
