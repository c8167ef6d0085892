package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"parley/agentloop"
	"parley/gateway/bus"
	"parley/gateway/control"
	"parley/workspace"
)

const (
	heartbeat   = 15 * time.Second
	writeWithin = 15 * time.Second // a reader that takes longer for one write is dropped
	feedBuffer  = 512              // events that may wait for a reader
	readAtOnce  = 500              // lines of the transcript
)

// source is what a stream reads of the record.
type source interface {
	// read hands over the events after the cursor that are stored by now, in order, and says whether it has ended.
	read(ctx context.Context, after int64, each func(workspace.Entry) error) (ended bool, err error)
	// wants says whether a live event is part of it.
	wants(Live) bool
}

// runSource is one run, or the input that waits for one.
type runSource struct {
	c     *control.Control
	call  control.Call
	id    string
	found control.Found
}

func (s *runSource) read(ctx context.Context, after int64, each func(workspace.Entry) error) (bool, error) {
	var err error
	if !s.found.Ended() { // before its lines: then an end has all of them
		if s.found, err = s.c.Find(ctx, s.call, s.id); err != nil {
			return false, err
		}
	}
	lines, err := s.c.Lines(s.found)
	for _, e := range lines {
		if err == nil && e.N > after {
			err = each(e)
		}
	}
	return s.found.Ended(), err
}

func (s *runSource) wants(l Live) bool { return l.Run == s.found.Run.ID && l.Run != "" }

// sessionSource is the newest generation of a session, and the next one when that ends.
type sessionSource struct {
	c    *control.Control
	call control.Call
	key  string
	ses  workspace.Session
	turn func(old, new workspace.Session) error // told when a generation begins
}

func (s *sessionSource) read(ctx context.Context, after int64, each func(workspace.Entry) error) (bool, error) {
	ses, err := s.c.Session(ctx, s.call, s.key)
	if errors.Is(err, workspace.ErrNotFound) {
		return false, nil // nothing was said in it yet
	}
	if err != nil {
		return false, err
	}
	if ses.ID == s.ses.ID {
		return false, s.lines(after, each)
	}
	if s.ses.ID != "" { // what the old generation was told last comes before the new one
		if err := s.lines(after, each); err != nil {
			return false, err
		}
		after = 0
	}
	old := s.ses
	s.ses = ses
	if err := s.turn(old, ses); err != nil {
		return false, err
	}
	return false, s.lines(after, each)
}

func (s *sessionSource) lines(after int64, each func(workspace.Entry) error) error {
	for {
		list, err := s.c.EntriesOf(s.ses, after, readAtOnce)
		if err != nil {
			return err
		}
		for _, e := range list {
			if err := each(e); err != nil {
				return err
			}
			after = e.N
		}
		if len(list) < readAtOnce {
			return nil
		}
	}
}

func (s *sessionSource) wants(l Live) bool { return l.Session == s.ses.ID }

// stream is one reader.
type stream struct {
	s      *server
	w      http.ResponseWriter
	rc     *http.ResponseController
	source source
	cursor int64
	begun  string // id of the answer that was started for this reader
	status string // that was shown last
	done   map[workspace.RunID]int
	ended  map[workspace.RunID]bool // what was said live of these comes late
}

// endedKept bounds what a long stream remembers.
const endedKept = 64

// follow streams a source to its end, or until the reader leaves. The subscription comes before the first read, so
// that nothing falls between them.
func (s *server) follow(w http.ResponseWriter, r *http.Request, key string, st *stream) {
	st.s, st.w, st.rc, st.done = s, w, http.NewResponseController(w), map[workspace.RunID]int{}
	st.ended = map[workspace.RunID]bool{}
	sub, snapshot := s.opt.Feed.watch(key, feedBuffer)
	defer sub.Close()
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	s.counts.streams.Add(1)
	defer s.counts.streams.Add(-1)
	err := st.run(r.Context(), sub, snapshot)
	if err != nil && r.Context().Err() == nil {
		s.opt.Log.Debug("stream ended", "route", r.Pattern, "err", err)
	}
}

func (st *stream) run(ctx context.Context, sub *bus.Sub[Live], snapshot *Live) error {
	ended, err := st.catchUp(ctx)
	if err == nil && !ended && snapshot != nil {
		err = st.live(*snapshot)
	}
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		if err == nil {
			err = st.flush()
		}
		if err != nil || ended {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-st.s.closing:
			return st.tell("closing", "The gateway is stopping. Come back with Last-Event-ID.")
		case <-beat.C:
			if err = st.deadline(); err == nil {
				_, err = fmt.Fprint(st.w, ": still here\n\n")
			}
		case l, ok := <-sub.C:
			if !ok {
				st.s.counts.slow.Add(1)
				return st.tell("slow", "You read too slowly and were dropped. Come back with Last-Event-ID.")
			}
			ended, err = st.take(ctx, l, sub)
		}
	}
}

// take handles an event and what waits behind it, so that one flush carries them all.
func (st *stream) take(ctx context.Context, l Live, sub *bus.Sub[Live]) (ended bool, err error) {
	for range feedBuffer {
		if l.Stored {
			ended, err = st.catchUp(ctx)
		} else {
			err = st.live(l)
		}
		if err != nil || ended {
			return ended, err
		}
		select {
		case next, ok := <-sub.C:
			if !ok {
				return false, nil // the next turn of run finds it closed
			}
			l = next
		default:
			return false, nil
		}
	}
	return false, nil
}

// catchUp sends what the record has beyond the cursor.
func (st *stream) catchUp(ctx context.Context) (bool, error) {
	return st.source.read(ctx, st.cursor, func(e workspace.Entry) error {
		st.cursor = e.N
		if e.Role == workspace.RoleAssistant {
			st.done[e.RunID] = max(st.done[e.RunID], e.StepN)
		}
		if e.Body.Type == "turn.ended" {
			delete(st.done, e.RunID)
			if len(st.ended) >= endedKept {
				clear(st.ended)
			}
			st.ended[e.RunID] = true
		}
		return st.write(stored(e))
	})
}

// live sends what is not stored, unless the record has it by now.
func (st *stream) live(l Live) error {
	if !st.source.wants(l) || l.Step <= st.done[l.Run] || st.ended[l.Run] {
		return nil
	}
	id := answerID(l.Run, l.Step)
	switch l.Event.Type {
	case agentloop.EventThinking, agentloop.EventWait: // told as often as a model likes, shown once
		status := id + string(l.Event.Type) + l.Event.Note
		if st.status == status {
			return nil
		}
		st.status = status
	}
	for _, ev := range watched(l, st.cursor+1, st.s.opt.Now(), st.begun == id) {
		if err := st.write(ev); err != nil {
			return err
		}
	}
	if l.Event.Type == agentloop.EventText {
		st.begun = id
	}
	return nil
}

// turn tells that a generation ended, if there was one, and that the next began.
func (st *stream) turn(old, new workspace.Session) error {
	ev := func(kind string, ses workspace.Session) event {
		return event{EventID: string(ses.ID) + "." + kind, Sequence: st.cursor + 1, Time: st.s.opt.Now().UTC().Truncate(time.Millisecond), SessionID: string(ses.ID), Source: "daemon",
			Synthetic: true, Type: "session." + kind, Data: sessionData{ses.Key.String(), ses.Gen}}
	}
	if old.ID != "" {
		if err := st.write(ev("ended", old)); err != nil {
			return err
		}
		st.cursor = 0
	}
	return st.write(ev("started", new))
}

// write sends one event; only what is stored has an id, since only after that can a reader resume.
func (st *stream) write(ev event) error {
	data, err := json.Marshal(ev)
	if err != nil {
		return fmt.Errorf("marshal event %s: %w", ev.EventID, err)
	}
	if err := st.deadline(); err != nil {
		return err
	}
	if !ev.Synthetic {
		if _, err := fmt.Fprintf(st.w, "id: %d\n", ev.Sequence); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(st.w, "event: %s\ndata: %s\n\n", ev.Type, data)
	return err
}

func (st *stream) deadline() error {
	err := st.rc.SetWriteDeadline(time.Now().Add(writeWithin)) // the connection's clock, not ours
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return err
}

func (st *stream) flush() error {
	if err := st.deadline(); err != nil {
		return err
	}
	return st.rc.Flush()
}

// tell ends a stream with a reason.
func (st *stream) tell(code, message string) error {
	ev := event{EventID: code, Sequence: st.cursor + 1, Time: st.s.opt.Now().UTC().Truncate(time.Millisecond), Source: "daemon", Synthetic: true, Type: "error", Data: errorData{code, message}}
	if err := st.write(ev); err != nil {
		return err
	}
	return st.flush()
}

// runEvents streams one run.
func (s *server) runEvents(w http.ResponseWriter, r *http.Request) error {
	call := s.call(r)
	src := &runSource{c: s.opt.Control, call: call, id: r.PathValue("id")}
	var err error
	if src.found, err = s.opt.Control.Find(r.Context(), call, src.id); err != nil {
		return err
	}
	after, err := resumeAfter(r)
	if err != nil {
		return err
	}
	s.follow(w, r, src.found.Key, &stream{source: src, cursor: after})
	return nil
}

// sessionEvents streams a session, from its beginning or after what the reader has. It may be watched before anything
// was said in it.
func (s *server) sessionEvents(w http.ResponseWriter, r *http.Request) error {
	call := s.call(r)
	key, err := s.opt.Control.Watch(r.Context(), call, r.PathValue("key"))
	if err != nil {
		return err
	}
	after, err := resumeAfter(r)
	if err != nil {
		return err
	}
	if after, err = s.inGeneration(r, key, after); err != nil {
		return err
	}
	st := &stream{cursor: after}
	src := &sessionSource{c: s.opt.Control, call: call, key: key.String()}
	src.turn = st.turn
	st.source = src
	s.follow(w, r, key.String(), st)
	return nil
}

// inGeneration makes a cursor of an earlier generation the beginning of this one: ?session_id says whose it was.
func (s *server) inGeneration(r *http.Request, key workspace.Key, after int64) (int64, error) {
	ses, err := s.opt.Control.Session(r.Context(), s.call(r), key.String())
	if errors.Is(err, workspace.ErrNotFound) {
		return 0, nil
	}
	if err != nil || after == 0 {
		return 0, err
	}
	last, err := s.opt.Control.LastOf(ses)
	if was := r.URL.Query().Get("session_id"); after > last || was != "" && was != string(ses.ID) {
		return 0, err
	}
	return after, err
}

// resumeAfter is the sequence after which a reader wants to go on: Last-Event-ID, or ?after for those who cannot set it.
func resumeAfter(r *http.Request) (int64, error) {
	id := r.Header.Get("Last-Event-ID")
	if id == "" {
		return number(r, "after")
	}
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil || n < 0 {
		return 0, fault(http.StatusBadRequest, "invalid", "Last-Event-ID is the id of an event that this stream sent.")
	}
	return n, nil
}
