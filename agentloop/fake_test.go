package agentloop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/agentloop/llm"
	"parley/tools"
	"parley/workspace"
)

// scripted is a model in this process: answers[i] is what the i-th call gets.
type scripted struct {
	mu       sync.Mutex
	info     llm.Info
	requests []llm.Request
	answer   func(ctx context.Context, n int, req llm.Request, see func(llm.Delta)) (llm.Response, error)
}

func (m *scripted) Info() llm.Info { return m.info }

func (m *scripted) Stream(ctx context.Context, req llm.Request, see func(llm.Delta)) (llm.Response, error) {
	m.mu.Lock()
	n := len(m.requests)
	m.requests = append(m.requests, req)
	m.mu.Unlock()
	if err := wellFormed(req.Messages); err != nil {
		panic(err)
	}
	return m.answer(ctx, n, req, see)
}

func (m *scripted) Chain([]string, func(string)) (llm.Model, error) { return m, nil }

// wellFormed is what every provider asks for: a call's result stands right behind it, once, and there is none without.
func wellFormed(msgs []llm.Message) error {
	var open []string
	for i, m := range msgs {
		if m.Role != llm.ToolRole && len(open) > 0 {
			return fmt.Errorf("message %d: calls %v have no result", i, open)
		}
		for _, c := range m.Content {
			switch c.Kind {
			case workspace.ToolCall:
				open = append(open, c.CallID)
			case workspace.ToolResult:
				if len(open) == 0 || open[0] != c.CallID {
					return fmt.Errorf("message %d: result %s, open are %v", i, c.CallID, open)
				}
				open = open[1:]
			}
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("calls %v have no result", open)
	}
	return nil
}

// says makes a model of a list: strings are answers, []call are rounds, errors are failures.
func says(list ...any) *scripted {
	m := &scripted{info: llm.Info{Name: "m", ContextWindow: 100_000, MaxOutput: 1000}}
	m.answer = func(_ context.Context, n int, _ llm.Request, see func(llm.Delta)) (llm.Response, error) {
		if n >= len(list) {
			return llm.Response{}, fmt.Errorf("call %d was not expected", n)
		}
		switch x := list[n].(type) {
		case error:
			return llm.Response{}, x
		case llm.Response:
			return x, nil
		case []workspace.Content:
			return reply(x...), nil
		default:
			for _, piece := range strings.SplitAfter(x.(string), " ") {
				see(llm.Delta{Text: piece})
			}
			return reply(text(x.(string))), nil
		}
	}
	return m
}

func text(s string) workspace.Content { return workspace.Content{Kind: workspace.Text, Text: s} }

func toolCall(id, name, args string) workspace.Content {
	return workspace.Content{Kind: workspace.ToolCall, CallID: id, Name: name, Args: json.RawMessage(args)}
}

func calls(c ...workspace.Content) []workspace.Content { return c }

func reply(content ...workspace.Content) llm.Response {
	cost := 0.5
	return llm.Response{Content: content, Model: "m", Stop: llm.StopEnd, Usage: workspace.Usage{InputTokens: 10, OutputTokens: 1, Calls: 1, DurationMS: 1, CostUSD: &cost}}
}

// memory is a Recorder that keeps the state tables and can break.
type memory struct {
	mu       sync.Mutex
	steps    []workspace.Step
	outcomes []Outcome
	writes   int
	before   func(n int, steps []workspace.Step) error // before the n-th write
	after    func(n int, steps []workspace.Step) error // after it
	boundary func(steps []workspace.Step) Boundary
	ask      func(w Wanted) (Answer, error)
	held     bool // a stop comes before an approved call is started
	troubles []*workspace.Trouble
}

func (r *memory) Trouble(t *workspace.Trouble) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.troubles = append(r.troubles, t)
}

func (r *memory) Ask(_ context.Context, w Wanted) (Answer, error) { return r.ask(w) }

var errCrash = errors.New("the process died")

func (r *memory) Step(_ context.Context, boundary bool, steps ...workspace.Step) (Boundary, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.writes
	r.writes++
	if r.before != nil {
		if err := r.before(n, steps); err != nil {
			return Boundary{}, err
		}
	}
	if r.held && slices.ContainsFunc(steps, func(st workspace.Step) bool { return st.Approval != "" }) {
		return Boundary{Stop: true, Held: true}, nil
	}
	if err := r.put(steps); err != nil {
		panic(err)
	}
	if r.after != nil {
		if err := r.after(n, steps); err != nil {
			return Boundary{}, err
		}
	}
	if boundary && r.boundary != nil {
		return r.boundary(steps), nil
	}
	return Boundary{}, nil
}

func (r *memory) put(steps []workspace.Step) error {
	for _, st := range steps {
		if _, err := json.Marshal(st.Body); err != nil {
			return fmt.Errorf("step %d cannot be stored: %w", st.N, err)
		}
		i := slices.IndexFunc(r.steps, func(x workspace.Step) bool { return x.N == st.N })
		from := workspace.StepState("")
		if i >= 0 {
			from = r.steps[i].State
			if r.steps[i].CallID != st.CallID {
				return fmt.Errorf("step %d changes its call", st.N)
			}
		} else if slices.ContainsFunc(r.steps, func(x workspace.Step) bool { return st.CallID != "" && x.CallID == st.CallID }) {
			return fmt.Errorf("call %s is there twice", st.CallID)
		}
		if !workspace.Steps.Can(from, st.State) {
			return fmt.Errorf("step %d (%s): %q to %q is not drawn", st.N, st.Tool, from, st.State)
		}
		if i >= 0 {
			r.steps[i] = st
		} else {
			r.steps = append(r.steps, st)
		}
	}
	return nil
}

func (r *memory) Finish(ctx context.Context, o Outcome) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := ctx.Err(); err != nil {
		panic("finish was given a context that has ended")
	}
	n := r.writes
	r.writes++
	if r.before != nil {
		if err := r.before(n, nil); err != nil {
			return err
		}
	}
	if err := r.put(o.Steps); err != nil {
		panic(err)
	}
	r.outcomes = append(r.outcomes, o)
	if r.after != nil {
		return r.after(n, nil)
	}
	return nil
}

func (r *memory) state(call string) workspace.StepState {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, st := range r.steps {
		if st.CallID == call {
			return st.State
		}
	}
	return ""
}

func (r *memory) result(call string) workspace.Content {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, st := range r.steps {
		if st.CallID == call && len(st.Body.Content) > 0 {
			return st.Body.Content[0]
		}
	}
	return workspace.Content{}
}

// fn is a tool made of a function.
type fn struct {
	name   string
	effect workspace.Effect
	limit  time.Duration
	call   func(ctx context.Context, c tools.Call) (tools.Result, error)
}

func (f fn) Spec() tools.Spec {
	return tools.Spec{Name: f.name, Description: "Does " + f.name + ". More words.", Effect: f.effect, Group: tools.GroupFiles,
		Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"additionalProperties":false}`)}
}

func (f fn) Call(ctx context.Context, c tools.Call) (tools.Result, error) { return f.call(ctx, c) }

// timed is a fn with a time limit of its own.
type timed struct{ fn }

func (f timed) TimeLimit() time.Duration { return f.limit }

func echoes(name string, effect workspace.Effect) fn {
	return fn{name: name, effect: effect, call: func(_ context.Context, c tools.Call) (tools.Result, error) {
		return tools.TextResult(name + " says " + string(c.Args)), nil
	}}
}

// table is a loop with a model and tools, a recorder, and what was emitted.
type table struct {
	*testing.T
	loop   *Loop
	model  *scripted
	rec    *memory
	turn   Turn
	events []Event
}

func fixed() time.Time { return time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC) }

const runID = "01J0000000000000000ABC9F2A"

func newTable(t *testing.T, m *scripted, ts ...tools.Tool) *table {
	t.Helper()
	now := fixed()
	return &table{
		T: t, model: m, rec: &memory{},
		loop: &Loop{Models: m, Tools: tools.NewSet(ts, tools.PolicyConfig{}), Now: fixed},
		turn: Turn{
			Run: runID, SessionID: "S", Agent: "a", Requester: workspace.Actor{Person: "ana", Role: workspace.Owner}, PeerKind: "dm",
			System: "system", Volatile: "volatile", MaxSteps: 5, Started: now.Add(-time.Minute),
			History: []workspace.Entry{said(runID, "hello")},
		},
	}
}

func said(run workspace.RunID, s string) workspace.Entry {
	return workspace.Entry{RunID: run, Role: workspace.RoleUser, Body: workspace.EntryBody{Content: []workspace.Content{text(s)}}}
}

// run runs the turn and wants it to be finished once.
func (b *table) run(ctx context.Context) Outcome {
	b.Helper()
	if err := b.try(ctx); err != nil {
		b.Fatalf("run: %v", err)
	}
	if len(b.rec.outcomes) != 1 {
		b.Fatalf("%d outcomes", len(b.rec.outcomes))
	}
	for _, st := range b.rec.steps {
		if st.State == workspace.StepPlanned || st.State == workspace.StepStarted {
			b.Errorf("step %d (%s) is left %s", st.N, st.Tool, st.State)
		}
		if st.RunID != runID {
			b.Errorf("step %d has run %q", st.N, st.RunID)
		}
	}
	return b.rec.outcomes[0]
}

func (b *table) try(ctx context.Context) error {
	return b.loop.Run(ctx, b.turn, b.rec, func(e Event) { b.events = append(b.events, e) })
}

// watched is what a watcher shows at the end: the text of the last model call.
func (b *table) watched() string {
	var s string
	for _, e := range b.events {
		switch e.Type {
		case EventText:
			s += e.Text
		case EventDiscard, EventModelStart:
			s = ""
		}
	}
	return s
}

func (b *table) count(typ EventType) (n int) {
	for _, e := range b.events {
		if e.Type == typ {
			n++
		}
	}
	return n
}
