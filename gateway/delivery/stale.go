// Stale messages and answers: what is set aside because of its age, and how rooms are told.

package delivery

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/gateway/transport"
	"parley/workspace"
	"parley/workspace/store"
)

// StaleStore is the units and readers of the store that Stale uses. *store.Store has them.
type StaleStore interface {
	EndInputs(ends []store.Ending, notices ...store.NewOutbound) ([]workspace.Outbound, error)
	Input(id workspace.InputID) (workspace.Input, error)
	Epoch() int64
}

// StaleOptions of a Stale; all of them are needed.
type StaleOptions struct {
	Store StaleStore
	After func() time.Duration // how long a message or an answer may wait; 0: for ever
	Now   func() time.Time
	Log   *slog.Logger
}

// Stale sets aside what is older than stale_after, messages and answers, and tells each room once per outage. Safe for
// concurrent use.
//
// Goroutines: its timer's, for which Stop waits.
type Stale struct {
	StaleOptions
	began  time.Time // by the clock that people set
	booted time.Time // by one that nobody can
	push   func([]workspace.Outbound)

	mu    sync.Mutex
	rooms map[workspace.RoomID]*backlog
	seen  map[int64]bool                // messages that are set aside, or about to be
	told  map[workspace.OutboundID]bool // answers that were told of in this boot
	away  map[workspace.RoomID]outages
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

// outages is how many of them a room was told of in this boot, and when it was last.
type outages struct {
	n  int
	at time.Time
}

const tellAfter = 2 * time.Second // how long the backlog of a room may still grow before it is told

// NewStale makes one at the start of the process: what was written since then is never too old.
func NewStale(o StaleOptions) *Stale {
	return &Stale{StaleOptions: o, began: o.Now(), booted: time.Now(), push: func([]workspace.Outbound) {},
		rooms: map[workspace.RoomID]*backlog{}, seen: map[int64]bool{},
		told: map[workspace.OutboundID]bool{}, away: map[workspace.RoomID]outages{}}
}

// Old says that a message has waited longer than stale_after. What was written since the start is never older than
// the start, whatever the clock was set to meanwhile; networks cut seconds off. And what comes live, on a channel
// that has long been up, cannot be old: then it is the clock that is wrong.
func (s *Stale) Old(sent time.Time, ch *transport.Channel) bool {
	if sent.IsZero() || !s.aged(sent) {
		return false
	}
	if ch == nil || ch.CatchingUp() {
		return true
	}
	s.doubtClock(sent)
	return false
}

// aged says that a moment is longer ago than stale_after, as far as this machine's clock can be trusted.
func (s *Stale) aged(t time.Time) bool {
	after := s.After()
	if after <= 0 || s.Now().Sub(t) <= after {
		return false
	}
	return t.Before(s.began.Add(-time.Minute)) || time.Since(s.booted) > after
}

// overdue says that an answer is past its age: too late to be sent unasked.
func (s *Stale) overdue(o *workspace.Outbound) bool {
	return !o.NotAfter.IsZero() && s.Now().After(o.NotAfter) && s.aged(o.Created)
}

// doubtClock says so, once an hour.
func (s *Stale) doubtClock(sent time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.Now()
	if !s.said.IsZero() && now.Sub(s.said) < time.Hour && now.After(s.said) {
		return
	}
	s.said = now
	s.Log.Warn("this machine's clock seems to be wrong: a message that comes live is old by it", "sent", sent, "now", now)
}

// Has says that a queued message is about to be set aside.
func (s *Stale) Has(seq int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[seq]
}

// SetAside sets a message aside that is journalled as queued.
func (s *Stale) SetAside(in workspace.Input) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen[in.Seq] {
		return
	}
	s.seen[in.Seq] = true
	b := s.backlog(in.RoomID)
	b.inputs = append(b.inputs, in)
	s.soon()
}

// late notes that an answer was set aside.
func (s *Stale) late(o *workspace.Outbound) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.told[o.ID] {
		return
	}
	s.told[o.ID] = true
	s.backlog(o.RoomID).answers++
	s.soon()
}

func (s *Stale) backlog(room workspace.RoomID) *backlog {
	if s.rooms[room] == nil {
		s.rooms[room] = &backlog{}
	}
	return s.rooms[room]
}

func (s *Stale) soon() {
	switch {
	case s.shut:
	case s.timer == nil:
		s.timer = time.AfterFunc(tellAfter, s.tell)
	default:
		s.timer.Reset(tellAfter)
	}
}

// tell ends what came and sends each room its one notice.
func (s *Stale) tell() {
	s.mu.Lock()
	if s.shut {
		s.mu.Unlock()
		return
	}
	s.wg.Add(1)
	rooms := s.rooms
	s.rooms = map[workspace.RoomID]*backlog{}
	s.mu.Unlock()
	defer s.wg.Done()
	messages, answers := 0, 0
	for room, b := range rooms {
		messages, answers = messages+len(b.inputs), answers+b.answers
		if err := s.tellRoom(room, b); err != nil {
			s.Log.Error("old messages cannot be set aside", "room", room, "err", err)
			s.again(room, b)
		}
	}
	s.Log.Warn("old messages and answers are set aside; /resume in their rooms takes them up", "messages", messages, "answers", answers,
		"older_than", s.After(), "now", s.Now())
}

func (s *Stale) tellRoom(room workspace.RoomID, b *backlog) error {
	if len(b.inputs)+b.answers == 0 {
		return nil
	}
	var ends []store.Ending
	for _, in := range b.inputs {
		ends = append(ends, store.Ending{Seq: in.Seq, From: workspace.InputQueued, To: workspace.InputStale, Reason: "older than stale_after"})
	}
	var notices []store.NewOutbound
	if room != "" {
		notices = append(notices, Notice(s.key(room), room, workspace.OutAway, b.String()))
	}
	out, err := s.Store.EndInputs(ends, notices...)
	if errors.Is(err, workspace.ErrConflict) && s.stillQueued(b) { // some were stopped or deleted meanwhile
		return s.tellRoom(room, b)
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	for _, in := range b.inputs {
		delete(s.seen, in.Seq)
	}
	s.mu.Unlock()
	s.push(out)
	return nil
}

// stillQueued leaves out what waits no more, and says whether there was any such thing.
func (s *Stale) stillQueued(b *backlog) bool {
	before := len(b.inputs)
	b.inputs = slices.DeleteFunc(b.inputs, func(in workspace.Input) bool {
		now, err := s.Store.Input(in.ID)
		return err == nil && now.State != workspace.InputQueued
	})
	return len(b.inputs) < before
}

// again keeps what could not be set aside for the next try.
func (s *Stale) again(room workspace.RoomID, b *backlog) {
	s.mu.Lock()
	defer s.mu.Unlock()
	have := s.backlog(room)
	have.inputs = append(b.inputs, have.inputs...)
	have.answers += b.answers
	s.soon()
}

// String is the notice of a room.
func (b *backlog) String() string {
	var parts, wants []string
	if n := len(b.inputs); n > 0 {
		parts = append(parts, workspace.Plural(n, "message")+" came meanwhile")
		wants = append(wants, "have them answered")
	}
	if n := b.answers; n > 0 {
		parts = append(parts, workspace.Plural(n, "answer")+" could not be sent in time")
		wants = append(wants, "get what I had to say")
	}
	return "I was away; " + strings.Join(parts, ", and ") + ". Send /resume to " + strings.Join(wants, " and ") + "."
}

// key of a room's notice: one per outage. What comes within an hour of it belongs to the same.
func (s *Stale) key(room workspace.RoomID) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	last, now := s.away[room], s.Now()
	if last.n == 0 || now.Sub(last.at) > time.Hour {
		last = outages{n: last.n + 1, at: now}
		s.away[room] = last
	}
	if last.n == 1 {
		return fmt.Sprintf("room:%s:away:%d", room, s.Store.Epoch())
	}
	return fmt.Sprintf("room:%s:away:%d.%d", room, s.Store.Epoch(), last.n)
}

// Stop ends the timer and waits for what it began. What is not told of is found again by the next start.
func (s *Stale) Stop() {
	s.mu.Lock()
	s.shut = true
	if s.timer != nil {
		s.timer.Stop()
	}
	s.mu.Unlock()
	s.wg.Wait()
}
