package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"parley/gateway/bus"
	"parley/workspace"
)

// writeWithin is how long one write may take; a slower reader is dropped.
const writeWithin = 15 * time.Second

// sse is a stream as server-sent events.
type sse struct {
	w  http.ResponseWriter
	rc *http.ResponseController
}

// serveEvents streams a source to who asked, and says why when it ends before the source does.
func (s *server) serveEvents(w http.ResponseWriter, r *http.Request, key string, source source, after int64) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	s.counts.streams.Add(1)
	defer s.counts.streams.Add(-1)
	st := s.newStream(&sse{w, http.NewResponseController(w)}, source, after)
	err := st.run(r.Context(), key)
	switch {
	case errors.Is(err, errClosing):
		err = st.tell("closing", "The gateway is stopping. Come back with Last-Event-ID.")
	case errors.Is(err, bus.ErrSlow):
		s.counts.slow.Add(1)
		err = st.tell("slow", "You read too slowly and were dropped. Come back with Last-Event-ID.")
	}
	if err != nil && r.Context().Err() == nil {
		s.opt.Log.Debug("stream ended", "route", r.Pattern, "err", err)
	}
}

// tell ends a stream with a reason.
func (st *stream) tell(code, message string) error {
	ev := event{EventID: code, Sequence: st.cursor + 1, Time: st.s.opt.Now().UTC().Truncate(time.Millisecond), Source: "daemon", Synthetic: true, Type: "error", Data: errorData{code, message}}
	if err := st.out.write(ev); err != nil {
		return err
	}
	return st.out.flush()
}

// write sends one event; only what is stored has an id, since only after that can a reader resume.
func (o *sse) write(ev event) error {
	data, err := json.Marshal(ev)
	if err != nil {
		return fmt.Errorf("marshal event %s: %w", ev.EventID, err)
	}
	if err := o.deadline(); err != nil {
		return err
	}
	if !ev.Synthetic {
		if _, err := fmt.Fprintf(o.w, "id: %d\n", ev.Sequence); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(o.w, "event: %s\ndata: %s\n\n", ev.Type, data)
	return err
}

func (o *sse) flush() error {
	if err := o.deadline(); err != nil {
		return err
	}
	return o.rc.Flush()
}

func (o *sse) still() error {
	if err := o.deadline(); err != nil {
		return err
	}
	_, err := fmt.Fprint(o.w, ": still here\n\n")
	return err
}

func (o *sse) caught(workspace.SessionID, int64) error { return nil }

func (o *sse) deadline() error {
	err := o.rc.SetWriteDeadline(time.Now().Add(writeWithin)) // the connection's clock, not ours
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return err
}
