package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"parley/agentloop"
	"parley/gateway/bus"
	"parley/gateway/control"
	"parley/gateway/live"
	"parley/workspace"
)

const (
	heartbeat  = 15 * time.Second
	feedBuffer = 512 // events that may wait for a reader
	readAtOnce = 500 // lines of the transcript
)

// source is what a stream reads of the record.
type source interface {
	// read hands over the events after the cursor that are stored by now, in order, and says whether it has ended.
	read(ctx context.Context, after int64, each func(workspace.Entry) error) (ended bool, err error)
	// wants says whether a live event is part of it.
	wants(live.Update) bool
}

// runSource is one run, or the input that waits for one.
type runSource struct {
	c     *control.Control
	call  control.Call
	found control.Found
}

func (s *runSource) read(ctx context.Context, after int64, each func(workspace.Entry) error) (bool, error) {
	var err error
	if !s.found.Ended() { // before its lines: then an end has all of them
		if s.found, err = s.c.Find(ctx, s.call, control.RunWord(s.found.ID)); err != nil {
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

func (s *runSource) wants(l live.Update) bool { return l.Run == s.found.Run.ID && l.Run != "" }

// sessionSource is the newest generation of a session, and the next one when that ends.
type sessionSource struct {
	c    *control.Control
	call control.Call
	key  string
	ses  workspace.Session
	turn func(old, new workspace.Session) error // told when a generation begins
}

func (s *sessionSource) read(ctx context.Context, after int64, each func(workspace.Entry) error) (bool, error) {
	ses, err := s.c.SessionOf(ctx, s.call, control.SessionWord(s.key), "")
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

func (s *sessionSource) wants(l live.Update) bool { return l.Session == s.ses.ID }

// sink is where a stream goes: server-sent events, or the live line.
type sink interface {
	// write sends one event; flush ends what belongs together.
	write(event) error
	flush() error
	// still is called while nothing happens.
	still() error
	// caught is called once, when all that was stored has been written up to the cursor.
	caught(ses workspace.SessionID, cursor int64) error
}

// stream is one reader.
type stream struct {
	s      *server
	out    sink
	source source
	cursor int64
	buffer int    // events that may wait for this reader
	told   bool   // that the backlog is behind
	begun  string // id of the answer that was started for this reader
	status string // that was shown last
	done   map[workspace.RunID]int
	ended  map[workspace.RunID]bool // what was said live of these comes late
}

// endedKept bounds what a long stream remembers.
const endedKept = 64

// errClosing ends streams when the gateway stops.
var errClosing = errors.New("the gateway is stopping")

// newStream is a reader of a source that has all up to the cursor.
func (s *server) newStream(out sink, source source, cursor int64) *stream {
	st := &stream{s: s, out: out, source: source, cursor: cursor, buffer: feedBuffer, done: map[workspace.RunID]int{}, ended: map[workspace.RunID]bool{}}
	if src, ok := source.(*sessionSource); ok {
		src.turn = st.turn
	}
	return st
}

// run streams the source to its end, or until the reader leaves. It is errClosing when the gateway stops, and
// bus.ErrSlow when the reader fell behind: then it may run again. The subscription comes before the first read, so that
// nothing falls between them.
func (st *stream) run(ctx context.Context, key string) error {
	sub, snapshot := st.s.opt.Feed.Watch(key, st.buffer)
	defer sub.Close()
	st.begun = "" // the snapshot begins again
	ended, err := st.catchUp(ctx)
	if err == nil && !ended {
		err = st.tellCaught()
	}
	if err == nil && !ended && snapshot != nil {
		err = st.live(*snapshot)
	}
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		if err == nil {
			err = st.out.flush()
		}
		if err != nil || ended {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-st.s.closing:
			return errClosing
		case <-beat.C:
			err = st.out.still()
		case l, ok := <-sub.C:
			if !ok {
				return bus.ErrSlow
			}
			ended, err = st.take(ctx, l, sub)
		}
	}
}

// tellCaught says once that the backlog is behind.
func (st *stream) tellCaught() error {
	if st.told {
		return nil
	}
	st.told = true
	var ses workspace.SessionID
	if src, ok := st.source.(*sessionSource); ok {
		ses = src.ses.ID
	}
	return st.out.caught(ses, st.cursor)
}

// take handles an event and what waits behind it, so that one flush carries them all.
func (st *stream) take(ctx context.Context, l live.Update, sub *bus.Sub[live.Update]) (ended bool, err error) {
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
		return st.out.write(stored(e))
	})
}

// live sends what is not stored, unless the record has it by now.
func (st *stream) live(l live.Update) error {
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
		if err := st.out.write(ev); err != nil {
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
		if err := st.out.write(ev("ended", old)); err != nil {
			return err
		}
		st.cursor = 0
	}
	return st.out.write(ev("started", new))
}

// runEvents streams one run.
func (s *server) runEvents(w http.ResponseWriter, r *http.Request) error {
	call := s.call(r)
	found, err := s.opt.Control.Find(r.Context(), call, control.RunWord(r.PathValue("id")))
	if err != nil {
		return err
	}
	src := &runSource{c: s.opt.Control, call: call, found: found}
	after, err := resumeAfter(r)
	if err != nil {
		return err
	}
	leave, err := s.hold(call.Actor.Person)
	if err != nil {
		return err
	}
	defer leave()
	s.serveEvents(w, r, src.found.Key, src, after)
	return nil
}

// sessionEvents streams a session, from its beginning or after what the reader has. It may be watched before anything
// was said in it.
func (s *server) sessionEvents(w http.ResponseWriter, r *http.Request) error {
	call := s.call(r)
	key, err := s.opt.Control.Watch(r.Context(), call, control.SessionWord(r.PathValue("key")))
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
	leave, err := s.hold(call.Actor.Person)
	if err != nil {
		return err
	}
	defer leave()
	s.serveEvents(w, r, key.String(), &sessionSource{c: s.opt.Control, call: call, key: key.String()}, after)
	return nil
}

// inGeneration makes a cursor of an earlier generation the beginning of this one; was says whose it was, if anybody knows.
func (s *server) inGeneration(ctx context.Context, call control.Call, key workspace.Key, was workspace.SessionID, after int64) (int64, error) {
	ses, err := s.opt.Control.SessionOf(ctx, call, control.SessionWord(key.String()), "")
	if errors.Is(err, workspace.ErrNotFound) {
		return 0, nil
	}
	if err != nil || after == 0 {
		return 0, err
	}
	last, err := s.opt.Control.LastOf(ses)
	if after > last || was != "" && was != ses.ID {
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
