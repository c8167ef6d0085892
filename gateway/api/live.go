package api

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"time"

	"parley/gateway/bus"
	"parley/gateway/control"
	"parley/gateway/live"
	"parley/workspace"
)

// LiveLine serves the live line to who asks. still says whether what let them in holds: a token changes, people sign out.
type LiveLine func(w http.ResponseWriter, r *http.Request, call control.Call, still func() error)

// live is the live line's door. What goes over it is Follow and Watch; WebChat's adapter owns the connection.
func (s *server) live(w http.ResponseWriter, r *http.Request) error {
	if s.opt.Live == nil {
		return fault(http.StatusNotFound, "not_found", "There is nothing at this path.")
	}
	call := s.call(r)
	leave, err := s.hold(call.Actor.Person)
	if err != nil {
		return err
	}
	defer leave()
	s.opt.Live(w, r, call, func() error {
		if s.opt.Owner().Person != call.Actor.Person { // another configuration has another owner
			return errUnauthorized()
		}
		return s.guard.still(r)
	})
	return nil
}

// Put hands one frame to a live line. It may wait for a reader, and fails when the line has ended.
type Put func(frame any) error

// Following is what a live line wants to follow.
type Following struct {
	Key   string // of the session
	Was   workspace.SessionID
	After int64 // sequence that the reader has, of the generation Was
}

// eventFrame is an event of a followed session.
type eventFrame struct {
	Type  string `json:"type"`
	Key   string `json:"key"`
	Event event  `json:"event"`
}

// caughtFrame says that the stored backlog of a session was sent.
type caughtFrame struct {
	Type      string `json:"type"`
	Key       string `json:"key"`
	SessionID string `json:"session_id"`
	Sequence  int64  `json:"sequence"`
}

// liveSink is a stream as frames of a live line.
type liveSink struct {
	key string
	put Put
}

func (o *liveSink) write(ev event) error { return o.put(eventFrame{"event", o.key, ev}) }
func (o *liveSink) flush() error         { return nil }
func (o *liveSink) still() error         { return nil }

func (o *liveSink) caught(ses workspace.SessionID, cursor int64) error {
	return o.put(caughtFrame{"caught_up", o.key, string(ses), cursor})
}

// Follow streams a session to a live line until ctx ends. A line that cannot keep up with what happens is not dropped for
// it: it goes on from the record.
func (s *Server) Follow(ctx context.Context, call control.Call, f Following, put Put) error {
	key, err := s.s.opt.Control.Watch(ctx, call, control.SessionWord(f.Key))
	if err != nil {
		return err
	}
	after, err := s.s.inGeneration(ctx, call, key, f.Was, f.After)
	if err != nil {
		return err
	}
	leave, ok := s.s.follows.take(call.Actor.Person)
	if !ok {
		return tooMany("Too many sessions are followed. Close some pages.")
	}
	defer leave()
	s.s.counts.streams.Add(1)
	defer s.s.counts.streams.Add(-1)
	st := s.s.newStream(&liveSink{key.String(), put}, &sessionSource{c: s.s.opt.Control, call: call, key: key.String()}, after)
	st.buffer = lineBuffer
	for {
		err := st.run(ctx, key.String())
		switch {
		case errors.Is(err, bus.ErrSlow):
			s.s.counts.slow.Add(1)
			continue
		case errors.Is(err, errClosing):
			return nil
		}
		return err
	}
}

// sessionFrame is a session of any channel that has changed.
type sessionFrame struct {
	Type string              `json:"type"`
	Item control.SessionItem `json:"item"`
}

// sessionsFrame says that more changed than was kept: the list must be read again.
type sessionsFrame struct {
	Type string `json:"type"`
}

// needsFrame is how much waits for a person.
type needsFrame struct {
	Type      string `json:"type"`
	Pairings  int    `json:"pairings"`
	Approvals int    `json:"approvals"`
}

// lineBuffer is how many events may wait for a live line, of each session: it begins again from the record when more come.
const lineBuffer = 64

const (
	changedAfter = 200 * time.Millisecond // how long changes are gathered
	changedMost  = 20                     // sessions told at once; more say "read the list"
	runningEvery = 2 * time.Second        // how often a session that was told as running is looked at again
	needsEvery   = 30 * time.Second       // how often what waits is counted although nothing told to
)

// Watch tells a live line what changes beside the sessions that it follows, until ctx ends: sessions of any channel, and
// what waits for the person.
func (s *Server) Watch(ctx context.Context, call control.Call, put Put) error {
	w := &watch{s: s.s, call: call, put: put, keys: map[string]bool{}, running: map[string]bool{}}
	w.sub = s.s.opt.Feed.Changes(lineBuffer)
	defer func() { w.sub.Close() }()
	if err := w.needs(ctx); err != nil {
		return err
	}
	count, look := time.NewTicker(needsEvery), time.NewTicker(runningEvery)
	defer count.Stop()
	defer look.Stop()
	var due <-chan time.Time
	for {
		if due == nil && (len(w.keys) > 0 || w.lost) {
			due = time.After(changedAfter) // what follows at once, such as the end of a turn, goes along
		}
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.s.closing:
			return nil
		case <-count.C:
			err = w.needs(ctx)
		case <-look.C:
			err = w.look(ctx)
		case <-due:
			due = nil
			err = w.tell(ctx)
		case c, ok := <-w.sub.C:
			err = w.take(ctx, c, ok)
		}
		if err != nil {
			return err
		}
	}
}

// watch is one line's view of what changes.
type watch struct {
	s       *server
	call    control.Call
	put     Put
	sub     *bus.Sub[live.Change]
	keys    map[string]bool // changed since it was last told
	running map[string]bool // told as running
	lost    bool
	last    needsFrame
}

func (w *watch) take(ctx context.Context, c live.Change, ok bool) error {
	switch {
	case !ok: // it fell behind: the list is read again
		w.sub, w.lost = w.s.opt.Feed.Changes(lineBuffer), true
	case c.Needs:
		return w.needs(ctx)
	default:
		w.keys[c.Key] = true
	}
	return nil
}

// tell sends what has changed since it was last called.
func (w *watch) tell(ctx context.Context) error {
	keys, lost := slices.Sorted(maps.Keys(w.keys)), w.lost || len(w.keys) > changedMost
	clear(w.keys)
	w.lost = false
	if lost {
		clear(w.running) // the list says it
		return w.put(sessionsFrame{"sessions"})
	}
	for _, key := range keys {
		if err := w.tellOne(ctx, key, true); err != nil {
			return err
		}
	}
	return nil
}

// look tells the end of turns that ended in no line of a transcript.
func (w *watch) look(ctx context.Context) error {
	for _, key := range slices.Sorted(maps.Keys(w.running)) {
		if err := w.tellOne(ctx, key, false); err != nil {
			return err
		}
	}
	return nil
}

// tellOne sends a session as it is now; changed says that this is news even if it is running still.
func (w *watch) tellOne(ctx context.Context, key string, changed bool) error {
	v, err := w.s.items.item(string(w.call.Actor.Person), key, w.s.opt.Now(), func() (control.SessionItem, error) {
		return control.ShowSession.Call(ctx, w.s.opt.Control, w.call, control.BySession{Session: control.SessionWord(key)})
	})
	if errors.Is(err, workspace.ErrNotFound) {
		delete(w.running, key)
		return nil // nothing of it is stored yet, or it is somebody else's
	}
	if err != nil || !changed && v.Running {
		return err
	}
	if delete(w.running, key); v.Running {
		w.running[key] = true
	}
	return w.put(sessionFrame{"session", v})
}

// needs counts what waits for the person and tells it when it is not what was told last.
func (w *watch) needs(ctx context.Context) error {
	n := needsFrame{Type: "needs"}
	var err error
	if n.Pairings, n.Approvals, err = w.s.opt.Control.Needs(ctx, w.call); err != nil {
		return err
	}
	if n == w.last {
		return nil
	}
	w.last = n
	return w.put(n)
}

// Problem is an error as the API shows it, for who answers over the live line.
func (s *Server) Problem(err error) any { return problemOf(err) }
