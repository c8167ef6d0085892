// Package stream is what is followed while it happens: the events of a run or a session as server-sent events or over a page's
// live line, what changes in lists, the daemon's log. Everything that is stored is read from the record, so that a reader that
// comes back misses nothing and gets nothing twice.
//
// Goroutines: none of its own; a stream lives in its request's and ends with it, or when Closing is closed.
package stream

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"parley/gateway/api/limit"
	"parley/gateway/api/wire"
	"parley/gateway/bus"
	"parley/gateway/control"
	"parley/gateway/control/session"
	"parley/gateway/live"
	"parley/gateway/logbook"
	"parley/workspace"
)

// Options of streams. All are needed by those that use them.
type Options struct {
	Runs     Runs
	Sessions Sessions
	Show     func(context.Context, control.Call, string) (session.Item, error) // a session as lists show it, by its key
	Look     func(control.Call) error                                          // begins to keep how far a person reads
	Output   func(control.Call) bool                                           // who may see what a command writes; nil: nobody
	Needs    func(control.Call) (Waiting, error)                               // what waits for a person
	Book     func(context.Context, control.Call) (*logbook.Book, error)        // the daemon's own log
	Feed     *live.Feed
	Limits   *limit.Limits
	Closing  <-chan struct{} // closed when the gateway stops
	Log      *slog.Logger
	Now      func() time.Time
}

// Streams serves those who follow.
type Streams struct {
	opt        Options
	sessions   sessionCache
	open, slow atomic.Int64
}

// New makes streams and does no IO.
func New(o Options) *Streams {
	s := &Streams{opt: o}
	if o.Feed != nil {
		o.Feed.OnChange(s.sessions.drop)
	}
	return s
}

// Counts are how many streams are open, and how many were dropped since their reader was too slow.
func (s *Streams) Counts() (open, slow int64) { return s.open.Load(), s.slow.Load() }

// Run streams one run.
func (s *Streams) Run(w http.ResponseWriter, r *http.Request, call control.Call) error {
	found, err := s.opt.Runs.Of(r.Context(), call, control.RunWord(r.PathValue("id")))
	if err != nil {
		return err
	}
	src := &runSource{runs: s.opt.Runs, call: call, found: found, output: s.sees(func() control.Call { return call })}
	after, err := resumeAfter(r)
	if err != nil {
		return err
	}
	leave, err := s.opt.Limits.Hold(call.Actor.Person)
	if err != nil {
		return err
	}
	defer leave()
	s.serveEvents(w, r, src.found.Key, src, after)
	return nil
}

// Session streams a session, from its beginning or after what the reader has. It may be watched before anything
// was said in it.
func (s *Streams) Session(w http.ResponseWriter, r *http.Request, call control.Call) error {
	key, err := s.opt.Sessions.Watch(r.Context(), call, control.SessionWord(r.PathValue("key")))
	if err != nil {
		return err
	}
	after, err := resumeAfter(r)
	if err != nil {
		return err
	}
	was := workspace.SessionID(r.URL.Query().Get("session_id"))
	if after, err = s.inGeneration(r.Context(), call, key, was, after); err != nil {
		return err
	}
	leave, err := s.opt.Limits.Hold(call.Actor.Person)
	if err != nil {
		return err
	}
	defer leave()
	s.serveEvents(w, r, key.String(), &sessionSource{sessions: s.opt.Sessions, call: call, key: key.String(),
		output: s.sees(func() control.Call { return call })}, after)
	return nil
}

// sees asks at each event whether who follows may see what commands write. It is refused where nobody knows.
func (s *Streams) sees(who func() control.Call) func() bool {
	return func() bool { return s.opt.Output != nil && s.opt.Output(who()) }
}

// serveEvents streams a source to who asked, and says why when it ends before the source does.
func (s *Streams) serveEvents(w http.ResponseWriter, r *http.Request, key string, source source, after int64) {
	defer s.begin(w)()
	rd := s.newReader(&sse{w, http.NewResponseController(w)}, source, after)
	err := rd.run(r.Context(), key)
	switch {
	case errors.Is(err, errClosing):
		err = rd.tell("closing", "The gateway is stopping. Come back with Last-Event-ID.")
	case errors.Is(err, bus.ErrSlow):
		s.slow.Add(1)
		err = rd.tell("slow", "You read too slowly and were dropped. Come back with Last-Event-ID.")
	}
	if err != nil && r.Context().Err() == nil {
		s.opt.Log.Debug("stream ended", "route", r.Pattern, "err", err)
	}
}

// begin answers with an event stream, and counts it until its end.
func (s *Streams) begin(w http.ResponseWriter) (end func()) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	s.open.Add(1)
	return func() { s.open.Add(-1) }
}

// newReader is a reader of a source that has all up to the cursor.
func (s *Streams) newReader(out sink, source source, cursor int64) *reader {
	rd := &reader{feed: s.opt.Feed, closing: s.opt.Closing, now: s.opt.Now, out: out, source: source, cursor: cursor, buffer: feedBuffer,
		done: map[workspace.RunID]int{}, ended: map[workspace.RunID]bool{}}
	if src, ok := source.(*sessionSource); ok {
		src.turn = rd.turn
	}
	return rd
}

// inGeneration makes a cursor of an earlier generation the beginning of this one; was says whose it was, if anybody knows.
func (s *Streams) inGeneration(ctx context.Context, call control.Call, key workspace.Key, was workspace.SessionID, after int64) (int64,
	error) {
	ses, err := s.opt.Sessions.Of(ctx, call, control.SessionWord(key.String()), "")
	if errors.Is(err, workspace.ErrNotFound) {
		return 0, nil
	}
	if err != nil || after == 0 {
		return 0, err
	}
	last, err := s.opt.Sessions.Last(ses)
	if after > last || was != "" && was != ses.ID {
		return 0, err
	}
	return after, err
}

// resumeAfter is the sequence after which a reader wants to go on: Last-Event-ID, or ?after for those who cannot set it.
func resumeAfter(r *http.Request) (int64, error) {
	id := r.Header.Get("Last-Event-ID")
	if id == "" {
		return wire.Number(r, "after")
	}
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil || n < 0 {
		return 0, wire.Invalid("Last-Event-ID is the id of an event that this stream sent.")
	}
	return n, nil
}
