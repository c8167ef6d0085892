package stream

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"parley/agentloop"
	"parley/gateway/bus"
	"parley/gateway/live"
	"parley/workspace"
)

// stuck is a connection whose reader does not read until it is let go.
type stuck struct {
	bytes.Buffer
	blocked, release chan struct{}
	once             bool
}

func (s *stuck) Header() http.Header { return http.Header{} }
func (s *stuck) WriteHeader(int)     {}
func (s *stuck) Flush()              {}
func (s *stuck) Write(p []byte) (int, error) {
	if !s.once {
		s.once = true
		close(s.blocked)
		<-s.release
	}
	return s.Buffer.Write(p)
}

// nothing is a record without lines.
type nothing struct{}

func (nothing) read(context.Context, int64, func(workspace.Entry) error) (bool, error) {
	return false, nil
}
func (nothing) wants(live.Update) bool { return true }

// begun is nothing, and says when it is first read.
type begun struct {
	nothing
	reading chan struct{}
}

func (b begun) read(context.Context, int64, func(workspace.Entry) error) (bool, error) {
	close(b.reading)
	return false, nil
}

// A reader that falls behind is dropped and told, and nobody waits for it.
func TestSlowReaderIsDroppedAndTold(t *testing.T) {
	t.Parallel()
	feed := live.New(bus.New(1))
	s := New(Options{Feed: feed, Log: slog.New(slog.DiscardHandler), Now: time.Now, Closing: make(chan struct{})})
	w := &stuck{blocked: make(chan struct{}), release: make(chan struct{})}
	done, reading := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		s.serveEvents(w, httptest.NewRequestWithContext(t.Context(), "GET", "/", nil), "k", begun{reading: reading}, 0)
	}()
	<-reading
	word := live.Update{Session: "s", Run: "r", Step: 1, Event: agentloop.Event{Type: agentloop.EventText, Text: "word "}}
	feed.Publish("k", word)
	<-w.blocked
	for range 2 * feedBuffer {
		feed.Publish("k", word) // never blocks
	}
	if feed.Watched("k") {
		t.Error("it is still watched")
	}
	close(w.release)
	<-done
	text := w.String()
	if !strings.HasSuffix(text, "\n\n") || !strings.Contains(text[strings.LastIndex(text, "event:"):], `"code":"slow"`) {
		t.Errorf("it is told %q", text[max(0, len(text)-300):])
	}
	if n := s.slow.Load(); n != 1 {
		t.Errorf("counted %d times", n)
	}
}

// oneAnswer is a record that holds the answer of a run's first model call.
type oneAnswer struct{ nothing }

func (oneAnswer) read(_ context.Context, after int64, each func(workspace.Entry) error) (bool, error) {
	if after >= 1 {
		return false, nil
	}
	return false, each(workspace.Entry{SessionID: "s", N: 1, RunID: "r", StepN: 1, Role: workspace.RoleAssistant})
}

// What the record has by now is not told again as if it grew; the next answer is.
func TestDeltasOfAStoredAnswerAreLeftOut(t *testing.T) {
	t.Parallel()
	rec := httptest.NewRecorder()
	rd := New(Options{Now: time.Now}).newReader(&sse{rec, http.NewResponseController(rec)}, oneAnswer{}, 0)
	if _, err := rd.catchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	for step, word := range []string{1: "stale", 2: "fresh"} {
		if err := rd.live(live.Update{Session: "s", Run: "r", Step: step, Event: agentloop.Event{Type: agentloop.EventText, Text: word}}); err != nil {
			t.Fatal(err)
		}
	}
	if text := rec.Body.String(); strings.Contains(text, "stale") || !strings.Contains(text, "fresh") {
		t.Error(text)
	}
}
