package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"parley/agentloop/llm"
	"parley/agentloop/llm/llmtest"
	"parley/workspace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testKey = "sk-ant-canary-0123456789"

// client is a pooled client of one test.
func client(t testing.TB) *http.Client {
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

func says(content ...workspace.Content) llm.Message {
	return llm.Message{Role: llm.Assistant, Content: content}
}

func text(s string) workspace.Content { return workspace.Content{Kind: workspace.Text, Text: s} }

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
	_, m := serve(t, always(llmtest.Reply{Reasoning: "hmm, let me see what to say", Pieces: []string{"Hel", "lo ", "wörld \"x\"\n"},
		Usage: llmtest.Usage{Prompt: 100, Completion: 7, Cached: 60, Written: 30}}))
	m.o.Price = func(u workspace.Usage) (float64, bool) { return float64(u.InputTokens), true }
	var shown, thoughts []string
	r, err := m.Stream(t.Context(), ask("hi"), func(d llm.Delta) {
		if d.Text != "" {
			shown = append(shown, d.Text)
		}
		thoughts = append(thoughts, d.Reasoning)
	})
	if err != nil {
		t.Fatal(err)
	}
	const answer = "Hello wörld \"x\"\n"
	if len(shown) != 3 || strings.Join(shown, "") != answer || strings.Join(thoughts, "") != "hmm, let me see what to say" {
		t.Errorf("deltas %q, reasoning %q", shown, thoughts)
	}
	if len(r.Content) != 2 || r.Content[0].Kind != workspace.Reasoning || r.Content[1].Text != answer || workspace.PlainText(r.Content) != answer {
		t.Errorf("content %+v", r.Content)
	}
	u := r.Usage
	if u.InputTokens != 10 || u.CacheReadTokens != 60 || u.CacheWriteTokens != 30 || u.OutputTokens != 7 || u.Calls != 1 || u.CostUSD == nil || *u.CostUSD != 10 {
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
	if err != nil || r.Usage.CostUSD != nil || r.Content[0].Text != "echo: hi" {
		t.Fatalf("%+v, %v", r, err)
	}
}

func TestParallelToolCallsAreAssembledFromFragments(t *testing.T) {
	t.Parallel()
	args := []string{`{"path":"a/very/long/path/of/a/file.txt"}`, `{"command":"echo \"hi\"\n"}`, ``}
	calls := []llmtest.Call{{Name: "read_file", Args: args[0]}, {Name: "exec", Args: args[1]}, {Name: "list_dir", Args: args[2]}}
	args[2] = `{}`
	for _, whole := range []bool{false, true} {
		calls := append([]llmtest.Call(nil), calls...)
		if whole {
			calls[2].Args = `{}`
		}
		_, m := serve(t, always(llmtest.Reply{Text: "Looking.", Calls: calls, Whole: whole}))
		var begun []string
		r, err := m.Stream(t.Context(), ask("hi"), func(d llm.Delta) {
			if d.ToolName != "" {
				begun = append(begun, d.ToolName)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		got := r.ToolCalls()
		if len(got) != 3 || r.Stop != llm.StopToolCalls || r.Content[0].Text != "Looking." {
			t.Fatalf("whole %v: %+v", whole, r)
		}
		for i, c := range got {
			if string(c.Args) != args[i] || c.Error || c.CallID == "" {
				t.Errorf("whole %v, call %d: %+v", whole, i, c)
			}
		}
		if strings.Join(begun, " ") != "read_file exec list_dir" {
			t.Errorf("begun: %q", begun)
		}
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

func TestCallIDsAreOneOfAKindInTheConversation(t *testing.T) {
	t.Parallel()
	_, m := serve(t, always(llmtest.Reply{Calls: []llmtest.Call{{ID: "call_1", Name: "a", Args: "{}"}, {ID: "call_1", Name: "b", Args: "{}"}}}))
	req := ask("hi")
	req.Messages = append(req.Messages, toolTurn()...)
	r, err := m.Stream(t.Context(), req, nil)
	if err != nil {
		t.Fatal(err)
	}
	calls := r.ToolCalls()
	if calls[0].CallID == "call_1" || calls[1].CallID == "call_1" || calls[0].CallID == calls[1].CallID {
		t.Errorf("%+v", calls)
	}
}

func TestStreamCutHalfWayDiscardsHalfACall(t *testing.T) {
	t.Parallel()
	cut := llmtest.Cut("Hello, half")
	cut.CutAfter = 4 // message_start, ping, content_block_start, the first half
	call := llmtest.CutCall("exec", `{"command":"rm -r important"}`)
	call.CutAfter = 6
	_, m := serve(t, llmtest.Sequence(cut, call))
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
	for _, reason := range []string{"max_tokens", "model_context_window_exceeded"} {
		_, m := serve(t, always(llmtest.Reply{Text: "x", Finish: reason, Calls: []llmtest.Call{
			{Name: "read_file", Args: `{"path":"a"}`}, {Name: "exec", Args: `{"command":"rm -r /i`}}}))
		r, err := m.Stream(t.Context(), ask("hi"), nil)
		if err != nil || r.Stop != llm.StopLength || len(r.ToolCalls()) != 1 || r.ToolCalls()[0].Name != "read_file" {
			t.Fatalf("%+v, %v", r, err)
		}
	}
}

func TestSilentServerTimesOut(t *testing.T) {
	t.Parallel()
	mid := llmtest.HangMid("Hello, half")
	mid.HangAfter = 4
	for name, reply := range map[string]llmtest.Reply{"before headers": llmtest.Hang(), "mid stream": mid} {
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
	srv := llmtest.Start(t, always(llmtest.Reply{Pieces: strings.Split(strings.Repeat("x", 20), ""), TokenDelay: 30 * time.Millisecond}))
	m := open(t, srv, func(o *Options) { o.FirstByte, o.Idle = 500*time.Millisecond, 500*time.Millisecond })
	if r, err := m.Stream(t.Context(), ask("hi"), nil); err != nil || len(r.Content[0].Text) != 20 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestCancelReturnsTheCause(t *testing.T) {
	t.Parallel()
	reply := llmtest.HangMid("Hello, half")
	reply.HangAfter = 4
	_, m := serve(t, always(reply))
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

func TestStopReasons(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]llm.Stop{"end_turn": llm.StopEnd, "stop_sequence": llm.StopEnd, "pause_turn": llm.StopEnd, "from the future": llm.StopEnd,
		"max_tokens": llm.StopLength, "model_context_window_exceeded": llm.StopLength, "refusal": llm.StopFiltered} {
		for _, whole := range []bool{false, true} {
			_, m := serve(t, always(llmtest.Reply{Text: "x", Finish: reason, Whole: whole}))
			r, err := m.Stream(t.Context(), ask("hi"), nil)
			if err != nil || r.Stop != want || r.Content[0].Text != "x" {
				t.Errorf("%s: %+v, %v", reason, r, err)
			}
		}
	}
}

func TestRefusalIsExplainedAndCallsNothing(t *testing.T) {
	t.Parallel()
	_, m := serve(t, always(llmtest.Reply{Refusal: "I can't help with that.", Calls: []llmtest.Call{{Name: "exec", Args: `{"command":"x"}`}}}))
	shown := ""
	r, err := m.Stream(t.Context(), ask("hi"), func(d llm.Delta) { shown += d.Text })
	if err != nil || r.Stop != llm.StopFiltered || len(r.Content) != 1 || r.Content[0].Text != "I can't help with that." || shown != r.Content[0].Text {
		t.Errorf("%+v, %v, shown %q", r, err, shown)
	}
}

func TestConnectionIsKeptBetweenCalls(t *testing.T) {
	t.Parallel()
	dials := make(chan struct{}, 100)
	srv, m := serve(t, always(llmtest.Reply{Text: "hi", TokenDelay: time.Millisecond}))
	var d net.Dialer
	m.client.HTTP.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		dials <- struct{}{}
		return d.DialContext(ctx, network, addr)
	}
	for range 20 {
		if _, err := m.Stream(t.Context(), ask("hi"), nil); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(dials); n != 1 || srv.Count() != 20 {
		t.Errorf("%d connections for %d calls", n, srv.Count())
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	srv, m := serve(t, llmtest.Echo)
	if _, err := m.Stream(t.Context(), ask("hi"), nil); err != nil {
		t.Fatal(err)
	}
	h := srv.Requests()[0].Header
	if h.Get("X-Api-Key") != testKey || h.Get("Anthropic-Version") != "2023-06-01" || h.Get("Authorization") != "" || h.Get("Content-Type") != "application/json" {
		t.Errorf("%v", h)
	}
}

func TestBaseURLWithAndWithoutVersion(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]string{
		"": "https://api.anthropic.com/v1/messages", "https://api.anthropic.com": "https://api.anthropic.com/v1/messages",
		"https://api.anthropic.com/v1": "https://api.anthropic.com/v1/messages", "http://h:1/v1/": "http://h:1/v1/messages",
		"https://api.deepseek.com/anthropic": "https://api.deepseek.com/anthropic/v1/messages", "https://h/": "https://h/v1/messages",
	} {
		m, err := New(Options{Model: "m", BaseURL: base, HTTP: &http.Client{}})
		if err != nil || m.endpoint != want {
			t.Errorf("%q: %v, %v", base, m, err)
		}
	}
}

func TestNewNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	good := Options{Model: "m", HTTP: &http.Client{}}
	for want, change := range map[string]func(*Options){
		"model":    func(o *Options) { o.Model = "" },
		"base_url": func(o *Options) { o.BaseURL = "localhost:11434" },
		"api_key":  func(o *Options) { o.BaseURL = "http://u:secretpass@h" },
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
	m, err := New(good)
	if err != nil || m.Info().MaxOutput != 8192 || m.Info().Name != "m" {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestAccountTellsModelsApart(t *testing.T) {
	t.Parallel()
	account := func(base, key, model string) string {
		m, err := New(Options{Model: model, BaseURL: base, APIKey: key, HTTP: &http.Client{}})
		if err != nil {
			t.Fatal(err)
		}
		return m.Account()
	}
	a := account("", "k1", "m")
	if a != account("https://api.anthropic.com/v1", "k1", "m") {
		t.Error("two ways to write one address are two accounts")
	}
	if a == account("", "k2", "m") || a == account("", "k1", "n") || a == account("http://h", "k1", "m") {
		t.Error("different models share an account")
	}
}
