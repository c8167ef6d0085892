package openai

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"parley/agentloop/llm"
	"parley/agentloop/llm/llmtest"
	"parley/workspace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testKey = "sk-canary-0123456789"

// client is a pooled client of one test.
func client(t *testing.T) *http.Client {
	t.Helper()
	tr := &http.Transport{MaxIdleConnsPerHost: 16}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

func open(t *testing.T, s *llmtest.Server, change func(*Options)) *Model {
	t.Helper()
	o := Options{Name: "m", Model: "test-model", BaseURL: s.URL, APIKey: testKey, HTTP: client(t)}
	if change != nil {
		change(&o)
	}
	m, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func serve(t *testing.T, s llmtest.Script) (*llmtest.Server, *Model) {
	t.Helper()
	srv := llmtest.Start(t, s)
	srv.Key = testKey
	return srv, open(t, srv, nil)
}

func always(r llmtest.Reply) llmtest.Script { return llmtest.Sequence(r) }

func ask(text string) llm.Request {
	return llm.Request{System: "You are helpful.", Messages: []llm.Message{user(text)}}
}

func user(text string) llm.Message {
	return llm.Message{Role: llm.User, Content: []workspace.Content{{Kind: workspace.Text, Text: text}}}
}

func kindOf(t *testing.T, err error, want llm.Kind) *llm.Error {
	t.Helper()
	var e *llm.Error
	if !errors.As(err, &e) || e.Kind != want {
		t.Fatalf("error %v, want kind %s", err, want)
	}
	return e
}

func TestStreamsTextAndCountsUsage(t *testing.T) {
	t.Parallel()
	_, m := serve(t, always(llmtest.Reply{Reasoning: "hmm, let me see", Pieces: []string{"Hel", "lo ", "wörld"},
		Usage: llmtest.Usage{Prompt: 100, Completion: 7, Cached: 60}}))
	m.o.Price = func(u workspace.Usage) (float64, bool) { return float64(u.InputTokens), true }
	var text, thoughts []string
	r, err := m.Stream(t.Context(), ask("hi"), func(d llm.Delta) {
		if d.Text != "" {
			text = append(text, d.Text)
		}
		thoughts = append(thoughts, d.Reasoning)
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(text) != 3 || strings.Join(text, "") != "Hello wörld" || strings.Join(thoughts, "") != "hmm, let me see" {
		t.Errorf("deltas %q, reasoning %q", text, thoughts)
	}
	if len(r.Content) != 2 || r.Content[0].Kind != workspace.Reasoning || r.Content[1].Text != "Hello wörld" {
		t.Errorf("content %+v", r.Content)
	}
	u := r.Usage
	if u.InputTokens != 40 || u.CacheReadTokens != 60 || u.OutputTokens != 7 || u.Calls != 1 || u.CostUSD == nil || *u.CostUSD != 40 {
		t.Errorf("usage %+v", u)
	}
	if r.Stop != llm.StopEnd || r.Model != "m" {
		t.Errorf("stop %s, model %s", r.Stop, r.Model)
	}
}

func TestUnpricedModelHasNoCost(t *testing.T) {
	t.Parallel()
	_, m := serve(t, llmtest.Echo)
	m.o.Price = func(workspace.Usage) (float64, bool) { return 0, false }
	r, err := m.Stream(t.Context(), ask("hi"), nil)
	if err != nil || r.Usage.CostUSD != nil {
		t.Fatalf("%+v, %v", r.Usage, err)
	}
}

func TestParallelToolCallsAreAssembledFromFragments(t *testing.T) {
	t.Parallel()
	args := []string{`{"path":"a/very/long/path/of/a/file.txt"}`, `{"command":"echo \"hi\"\n"}`, ``}
	_, m := serve(t, always(llmtest.Reply{Text: "Looking.", Calls: []llmtest.Call{
		{Name: "read_file", Args: args[0]}, {Name: "exec", Args: args[1]}, {Name: "list_dir", Args: args[2]}}}))
	var begun []string
	r, err := m.Stream(t.Context(), ask("hi"), func(d llm.Delta) {
		if d.ToolName != "" {
			begun = append(begun, d.ToolName)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	calls := r.ToolCalls()
	if len(calls) != 3 || r.Stop != llm.StopToolCalls {
		t.Fatalf("%+v", r)
	}
	args[2] = `{}`
	for i, c := range calls {
		if string(c.Args) != args[i] || c.Error || c.CallID == "" {
			t.Errorf("call %d: %+v", i, c)
		}
	}
	if strings.Join(begun, " ") != "read_file exec list_dir" {
		t.Errorf("begun: %q", begun)
	}
}

func TestMalformedArgumentsComeBackAsText(t *testing.T) {
	t.Parallel()
	_, m := serve(t, always(llmtest.BadArguments("read_file")))
	r, err := m.Stream(t.Context(), ask("hi"), nil)
	if err != nil || len(r.ToolCalls()) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	c := r.ToolCalls()[0]
	var raw string
	if !c.Error || json.Unmarshal(c.Args, &raw) != nil || raw != `{"path": "a",` {
		t.Errorf("%+v, raw %q", c, raw)
	}
}

func TestStreamCutHalfWayDiscardsHalfACall(t *testing.T) {
	t.Parallel()
	_, m := serve(t, llmtest.Sequence(llmtest.Cut("Hello, half"), llmtest.CutCall("exec", `{"command":"rm -r important"}`)))
	_, err := m.Stream(t.Context(), ask("hi"), nil)
	if e := kindOf(t, err, llm.Cut); e.Partial != "Hello" {
		t.Errorf("partial %q", e.Partial)
	}
	r, err := m.Stream(t.Context(), ask("hi"), nil)
	kindOf(t, err, llm.Cut)
	if len(r.Content) != 0 {
		t.Errorf("half a call came back: %+v", r.Content)
	}
}

func TestLengthLimitDropsTheUnfinishedCall(t *testing.T) {
	t.Parallel()
	_, m := serve(t, always(llmtest.Reply{Text: "x", Finish: "length", Calls: []llmtest.Call{
		{Name: "read_file", Args: `{"path":"a"}`}, {Name: "exec", Args: `{"command":"rm -r /i`}}}))
	r, err := m.Stream(t.Context(), ask("hi"), nil)
	if err != nil || r.Stop != llm.StopLength || len(r.ToolCalls()) != 1 || r.ToolCalls()[0].Name != "read_file" {
		t.Fatalf("%+v, %v", r, err)
	}
}

func TestSilentServerTimesOut(t *testing.T) {
	t.Parallel()
	for name, reply := range map[string]llmtest.Reply{"before headers": llmtest.Hang(), "mid stream": llmtest.HangMid("Hello, half")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := llmtest.Start(t, always(reply))
			m := open(t, srv, func(o *Options) { o.FirstByte, o.Idle = 200*time.Millisecond, 200*time.Millisecond })
			_, err := m.Stream(t.Context(), ask("hi"), nil)
			e := kindOf(t, err, llm.TimedOut)
			if name == "mid stream" && e.Partial != "Hello" {
				t.Errorf("partial %q", e.Partial)
			}
		})
	}
}

func TestSlowStreamIsNotSilent(t *testing.T) {
	t.Parallel()
	srv := llmtest.Start(t, always(llmtest.Reply{Pieces: strings.Split(strings.Repeat("x", 20), ""), TokenDelay: 50 * time.Millisecond}))
	m := open(t, srv, func(o *Options) { o.FirstByte, o.Idle = 500*time.Millisecond, 500*time.Millisecond })
	if r, err := m.Stream(t.Context(), ask("hi"), nil); err != nil || len(r.Content[0].Text) != 20 {
		t.Errorf("%+v, %v", r, err)
	}
}

// A server that never ends its body, or goes on after its end, holds nobody.
func TestNothingIsAwaitedAfterTheEnd(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]time.Duration{"silence": time.Hour, "chatter": 20 * time.Millisecond} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			line := "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\ndata: [DONE]\n\n"
			for {
				if _, err := io.WriteString(w, line); err != nil || http.NewResponseController(w).Flush() != nil {
					return
				}
				line = ": still here\n\n"
				select {
				case <-time.After(after):
				case <-r.Context().Done():
					return
				}
			}
		}))
		m, err := New(Options{Model: "m", BaseURL: srv.URL + "/v1", HTTP: client(t)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		if r, err := m.Stream(ctx, ask("hi"), nil); err != nil || r.Content[0].Text != "hi" || r.Usage.DurationMS > 4000 {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
		cancel()
		srv.Close()
	}
}

func TestCancelReturnsTheCause(t *testing.T) {
	t.Parallel()
	_, m := serve(t, always(llmtest.HangMid("Hello, half")))
	cause := errors.New("stopped by a person")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	_, err := m.Stream(ctx, ask("hi"), func(d llm.Delta) {
		if d.Text != "" {
			cancel(cause)
		}
	})
	e := kindOf(t, err, llm.Cancelled)
	if !errors.Is(err, cause) || e.Partial == "" {
		t.Errorf("%v, partial %q", err, e.Partial)
	}
}

func TestEmptyAnswers(t *testing.T) {
	t.Parallel()
	_, m := serve(t, llmtest.Sequence(llmtest.Reply{}, llmtest.OnlyReasoning("hm")))
	r, err := m.Stream(t.Context(), ask("hi"), nil)
	if err != nil || len(r.Content) != 0 || r.Stop != llm.StopEnd {
		t.Errorf("%+v, %v", r, err)
	}
	r, err = m.Stream(t.Context(), ask("hi"), nil)
	if err != nil || len(r.Content) != 1 || r.Content[0].Kind != workspace.Reasoning {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestRefusalIsFilteredText(t *testing.T) {
	t.Parallel()
	_, m := serve(t, always(llmtest.Reply{Refusal: "I can't help with that."}))
	r, err := m.Stream(t.Context(), ask("hi"), nil)
	if err != nil || r.Stop != llm.StopFiltered || len(r.Content) != 1 || r.Content[0].Text != "I can't help with that." {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestFinishReasons(t *testing.T) {
	t.Parallel()
	for finish, want := range map[string]llm.Stop{"stop": llm.StopEnd, "length": llm.StopLength, "content_filter": llm.StopFiltered,
		"eos": llm.StopEnd, "max_tokens": llm.StopLength} {
		_, m := serve(t, always(llmtest.Reply{Text: "x", Finish: finish}))
		r, err := m.Stream(t.Context(), ask("hi"), nil)
		if err != nil || r.Stop != want {
			t.Errorf("%s: %s, %v", finish, r.Stop, err)
		}
	}
}

func TestWholeAnswerInsteadOfAStream(t *testing.T) {
	t.Parallel()
	_, m := serve(t, always(llmtest.Reply{Text: "Hello", Whole: true, Calls: []llmtest.Call{{Name: "exec", Args: `{"command":"ls"}`}},
		Usage: llmtest.Usage{Prompt: 9, Completion: 2}}))
	var got string
	r, err := m.Stream(t.Context(), ask("hi"), func(d llm.Delta) { got += d.Text })
	if err != nil || got != "Hello" || len(r.ToolCalls()) != 1 || r.Usage.InputTokens != 9 || r.Stop != llm.StopToolCalls {
		t.Fatalf("%q %+v %v", got, r, err)
	}
}

func TestThinkTagStaysPrivate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pieces        []string
		text, thought string
	}{
		{[]string{"<think>secret plan</think>\n\nHello"}, "Hello", "secret plan"},
		{[]string{"\n<th", "ink>sec", "ret</thi", "nk>", "\n", "\nHel", "lo"}, "Hello", "secret"},
		{[]string{"<think>never ends </thin"}, "", "never ends </thin"},
		{[]string{"<thin air"}, "<thin air", ""},
		{[]string{"<th"}, "<th", ""},
		{[]string{"Say <think>x</think>"}, "Say <think>x</think>", ""},
	} {
		_, m := serve(t, always(llmtest.Reply{Pieces: c.pieces}))
		var text, thought string
		if _, err := m.Stream(t.Context(), ask("hi"), func(d llm.Delta) { text += d.Text; thought += d.Reasoning }); err != nil {
			t.Fatal(err)
		}
		if text != c.text || thought != c.thought {
			t.Errorf("%q: text %q, thought %q", c.pieces, text, thought)
		}
	}
}

func TestConnectionIsKeptBetweenCalls(t *testing.T) {
	t.Parallel()
	dials := make(chan struct{}, 100)
	// The pieces come in packets of their own, the end of the body too.
	srv, m := serve(t, always(llmtest.Reply{Text: "hi", TokenDelay: time.Millisecond}))
	tr := m.client.HTTP.Transport.(*http.Transport)
	tr.DialContext = countDials(dials)
	for range 20 {
		if _, err := m.Stream(t.Context(), ask("hi"), nil); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(dials); n != 1 || srv.Count() != 20 {
		t.Errorf("%d connections for %d calls", n, srv.Count())
	}
}

func TestNewNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	good := Options{Model: "m", BaseURL: "http://h/v1", HTTP: &http.Client{}}
	for want, change := range map[string]func(*Options){
		"model":    func(o *Options) { o.Model = "" },
		"base_url": func(o *Options) { o.BaseURL = "localhost:11434/v1" },
		"api_key":  func(o *Options) { o.BaseURL = "http://u:secretpass@h/v1" },
		"http":     func(o *Options) { o.HTTP = nil },
		"special":  func(o *Options) { o.APIKey = "secretpass\n" },
	} {
		o := good
		change(&o)
		_, err := New(o)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secretpass") {
			t.Errorf("%s: %v", want, err)
		}
	}
	if _, err := New(good); err != nil {
		t.Error(err)
	}
}

func TestListModels(t *testing.T) {
	t.Parallel()
	srv, m := serve(t, llmtest.Echo)
	srv.Models = []string{"a", "b"}
	names, err := List(t.Context(), m.o)
	if err != nil || strings.Join(names, " ") != "a b" {
		t.Fatalf("%q, %v", names, err)
	}
	o := m.o
	o.APIKey = "sk-wrong-key"
	_, err = List(t.Context(), o)
	kindOf(t, err, llm.Auth)
	o.BaseURL = "http://127.0.0.1:1/v1"
	_, err = List(t.Context(), o)
	kindOf(t, err, llm.Overload)
}
