package llmtest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"time"

	"parley/agentloop/llm"
	"parley/workspace"
)

// What an adapter promises of answers that are too long.

const (
	maxEndless  = 33 << 20 // bytes after which an endless server does end
	limitTokens = 1000     // of the models that it is asked by: keptBytes of text
	keptBytes   = limitTokens*16 + 16<<10
)

// endless is a server that says a head once and then a piece again and again, until nobody listens.
type endless struct {
	head, piece string
	tail        string // of an answer that does end
	whole       bool   // it is one JSON body
	kept        bool   // there is text that becomes the answer
	unread      bool   // nothing of it is part of an answer
	asked, sent atomic.Int64
}

func (e *endless) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	e.asked.Add(1)
	w.Header().Set("Content-Type", "text/event-stream")
	if e.whole {
		w.Header().Set("Content-Type", "application/json")
	}
	for s, n := e.head, 0; n < maxEndless; s = e.piece {
		m, err := w.Write([]byte(s))
		e.sent.Add(int64(m))
		if n += m; err != nil {
			return
		}
	}
	_, _ = w.Write([]byte(e.tail)) // nobody may listen
}

func words(n int) string { return strings.Repeat("wörd ", n) }

// An answer that does not end is cut near max_output_tokens, in every form; what came of it is the answer, the server is hung up on,
// and it is not asked again, nor is the fallback.
func cutsLongAnswers(r *rig) {
	for name, e := range r.Wire.neverEnding() {
		srv := httptest.NewServer(e)
		spare, other := r.serve(Echo, func(o *Options) { o.Name = "spare" })
		long := r.open(srv.URL+"/v1", func(o *Options) { o.Name, o.MaxOutput = "long", limitTokens })
		reg, err := llm.NewRegistry(llm.RegistryOptions{}, long, other)
		if err != nil {
			r.Fatal(err)
		}
		m, err := reg.Chain([]string{"long", "spare"}, nil)
		if err != nil {
			r.Fatal(err)
		}
		shown := 0
		ctx, cancel := context.WithTimeout(r.Context(), time.Minute)
		resp, err := m.Stream(ctx, llm.Request{}, func(d llm.Delta) { shown += len(d.Text) })
		cancel()
		srv.Close()
		if got := workspace.PlainText(resp.Content); e.kept {
			if n := len(got); err != nil || n > keptBytes || n < keptBytes-8 || !strings.HasPrefix(words(keptBytes), got) || shown != n {
				r.Errorf("%s: %d bytes kept and %d shown of %d, %v", name, len(got), shown, keptBytes, err)
			}
			if resp.Stop != llm.StopLength && resp.Stop != llm.StopFiltered || resp.Usage.OutputTokens < keptBytes/4 {
				r.Errorf("%s: stop %s, usage %+v", name, resp.Stop, resp.Usage)
			}
		} else if kind := llm.KindOf(err); kind != llm.TooLong {
			r.Errorf("%s: %v", name, err)
		}
		if e.asked.Load() != 1 || spare.Count() != 0 {
			r.Errorf("%s: asked %d times, the fallback %d", name, e.asked.Load(), spare.Count())
		}
		if sent := e.sent.Load(); sent >= maxEndless && !e.unread {
			r.Errorf("%s: all %d bytes were taken", name, sent)
		}
	}
}

// An answer waits for its memory where it becomes a long one, and is not taken for a silent server; a short one does not wait.
func waitsOnlyWhenLong(r *rig) {
	const idle = 2 * time.Second // a machine under load is silent for longer than a moment
	sized := func(pieces int) llm.Model {
		body := r.Wire.head + strings.Repeat(r.Wire.text(strings.Repeat("x", 400)), pieces) + r.Wire.done
		_, m := r.serve(Sequence(Reply{Raw: []string{body}}), func(o *Options) { o.MaxOutput, o.Idle = 10_000, idle })
		return m
	}
	budget := llm.NewBudget(1000)
	ask := func(m llm.Model) (int, error) {
		req := Ask("hi")
		req.Hold = &llm.Hold{Budget: budget}
		defer req.Hold.Release()
		resp, err := m.Stream(r.Context(), req, nil)
		return len(workspace.PlainText(resp.Content)), err
	}
	other := &llm.Hold{Budget: budget}
	if err := other.Grow(r.Context(), 1000); err != nil {
		r.Fatal(err)
	}
	type end struct {
		n   int
		err error
	}
	long, large, small := make(chan end, 1), sized(250), sized(100)
	go func() {
		n, err := ask(large)
		long <- end{n, err}
	}()
	if n, err := ask(small); err != nil || n != 40_000 {
		r.Errorf("a short one: %d bytes, %v", n, err)
	}
	select {
	case e := <-long:
		r.Fatalf("a long one did not wait: %d bytes, %v", e.n, e.err)
	case <-time.After(idle + idle/2): // longer than a server may be silent
	}
	other.Release()
	if e := <-long; e.err != nil || e.n != 100_000 {
		r.Errorf("a long one: %d bytes, %v", e.n, e.err)
	}
}
