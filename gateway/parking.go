package gateway

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/gateway/transport"
	"parley/workspace"
	"parley/workspace/store"
)

// parking sets aside what is older than stale_after, messages and answers, and tells each room once per outage.
//
// Goroutines: its timer's, for which stop waits.
type parking struct {
	g     *Gateway
	mu    sync.Mutex
	rooms map[workspace.RoomID]*backlog
	seen  map[int64]bool                // messages that are set aside, or about to be
	late  map[workspace.OutboundID]bool // answers that were told of in this boot
	told  map[workspace.RoomID]told
	said  time.Time // when a clock that seems wrong was last spoken of
	timer *time.Timer
	shut  bool
	wg    sync.WaitGroup
}

// backlog is what a room is not told of yet.
type backlog struct {
	inputs  []workspace.Input
	answers int
}

// told is how many outages a room was told of in this boot, and when it was last.
type told struct {
	n  int
	at time.Time
}

const (
	parkAfter = 2 * time.Second // how long the backlog of a room may still grow before it is told
	catchUp   = 5 * time.Minute // how long after an outage what comes may be from before it
)

func newParking(g *Gateway) *parking {
	return &parking{g: g, rooms: map[workspace.RoomID]*backlog{}, seen: map[int64]bool{}, late: map[workspace.OutboundID]bool{},
		told: map[workspace.RoomID]told{}}
}

// old says that a message has waited longer than stale_after. What was written since the start is never older than
// the start, whatever the clock was set to meanwhile; networks cut seconds off. And what comes live, on a line that
// has long been up, cannot be old: then it is the clock that is wrong.
func (p *parking) old(sent time.Time, l *transport.Channel) bool {
	if sent.IsZero() || !p.aged(sent) {
		return false
	}
	if l == nil || l.CatchingUp() {
		return true
	}
	p.doubtClock(sent)
	return false
}

// aged says that a moment is longer ago than stale_after, as far as this machine's clock can be trusted.
func (p *parking) aged(t time.Time) bool {
	after := p.g.snapshot().StaleAfter
	if after <= 0 || p.g.opt.Now().Sub(t) <= after {
		return false
	}
	return t.Before(p.g.began.Add(-time.Minute)) || time.Since(p.g.booted) > after
}

// overdue says that an answer is past its age: too late to be sent unasked.
func (p *parking) overdue(o *workspace.Outbound) bool {
	return !o.NotAfter.IsZero() && p.g.opt.Now().After(o.NotAfter) && p.aged(o.Created)
}

// doubtClock says so, once an hour.
func (p *parking) doubtClock(sent time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.g.opt.Now()
	if !p.said.IsZero() && now.Sub(p.said) < time.Hour && now.After(p.said) {
		return
	}
	p.said = now
	p.g.log.Warn("this machine's clock seems to be wrong: a message that comes live is old by it", "sent", sent, "now", now)
}

// has says that a queued message is about to be set aside.
func (p *parking) has(seq int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen[seq]
}

// park sets a message aside that is journalled as queued.
func (p *parking) park(in workspace.Input) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen[in.Seq] {
		return
	}
	p.seen[in.Seq] = true
	b := p.backlog(in.RoomID)
	b.inputs = append(b.inputs, in)
	p.soon()
}

// answer notes that an answer was set aside.
func (p *parking) answer(o *workspace.Outbound) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.late[o.ID] {
		return
	}
	p.late[o.ID] = true
	p.backlog(o.RoomID).answers++
	p.soon()
}

func (p *parking) backlog(room workspace.RoomID) *backlog {
	if p.rooms[room] == nil {
		p.rooms[room] = &backlog{}
	}
	return p.rooms[room]
}

func (p *parking) soon() {
	switch {
	case p.shut:
	case p.timer == nil:
		p.timer = time.AfterFunc(parkAfter, p.tell)
	default:
		p.timer.Reset(parkAfter)
	}
}

// tell parks what came and sends each room its one notice.
func (p *parking) tell() {
	p.mu.Lock()
	if p.shut {
		p.mu.Unlock()
		return
	}
	p.wg.Add(1)
	rooms := p.rooms
	p.rooms = map[workspace.RoomID]*backlog{}
	p.mu.Unlock()
	defer p.wg.Done()
	messages, answers := 0, 0
	for room, b := range rooms {
		messages, answers = messages+len(b.inputs), answers+b.answers
		if err := p.tellRoom(room, b); err != nil {
			p.g.log.Error("old messages cannot be set aside", "room", room, "err", err)
			p.again(room, b)
		}
	}
	p.g.log.Warn("old messages and answers are set aside; /resume in their rooms takes them up", "messages", messages, "answers", answers,
		"older_than", p.g.snapshot().StaleAfter, "now", p.g.opt.Now())
}

func (p *parking) tellRoom(room workspace.RoomID, b *backlog) error {
	if len(b.inputs)+b.answers == 0 {
		return nil
	}
	var ends []store.Ending
	for _, in := range b.inputs {
		ends = append(ends, store.Ending{Seq: in.Seq, From: workspace.InputQueued, To: workspace.InputStale, Reason: "older than stale_after"})
	}
	var notices []store.NewOutbound
	if room != "" {
		notices = append(notices, notice(p.key(room), room, workspace.OutAway, b.String()))
	}
	out, err := p.g.store.EndInputs(ends, notices...)
	if errors.Is(err, workspace.ErrConflict) && p.stillQueued(b) { // some were stopped or deleted meanwhile
		return p.tellRoom(room, b)
	}
	if err != nil {
		return err
	}
	p.mu.Lock()
	for _, in := range b.inputs {
		delete(p.seen, in.Seq)
	}
	p.mu.Unlock()
	p.g.deliver.PushAll(out)
	return nil
}

// stillQueued leaves out what waits no more, and says whether there was any such thing.
func (p *parking) stillQueued(b *backlog) bool {
	before := len(b.inputs)
	b.inputs = slices.DeleteFunc(b.inputs, func(in workspace.Input) bool {
		now, err := p.g.store.Input(in.ID)
		return err == nil && now.State != workspace.InputQueued
	})
	return len(b.inputs) < before
}

// again keeps what could not be set aside for the next try.
func (p *parking) again(room workspace.RoomID, b *backlog) {
	p.mu.Lock()
	defer p.mu.Unlock()
	have := p.backlog(room)
	have.inputs = append(b.inputs, have.inputs...)
	have.answers += b.answers
	p.soon()
}

// String is the notice of a room.
func (b *backlog) String() string {
	var parts, wants []string
	if n := len(b.inputs); n > 0 {
		parts = append(parts, count(n, "message")+" came meanwhile")
		wants = append(wants, "have them answered")
	}
	if n := b.answers; n > 0 {
		parts = append(parts, count(n, "answer")+" could not be sent in time")
		wants = append(wants, "get what I had to say")
	}
	return "I was away; " + strings.Join(parts, ", and ") + ". Send /resume to " + strings.Join(wants, " and ") + "."
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// key of a room's notice: one per outage. What comes within an hour of it belongs to the same.
func (p *parking) key(room workspace.RoomID) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, now := p.told[room], p.g.opt.Now()
	if last.n == 0 || now.Sub(last.at) > time.Hour {
		last = told{n: last.n + 1, at: now}
		p.told[room] = last
	}
	if last.n == 1 {
		return fmt.Sprintf("room:%s:away:%d", room, p.g.store.Epoch())
	}
	return fmt.Sprintf("room:%s:away:%d.%d", room, p.g.store.Epoch(), last.n)
}

// stop ends the timer and waits for what it began. What is not told of is found again by the next start.
func (p *parking) stop() {
	p.mu.Lock()
	p.shut = true
	if p.timer != nil {
		p.timer.Stop()
	}
	p.mu.Unlock()
	p.wg.Wait()
}
