package llmtest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"parley/agentloop/llm"
	"parley/workspace"
)

// What an adapter promises of answers.

func streamsAndCounts(r *rig) {
	_, m := r.serve(Sequence(Reply{Reasoning: "hmm, let me see what to say", Pieces: []string{"Hel", "lo ", "wörld \"x\"\n"},
		Usage: Usage{Prompt: 100, Completion: 7, Cached: 60, Written: 30}}), func(o *Options) {
		o.Price = func(u workspace.Usage) (float64, bool) { return float64(u.InputTokens), true }
	})
	var shown, thoughts []string
	resp, err := m.Stream(r.Context(), Ask("hi"), func(d llm.Delta) {
		if d.Text != "" {
			shown = append(shown, d.Text)
		}
		thoughts = append(thoughts, d.Reasoning)
	})
	if err != nil {
		r.Fatal(err)
	}
	const answer = "Hello wörld \"x\"\n"
	if len(shown) != 3 || strings.Join(shown, "") != answer || strings.Join(thoughts, "") != "hmm, let me see what to say" {
		r.Errorf("deltas %q, reasoning %q", shown, thoughts)
	}
	if c := resp.Content; len(c) != 2 || c[0].Kind != workspace.Reasoning || c[1].Text != answer || workspace.PlainText(c) != answer {
		r.Errorf("content %+v", c)
	}
	u := resp.Usage
	if u.InputTokens != 10 || u.CacheReadTokens != 60 || u.CacheWriteTokens != 30 || u.OutputTokens != 7 || u.Calls != 1 {
		r.Errorf("usage %+v", u)
	}
	if u.CostUSD == nil || *u.CostUSD != 10 {
		r.Errorf("cost %v", u.CostUSD)
	}
	if resp.Stop != llm.StopEnd || resp.Model != "m" {
		r.Errorf("stop %s, model %s", resp.Stop, resp.Model)
	}
}

func takesWholeAnswers(r *rig) {
	_, m := r.serve(Sequence(Reply{Reasoning: "hm", Text: "Hello", Whole: true, Calls: []Call{{Name: "exec", Args: `{"command":"ls"}`}},
		Usage: Usage{Prompt: 9, Completion: 2}}), nil)
	var text, thoughts string
	resp, err := m.Stream(r.Context(), Ask("hi"), func(d llm.Delta) { text, thoughts = text+d.Text, thoughts+d.Reasoning })
	if err != nil || text != "Hello" || thoughts != "hm" || len(resp.ToolCalls()) != 1 || resp.Stop != llm.StopToolCalls {
		r.Fatalf("%q %q %+v %v", text, thoughts, resp, err)
	}
	if u := resp.Usage; u.InputTokens != 9 || u.OutputTokens != 2 {
		r.Errorf("usage %+v", u)
	}
}

func leavesUnpriced(r *rig) {
	_, m := r.serve(Echo, func(o *Options) { o.Price = func(workspace.Usage) (float64, bool) { return 0, false } })
	resp, err := m.Stream(r.Context(), Ask("hi"), nil)
	if err != nil || resp.Usage.CostUSD != nil || resp.Content[0].Text != "echo: hi" {
		r.Fatalf("%+v, %v", resp, err)
	}
}

func assemblesCalls(r *rig) {
	args := []string{`{"path":"a/very/long/path/of/a/file.txt"}`, `{"command":"echo \"hi\"\n"}`, `{}`}
	for whole, none := range map[bool]string{false: "", true: "{}"} { // how a call without arguments is sent
		_, m := r.serve(Sequence(Reply{Text: "Looking.", Whole: whole, Calls: []Call{
			{Name: "read_file", Args: args[0]}, {Name: "exec", Args: args[1]}, {Name: "list_dir", Args: none}}}), nil)
		var begun []string
		resp, err := m.Stream(r.Context(), Ask("hi"), func(d llm.Delta) {
			if d.ToolName != "" {
				begun = append(begun, d.ToolName)
			}
		})
		calls := resp.ToolCalls()
		if err != nil || len(calls) != 3 || resp.Stop != llm.StopToolCalls || resp.Content[0].Text != "Looking." {
			r.Fatalf("whole %v: %+v, %v", whole, resp, err)
		}
		for i, c := range calls {
			if string(c.Args) != args[i] || c.Error || c.CallID == "" {
				r.Errorf("whole %v, call %d: %+v", whole, i, c)
			}
		}
		if strings.Join(begun, " ") != "read_file exec list_dir" {
			r.Errorf("begun: %q", begun)
		}
	}
}

func returnsBadArguments(r *rig) {
	_, m := r.serve(Sequence(BadArguments("read_file")), nil)
	resp, err := m.Stream(r.Context(), Ask("hi"), nil)
	if err != nil || len(resp.ToolCalls()) != 1 {
		r.Fatalf("%+v, %v", resp, err)
	}
	c := resp.ToolCalls()[0]
	var raw string
	if !c.Error || json.Unmarshal(c.Args, &raw) != nil || raw != `{"path": "a",` {
		r.Errorf("%+v, raw %q", c, raw)
	}
}

func keepsCallIDsUnique(r *rig) {
	_, m := r.serve(Sequence(Reply{Calls: []Call{{ID: "call_1", Name: "a", Args: "{}"}, {ID: "call_1", Name: "b", Args: "{}"}}}), nil)
	req := Ask("hi")
	req.Tools = []llm.Tool{{Name: "a"}}
	call := workspace.Content{Kind: workspace.ToolCall, CallID: "call_1", Name: "a", Args: json.RawMessage(`{}`)}
	result := workspace.Content{Kind: workspace.ToolResult, CallID: "call_1", Text: "done"}
	req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Content: []workspace.Content{call}},
		llm.Message{Role: llm.ToolRole, Content: []workspace.Content{result}})
	resp, err := m.Stream(r.Context(), req, nil)
	calls := resp.ToolCalls()
	if err != nil || len(calls) != 2 {
		r.Fatalf("%+v, %v", calls, err)
	}
	if a, b := calls[0].CallID, calls[1].CallID; a == "call_1" || b == "call_1" || a == b {
		r.Errorf("ids %q and %q", a, b)
	}
}

// later is a reply that fails as many events later as the wire has before an answer.
func (r *rig) later(reply Reply) Reply {
	if reply.CutAfter > 0 {
		reply.CutAfter += r.Wire.lead
	}
	if reply.HangAfter > 0 {
		reply.HangAfter += r.Wire.lead
	}
	return reply
}

func dropsHalfACall(r *rig) {
	_, m := r.serve(Sequence(r.later(Cut("Hello, half")), r.later(CutCall("exec", `{"command":"rm -r important"}`))), nil)
	resp, err := m.Stream(r.Context(), Ask("hi"), nil)
	if e := KindOf(r, err, llm.Cut); e.Partial != "Hello" || len(resp.Content) != 0 {
		r.Errorf("partial %q, %+v", e.Partial, resp)
	}
	r.failed(err, Failure{Kind: llm.Cut, Says: "the connection to m broke off in the middle of an answer"})
	begun := ""
	resp, err = m.Stream(r.Context(), Ask("hi"), func(d llm.Delta) { begun += d.ToolName })
	if KindOf(r, err, llm.Cut); len(resp.Content) != 0 || begun != "exec" {
		r.Errorf("half a call came back: %+v; begun: %q", resp.Content, begun)
	}
}

func dropsUnfinishedCall(r *rig) {
	for reason, stop := range r.Wire.stops {
		if stop != llm.StopLength {
			continue
		}
		_, m := r.serve(Sequence(Reply{Text: "x", Finish: reason, Calls: []Call{
			{Name: "read_file", Args: `{"path":"a"}`}, {Name: "exec", Args: `{"command":"rm -r /i`}}}), nil)
		resp, err := m.Stream(r.Context(), Ask("hi"), nil)
		if err != nil || resp.Stop != llm.StopLength || len(resp.ToolCalls()) != 1 || resp.ToolCalls()[0].Name != "read_file" {
			r.Fatalf("%s: %+v, %v", reason, resp, err)
		}
	}
}

func takesEmptyAnswers(r *rig) {
	_, m := r.serve(Sequence(Reply{}, OnlyReasoning("hm")), nil)
	resp, err := m.Stream(r.Context(), Ask("hi"), nil)
	if err != nil || len(resp.Content) != 0 || resp.Stop != llm.StopEnd {
		r.Errorf("%+v, %v", resp, err)
	}
	resp, err = m.Stream(r.Context(), Ask("hi"), nil)
	if err != nil || len(resp.Content) != 1 || resp.Content[0].Kind != workspace.Reasoning {
		r.Errorf("%+v, %v", resp, err)
	}
}

func showsRefusals(r *rig) {
	const refusal = "I can't help with that."
	for _, reply := range []Reply{{Refusal: refusal}, {Refusal: refusal, Calls: []Call{{Name: "exec", Args: `{"command":"x"}`}}}} {
		for _, whole := range []bool{false, true} {
			reply.Whole = whole
			_, m := r.serve(Sequence(reply), nil)
			shown := ""
			resp, err := m.Stream(r.Context(), Ask("hi"), func(d llm.Delta) { shown += d.Text })
			if err != nil || resp.Stop != llm.StopFiltered || len(resp.Content) != 1 || resp.Content[0].Text != refusal ||
				shown != refusal {
				r.Errorf("whole %v, %d calls: %+v, %v, shown %q", whole, len(reply.Calls), resp, err, shown)
			}
		}
	}
}

func knowsStopReasons(r *rig) {
	for reason, want := range r.Wire.stops {
		for _, whole := range []bool{false, true} {
			_, m := r.serve(Sequence(Reply{Text: "x", Finish: reason, Whole: whole}), nil)
			resp, err := m.Stream(r.Context(), Ask("hi"), nil)
			if err != nil || resp.Stop != want || resp.Content[0].Text != "x" {
				r.Errorf("%s: %+v, %v", reason, resp, err)
			}
		}
	}
}

func timesOut(r *rig) {
	for partial, reply := range map[string]Reply{"": Hang(), "Hello": r.later(HangMid("Hello, half"))} {
		_, m := r.serve(Sequence(reply), func(o *Options) { o.FirstByte, o.Idle = patience, patience })
		_, err := m.Stream(r.Context(), Ask("hi"), nil)
		if e := KindOf(r, err, llm.TimedOut); e.Partial != partial {
			r.Errorf("partial %q, want %q", e.Partial, partial)
		}
		r.failed(err, Failure{Kind: llm.TimedOut, Says: "m did not answer in time"})
	}
}

func waitsForSlowStreams(r *rig) {
	_, m := r.serve(Sequence(Reply{Pieces: strings.Split(strings.Repeat("x", 20), ""), TokenDelay: 150 * time.Millisecond}),
		func(o *Options) { o.FirstByte, o.Idle = 2*time.Second, 2*time.Second })
	if resp, err := m.Stream(r.Context(), Ask("hi"), nil); err != nil || len(resp.Content[0].Text) != 20 {
		r.Errorf("%+v, %v", resp, err)
	}
}

// A server that never ends its body, or goes on after its end, holds nobody.
func endsAtTheEnd(r *rig) {
	for name, after := range map[string]time.Duration{"silence": time.Hour, "chatter": 20 * time.Millisecond} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			line := r.Wire.head + r.Wire.text("hi") + r.Wire.done
			for {
				if _, err := io.WriteString(w, line); err != nil || http.NewResponseController(w).Flush() != nil {
					return
				}
				line = ": still here\n\n"
				select {
				case <-time.After(after):
				case <-req.Context().Done():
					return
				}
			}
		}))
		ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
		resp, err := r.open(srv.URL, nil).Stream(ctx, Ask("hi"), nil)
		if err != nil || resp.Content[0].Text != "hi" || resp.Usage.DurationMS > 4000 {
			r.Errorf("%s: %+v, %v", name, resp, err)
		}
		cancel()
		srv.Close()
	}
}

func returnsTheCause(r *rig) {
	_, m := r.serve(Sequence(r.later(HangMid("Hello, half"))), nil)
	cause := errors.New("stopped by a person")
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	_, err := m.Stream(ctx, Ask("hi"), func(d llm.Delta) {
		if d.Text != "" {
			cancel(cause)
		}
	})
	if e := KindOf(r, err, llm.Cancelled); !errors.Is(err, cause) || e.Partial == "" {
		r.Errorf("%v, partial %q", err, e.Partial)
	}
}

func keepsTheConnection(r *rig) {
	dials := make(chan struct{}, 100)
	// The pieces come in packets of their own, the end of the body too.
	srv, m := r.serve(Sequence(Reply{Text: "hi", TokenDelay: time.Millisecond}), func(o *Options) { countDials(o, dials) })
	for range 20 {
		if _, err := m.Stream(r.Context(), Ask("hi"), nil); err != nil {
			r.Fatal(err)
		}
	}
	if n := len(dials); n != 1 || srv.Count() != 20 {
		r.Errorf("%d connections for %d calls", n, srv.Count())
	}
}

func sendsTheKey(r *rig) {
	srv, m := r.serve(Echo, nil)
	if _, err := m.Stream(r.Context(), Ask("hi"), nil); err != nil {
		r.Fatal(err)
	}
	for name, want := range r.Wire.headers {
		if got := srv.Requests()[0].Header.Get(name); got != want {
			r.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func namesWhatIsWrong(r *rig) {
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
		_, err := r.New(o)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secretpass") {
			r.Errorf("%s: %v", want, err)
		}
	}
	if m, err := r.New(good); err != nil || m.Info().Name != "m" {
		r.Errorf("%+v, %v", m, err)
	}
}

func tellsAccountsApart(r *rig) {
	account := func(base, key, model string) string {
		return r.open(base, func(o *Options) { o.APIKey, o.Model = key, model }).(interface{ Account() string }).Account()
	}
	a := account("http://g/v1", "k1", "m")
	if a != account("http://g/v1", "k1", "m") {
		r.Error("one model has two accounts")
	}
	if a == account("http://g/v1", "k2", "m") || a == account("http://g/v1", "k1", "n") || a == account("http://h/v1", "k1", "m") {
		r.Error("different models share an account")
	}
}
