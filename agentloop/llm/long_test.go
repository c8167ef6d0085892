package llm_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/agentloop/llm"
	"parley/agentloop/llm/anthropic"
	"parley/agentloop/llm/llmtest"
	"parley/agentloop/llm/openai"
	"parley/workspace"
)

// endless is a server that says a head once and then a piece again and again, until it has said so much or nobody listens.
type endless struct {
	kind        string // of the content
	head, piece string
	tail        string // of an answer that does end
	most        int
	asked, sent atomic.Int64
}

func (e *endless) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	e.asked.Add(1)
	w.Header().Set("Content-Type", e.kind)
	for s, n := e.head, 0; n < e.most; s = e.piece {
		m, err := w.Write([]byte(s))
		e.sent.Add(int64(m))
		if n += m; err != nil {
			return
		}
	}
	_, _ = w.Write([]byte(e.tail)) // nobody may listen
}

func text(n int) string { return strings.Repeat("wörd ", n) }

const limitTokens = 1000 // of the models below: 32,384 bytes

func longModel(t *testing.T, api, name, url string) llm.Model {
	t.Helper()
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	var m llm.Model
	var err error
	if api == "openai" {
		m, err = openai.New(openai.Options{Name: name, Model: "m", BaseURL: url, MaxOutput: limitTokens, HTTP: &http.Client{Transport: tr}})
	} else {
		m, err = anthropic.New(anthropic.Options{Name: name, Model: "m", BaseURL: url, MaxOutput: limitTokens, HTTP: &http.Client{Transport: tr}})
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func quoted(s string) string {
	b, _ := json.Marshal(s) // a string always can
	return string(b)
}

// endlessAnswers are by wire and by what does not end. kept: there is text that becomes the answer.
func endlessAnswers() map[string]struct {
	api  string
	e    *endless
	kept bool
} {
	const sse, whole = "text/event-stream", "application/json"
	chunk := func(delta string) string {
		return `data: {"choices":[{"index":0,"delta":{` + delta + `},"finish_reason":null}]}` + "\n\n"
	}
	event := func(body string) string {
		kind, _, _ := strings.Cut(strings.TrimPrefix(body, `{"type":"`), `"`)
		return "event: " + kind + "\ndata: " + body + "\n\n"
	}
	begin := event(`{"type":"message_start","message":{"usage":{"input_tokens":7,"output_tokens":1}}}`)
	block := func(what string) string {
		return begin + event(`{"type":"content_block_start","index":0,"content_block":{`+what+`}}`)
	}
	piece := func(delta string) string {
		return event(`{"type":"content_block_delta","index":0,"delta":{` + delta + `}}`)
	}
	args := quoted(`"` + text(50))
	type row = struct {
		api  string
		e    *endless
		kept bool
	}
	const most = 33 << 20
	return map[string]row{
		"openai text":       {"openai", &endless{kind: sse, piece: chunk(`"content":` + quoted(text(50))), most: most}, true},
		"openai one event":  {"openai", &endless{kind: sse, head: `data: {"choices":[{"index":0,"delta":{"content":"wörd `, piece: text(50), most: most}, true},
		"openai whole":      {"openai", &endless{kind: whole, head: `{"choices":[{"message":{"content":"wörd `, piece: text(50), most: most, tail: `"},"finish_reason":"stop"}]}`}, true},
		"openai refusal":    {"openai", &endless{kind: sse, piece: chunk(`"refusal":` + quoted(text(50))), most: most}, true},
		"openai arguments":  {"openai", &endless{kind: sse, head: chunk(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}]`), piece: chunk(`"tool_calls":[{"index":0,"function":{"arguments":` + args + `}}]`), most: most}, false},
		"openai thoughts":   {"openai", &endless{kind: sse, piece: chunk(`"reasoning_content":` + quoted(text(50))), most: most}, false},
		"openai unknown":    {"openai", &endless{kind: sse, piece: chunk(`"audio":` + quoted(text(50))), most: most}, false},
		"openai comments":   {"openai", &endless{kind: sse, piece: ": " + text(50) + "\n", most: most}, false},
		"openai calls":      {"openai", &endless{kind: sse, piece: chunk(`"tool_calls":[{"id":"","function":{"name":"f","arguments":"{}"}}]`), most: most}, false},
		"anthropic text":    {"anthropic", &endless{kind: sse, head: block(`"type":"text","text":""`), piece: piece(`"type":"text_delta","text":` + quoted(text(50))), most: most}, true},
		"anthropic event":   {"anthropic", &endless{kind: sse, head: block(`"type":"text","text":""`) + `data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"wörd `, piece: text(50), most: most}, true},
		"anthropic whole":   {"anthropic", &endless{kind: whole, head: `{"type":"message","content":[{"type":"text","text":"wörd `, piece: text(50), most: most, tail: `"}],"stop_reason":"end_turn"}`}, true},
		"anthropic input":   {"anthropic", &endless{kind: sse, head: block(`"type":"tool_use","id":"a","name":"f","input":{}`), piece: piece(`"type":"input_json_delta","partial_json":` + args), most: most}, false},
		"anthropic thought": {"anthropic", &endless{kind: sse, head: block(`"type":"thinking","thinking":""`), piece: piece(`"type":"thinking_delta","thinking":` + quoted(text(50))), most: most}, false},
		"anthropic sign":    {"anthropic", &endless{kind: sse, head: block(`"type":"thinking","thinking":""`), piece: piece(`"type":"signature_delta","signature":` + quoted(text(50))), most: most}, false},
		"anthropic unknown": {"anthropic", &endless{kind: sse, head: begin, piece: event(`{"type":"something_new","data":` + quoted(text(50)) + `}`), most: most}, false},
	}
}

// T26: an answer that does not end is cut near max_output_tokens, on both wires and in every form; what came of it is the answer, the
// server is hung up on, and it is not asked again, nor is the fallback.
func TestT26_AnswerIsCutNearItsLimitAndNotAskedForAgain(t *testing.T) {
	t.Parallel()
	for name, c := range endlessAnswers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewServer(c.e)
			defer srv.Close()
			spare := &endless{kind: "text/event-stream", piece: "data: [DONE]\n\n", most: 1}
			other := httptest.NewServer(spare)
			defer other.Close()
			reg, err := llm.NewRegistry(llm.RegistryOptions{}, longModel(t, c.api, "long", srv.URL), longModel(t, "openai", "spare", other.URL))
			if err != nil {
				t.Fatal(err)
			}
			m, err := reg.Chain([]string{"long", "spare"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			shown := 0
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			resp, err := m.Stream(ctx, llm.Request{}, func(d llm.Delta) { shown += len(d.Text) })
			const most = limitTokens*16 + 16<<10
			if got := workspace.PlainText(resp.Content); c.kept {
				if err != nil || len(got) > most || len(got) < most-8 || !strings.HasPrefix(text(most), got) || shown != len(got) {
					t.Errorf("%d bytes kept and %d shown of %d, %v", len(got), shown, most, err)
				}
				if resp.Stop != llm.StopLength && resp.Stop != llm.StopFiltered || resp.Usage.OutputTokens < most/4 {
					t.Errorf("stop %s, usage %+v", resp.Stop, resp.Usage)
				}
			} else if kind := llm.KindOf(err); kind != llm.TooLong {
				t.Errorf("%v", err)
			}
			if c.e.asked.Load() != 1 || spare.asked.Load() != 0 {
				t.Errorf("asked %d times, the fallback %d", c.e.asked.Load(), spare.asked.Load())
			}
			if sent := c.e.sent.Load(); sent >= 33<<20 && !strings.Contains(name, "comments") && !strings.Contains(name, "unknown") {
				t.Errorf("all %d bytes were taken", sent)
			}
		})
	}
}

// R20: long answers share the memory that they are given: what is beyond it waits its turn, and who leaves holds nothing up.
func TestR20_LongAnswersShareTheirMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		budget := llm.NewBudget(100)
		hold := func() *llm.Hold { return &llm.Hold{Budget: budget} }
		first, second, third, fourth := hold(), hold(), hold(), hold()
		for _, h := range []*llm.Hold{first, second, first} { // the last asks again for what it has
			if err := h.Grow(t.Context(), 50); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		left, got := make(chan error, 1), make(chan error, 1)
		go func() { left <- third.Grow(ctx, 1000) }() // more than there is: all of it
		synctest.Wait()
		go func() { got <- fourth.Grow(t.Context(), 50) }()
		synctest.Wait()
		if bytes, waiting := budget.Held(); bytes != 100 || waiting != 2 {
			t.Errorf("%d bytes held, %d wait", bytes, waiting)
		}
		gone := errors.New("gone")
		cancel(gone)
		if err := <-left; !errors.Is(err, gone) {
			t.Errorf("left with %v", err)
		}
		first.Release()
		first.Release()
		if err := <-got; err != nil {
			t.Error(err)
		}
		for _, h := range []*llm.Hold{second, third, fourth, nil, {}} {
			h.Release()
		}
		if err := third.Grow(t.Context(), 1000); err != nil {
			t.Error(err)
		}
		if bytes, waiting := budget.Held(); bytes != 100 || waiting != 0 {
			t.Errorf("%d bytes held, %d wait", bytes, waiting)
		}
	})
}

// R20: an answer waits for its memory where it becomes a long one, and is not taken for a silent server; a short one does not wait.
func TestR20_AShortAnswerNeverWaitsForMemory(t *testing.T) {
	t.Parallel()
	for _, api := range []string{"openai", "anthropic"} {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			piece, last := `data: {"choices":[{"index":0,"delta":{"content":`+quoted(strings.Repeat("x", 400))+`},"finish_reason":null}]}`+"\n\n", "data: [DONE]\n\n"
			head := ""
			if api == "anthropic" {
				head = `data: {"type":"message_start","message":{}}` + "\n\n" + `data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}` + "\n\n"
				piece = `data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":` + quoted(strings.Repeat("x", 400)) + `}}` + "\n\n"
				last = `data: {"type":"message_stop"}` + "\n\n"
			}
			body := func(n int) llmtest.Script {
				return func(*llmtest.Request) llmtest.Reply {
					return llmtest.Reply{Raw: []string{head + strings.Repeat(piece, n) + last}}
				}
			}
			const idle = 50 * time.Millisecond
			ask := func(n int, b *llm.Budget) (int, error) {
				srv := llmtest.Start(t, body(n))
				tr := &http.Transport{}
				t.Cleanup(tr.CloseIdleConnections)
				c := &http.Client{Transport: tr}
				var m llm.Model
				var err error
				if m, err = openai.New(openai.Options{Model: "m", BaseURL: srv.URL, MaxOutput: 10_000, Idle: idle, HTTP: c}); api == "anthropic" {
					m, err = anthropic.New(anthropic.Options{Model: "m", BaseURL: srv.URL, MaxOutput: 10_000, Idle: idle, HTTP: c})
				}
				if err != nil {
					return 0, err
				}
				h := &llm.Hold{Budget: b}
				defer h.Release()
				r, err := m.Stream(t.Context(), llm.Request{Hold: h, Messages: []llm.Message{{Role: llm.User, Content: []workspace.Content{{Kind: workspace.Text, Text: "hi"}}}}}, nil)
				return len(workspace.PlainText(r.Content)), err
			}
			budget := llm.NewBudget(1000)
			other := &llm.Hold{Budget: budget}
			if err := other.Grow(t.Context(), 1000); err != nil {
				t.Fatal(err)
			}
			type end struct {
				n   int
				err error
			}
			long := make(chan end, 1)
			go func() {
				n, err := ask(250, budget)
				long <- end{n, err}
			}()
			if n, err := ask(100, budget); err != nil || n != 40_000 {
				t.Errorf("a short one: %d bytes, %v", n, err)
			}
			select {
			case e := <-long:
				t.Fatalf("a long one did not wait: %d bytes, %v", e.n, e.err)
			case <-time.After(5 * idle): // longer than a server may be silent
			}
			other.Release()
			if e := <-long; e.err != nil || e.n != 100_000 {
				t.Errorf("a long one: %d bytes, %v", e.n, e.err)
			}
		})
	}
}
