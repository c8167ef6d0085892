package agentloop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"parley/agentloop/llm"
	"parley/tools"
	"parley/workspace"

	"pgregory.net/rapid"
)

func TestR04_StartedOutsideCallIsNeverRunAgain(t *testing.T) {
	t.Parallel()
	ran := map[string]int{}
	counts := func(name string, effect workspace.Effect) fn {
		return fn{name: name, effect: effect, call: func(_ context.Context, c tools.Call) (tools.Result, error) {
			ran[c.ID]++
			return tools.TextResult("did " + c.ID), nil
		}}
	}
	b := newTable(t, says("It may or may not have been sent."), counts("look", workspace.Pure), counts("send", workspace.Outside), counts("note", workspace.Store))
	response := calls(toolCall("done", "send", `{}`), toolCall("pure", "look", `{}`), toolCall("note", "note", `{}`), toolCall("open", "send", `{}`), toolCall("later", "send", `{}`))
	row := func(n int, id, tool string, effect workspace.Effect, state workspace.StepState) workspace.Step {
		return workspace.Step{RunID: runID, N: n, Kind: workspace.StepTool, CallID: id, Tool: tool, Effect: effect, State: state}
	}
	done := row(2, "done", "send", workspace.Outside, workspace.StepDone)
	done.Body.Content = []workspace.Content{{Kind: workspace.ToolResult, CallID: "done", Name: "send", Text: "sent before"}}
	usage := workspace.Usage{Calls: 1, InputTokens: 100}
	b.turn.Journal = []workspace.Step{
		row(5, "open", "send", workspace.Outside, workspace.StepStarted), // the order of rows is not relied on
		{RunID: runID, N: 1, Kind: workspace.StepModel, State: workspace.StepDone, Body: workspace.StepBody{Content: response, Usage: &usage}},
		done,
		row(3, "pure", "look", workspace.Pure, workspace.StepStarted),
		row(4, "note", "note", workspace.Store, workspace.StepStarted),
		row(6, "later", "send", workspace.Outside, workspace.StepPlanned),
	}
	b.rec.steps = slices.Clone(b.turn.Journal)
	out := b.run(t.Context())
	if fmt.Sprint(ran) != "map[later:1 note:1 pure:1]" {
		t.Errorf("ran %v", ran)
	}
	if b.rec.state("open") != workspace.StepUnknown || !strings.Contains(b.rec.result("open").Text, "outcome unknown") {
		t.Errorf("open is %s: %s", b.rec.state("open"), b.rec.result("open").Text)
	}
	msgs := b.model.requests[0].Messages
	if len(msgs) != 7 || !strings.Contains(msgs[2].Content[0].Text, "sent before") || !strings.Contains(msgs[5].Content[0].Text, "never") && !strings.Contains(msgs[5].Content[0].Text, "not run again") {
		t.Errorf("the model reads %+v", msgs)
	}
	if out.Usage.InputTokens != 110 || out.Usage.Calls != 2 || out.Steps[0].N != 7 {
		t.Errorf("outcome %+v", out)
	}
}

func TestResumeJudgesRightsAgain(t *testing.T) {
	t.Parallel()
	b := newTable(t, says("ok"), echoes("look", workspace.Pure), echoes("send", workspace.Outside))
	b.loop.Tools = tools.NewSet([]tools.Tool{echoes("look", workspace.Pure), echoes("send", workspace.Outside)}, tools.PolicyConfig{Global: tools.Rules{Allow: []string{}}})
	row := func(n int, id, tool string, effect workspace.Effect, state workspace.StepState) workspace.Step {
		return workspace.Step{RunID: runID, N: n, Kind: workspace.StepTool, CallID: id, Tool: tool, Effect: effect, State: state}
	}
	b.turn.Journal = []workspace.Step{
		{RunID: runID, N: 1, Kind: workspace.StepModel, State: workspace.StepDone, Body: workspace.StepBody{Content: calls(toolCall("c1", "look", `{}`), toolCall("c2", "send", `{}`))}},
		row(2, "c1", "look", workspace.Pure, workspace.StepStarted), row(3, "c2", "send", workspace.Outside, workspace.StepPlanned),
	}
	b.rec.steps = slices.Clone(b.turn.Journal)
	b.run(t.Context())
	if b.rec.state("c1") != workspace.StepFailed || b.rec.state("c2") != workspace.StepRefused {
		t.Errorf("c1 is %s, c2 is %s", b.rec.state("c1"), b.rec.state("c2"))
	}
}

func TestT14_RepeatedCallsAreCountedOverCrashes(t *testing.T) {
	t.Parallel()
	b := newTable(t, says(calls(toolCall("again", "send", `{}`)), "ok"), echoes("send", workspace.Outside))
	for i := range 5 {
		id := fmt.Sprint("c", i)
		b.turn.Journal = append(b.turn.Journal,
			workspace.Step{RunID: runID, N: 2*i + 1, Kind: workspace.StepModel, State: workspace.StepDone, Body: workspace.StepBody{Content: calls(toolCall(id, "send", `{}`))}},
			workspace.Step{RunID: runID, N: 2*i + 2, Kind: workspace.StepTool, CallID: id, Tool: "send", Effect: workspace.Outside, State: workspace.StepDone,
				Body: workspace.StepBody{Content: []workspace.Content{{Kind: workspace.ToolResult, CallID: id, Name: "send", Text: "sent"}}}})
	}
	b.rec.steps = slices.Clone(b.turn.Journal)
	b.turn.MaxSteps = 10
	if b.run(t.Context()); b.rec.state("again") != workspace.StepRefused {
		t.Errorf("the sixth call is %s", b.rec.state("again"))
	}
}

func TestResumePutsSteeredInputsWhereTheyCame(t *testing.T) {
	t.Parallel()
	b := newTable(t, says("ok"), echoes("look", workspace.Pure))
	model := func(n int, id string) workspace.Step {
		return workspace.Step{RunID: runID, N: n, Kind: workspace.StepModel, State: workspace.StepDone, Body: workspace.StepBody{Content: calls(toolCall(id, "look", `{}`))}}
	}
	tool := func(n int, id string) workspace.Step {
		return workspace.Step{RunID: runID, N: n, Kind: workspace.StepTool, CallID: id, Tool: "look", Effect: workspace.Pure, State: workspace.StepDone,
			Body: workspace.StepBody{Content: []workspace.Content{{Kind: workspace.ToolResult, CallID: id, Name: "look", Text: id}}}}
	}
	b.turn.Journal = []workspace.Step{model(1, "c1"), tool(2, "c1"), model(3, "c2"), tool(4, "c2")}
	b.rec.steps = slices.Clone(b.turn.Journal)
	entry := func(role workspace.EntryRole, n int) workspace.Entry {
		return workspace.Entry{RunID: runID, Role: role, StepN: n, Body: workspace.EntryBody{Content: []workspace.Content{text("copy")}}}
	}
	b.turn.History = []workspace.Entry{
		said(runID, "first"), entry(workspace.RoleAssistant, 1), entry(workspace.RoleTool, 2), said(runID, "second"),
		entry(workspace.RoleAssistant, 3), entry(workspace.RoleTool, 4), said(runID, "third"),
	}
	b.run(t.Context())
	var got []string
	for _, m := range b.model.requests[0].Messages {
		got = append(got, string(m.Role)+":"+m.Content[0].Text+m.Content[0].CallID)
	}
	want := "user:first assistant:c1 tool:<outside-text from=\"look\">\nc1\n</outside-text>c1 user:second assistant:c2 tool:<outside-text from=\"look\">\nc2\n</outside-text>c2 user:third"
	if strings.Join(got, " ") != want {
		t.Errorf("the model reads %s", strings.Join(got, " "))
	}
}

// world is what calls do outside. It outlives crashes.
type world struct {
	mu   sync.Mutex
	did  map[string]int // outside calls by id
	dies string         // the call during which the process dies
	rec  *memory
}

func (w *world) tools() []tools.Tool {
	act := func(name string, effect workspace.Effect) fn {
		return fn{name: name, effect: effect, call: func(_ context.Context, c tools.Call) (tools.Result, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			if effect == workspace.Outside {
				w.did[c.ID]++
			}
			if c.ID == w.dies {
				w.dies = ""
				w.rec.die()
			}
			return tools.TextResult("did " + c.ID), nil
		}}
	}
	return []tools.Tool{act("look", workspace.Pure), act("send", workspace.Outside), act("note", workspace.Store)}
}

// die makes every later write fail, as after a SIGKILL.
func (r *memory) die() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.before = func(int, []workspace.Step) error { return errCrash }
}

// plays answers by what is in the conversation, as a model does: after k rounds comes round k+1.
func plays(rounds [][]workspace.Content) *scripted {
	m := &scripted{info: llm.Info{Name: "m", ContextWindow: 1 << 20}}
	m.answer = func(_ context.Context, _ int, req llm.Request, see func(llm.Delta)) (llm.Response, error) {
		k := 0
		for _, msg := range req.Messages {
			if msg.Role == llm.Assistant {
				k++
			}
		}
		if k < len(rounds) {
			return reply(slices.Clone(rounds[k])...), nil
		}
		see(llm.Delta{Text: "the end"})
		return reply(text("the end")), nil
	}
	return m
}

type fataler interface {
	Fatalf(string, ...any)
	Context() context.Context
}

// crashes plays rounds while the process dies where crash says, and again until the run is finished.
func crashes(t fataler, rounds [][]workspace.Content, crash func(try int, w *world)) {
	w := &world{did: map[string]int{}}
	rec := &memory{}
	for try := 0; ; try++ {
		if try > 60 {
			t.Fatalf("no end")
		}
		w.rec, w.dies = rec, ""
		rec.writes, rec.before, rec.after = 0, nil, nil
		crash(try, w)
		loop := &Loop{Models: plays(rounds), Tools: tools.NewSet(w.tools(), tools.PolicyConfig{}), Now: fixed}
		turn := Turn{Run: runID, SessionID: "S", Agent: "a", Requester: workspace.Actor{Role: workspace.Owner}, MaxSteps: 20,
			History: []workspace.Entry{said(runID, "go")}, Journal: slices.Clone(rec.steps)}
		err := loop.Run(t.Context(), turn, rec, nil)
		if len(rec.outcomes) == 1 {
			break // committed, whatever the caller was told
		}
		if !errors.Is(err, errCrash) {
			t.Fatalf("try %d: %v, %d outcomes", try, err, len(rec.outcomes))
		}
	}
	if out := rec.outcomes[0]; len(rec.outcomes) != 1 || out.State != workspace.RunCompleted || out.Text != "the end" || out.Usage.Calls != len(rounds)+1 {
		t.Fatalf("outcome %+v", out)
	}
	want := 0
	for _, round := range rounds {
		for _, c := range round {
			want++
			state := rec.state(c.CallID)
			if w.did[c.CallID] > 1 {
				t.Fatalf("%s ran %d times", c.CallID, w.did[c.CallID])
			}
			if state != workspace.StepDone && !(state == workspace.StepUnknown && c.Name == "send") {
				t.Fatalf("%s (%s) ends %q", c.CallID, c.Name, state)
			}
			if state == workspace.StepDone && c.Name == "send" && w.did[c.CallID] != 1 {
				t.Fatalf("%s is done and ran %d times", c.CallID, w.did[c.CallID])
			}
		}
	}
	if len(rec.steps) != want+len(rounds)+1 {
		t.Fatalf("%d rows", len(rec.steps))
	}
}

func exampleRounds() [][]workspace.Content {
	return [][]workspace.Content{
		{toolCall("a", "look", `{}`), toolCall("b", "send", `{}`), toolCall("c", "look", `{}`), toolCall("d", "note", `{}`)},
		{toolCall("e", "send", `{}`), toolCall("f", "send", `{}`)},
	}
}

// TestR04_CrashDuringToolCall dies at every write, before it and after it, and in the middle of every call.
func TestR04_CrashDuringToolCall(t *testing.T) {
	t.Parallel()
	for at := range 20 {
		for _, after := range []bool{false, true} {
			crashes(t, exampleRounds(), func(try int, w *world) {
				die := func(n int, _ []workspace.Step) error {
					if try == 0 && n >= at {
						return errCrash
					}
					return nil
				}
				if after {
					w.rec.after = die
				} else {
					w.rec.before = die
				}
			})
		}
	}
	for _, round := range exampleRounds() {
		for _, c := range round {
			crashes(t, exampleRounds(), func(try int, w *world) {
				if try == 0 {
					w.dies = c.CallID
				}
			})
		}
	}
}

// TestR04_AnyCrashesOfAnyRounds: whatever the model asks for and however often the process dies, no outside call
// runs twice and the run ends in exactly one Finish.
func TestR04_AnyCrashesOfAnyRounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		var rounds [][]workspace.Content
		ids := []string{""}
		for i := range rapid.IntRange(0, 4).Draw(rt, "rounds") {
			var round []workspace.Content
			for j := range rapid.IntRange(1, 4).Draw(rt, "calls") {
				id := fmt.Sprintf("r%dc%d", i, j)
				ids = append(ids, id)
				round = append(round, toolCall(id, rapid.SampledFrom([]string{"look", "send", "note"}).Draw(rt, id), fmt.Sprintf(`{"n":%d}`, len(ids))))
			}
			rounds = append(rounds, round)
		}
		deaths := rapid.IntRange(0, 12).Draw(rt, "deaths")
		crashes(rt, rounds, func(try int, w *world) {
			if try >= deaths {
				return
			}
			at := rapid.IntRange(0, 12).Draw(rt, "at")
			w.dies = rapid.SampledFrom(ids).Draw(rt, "in call")
			dead := false
			die := func(n int, _ []workspace.Step) error {
				if n >= at || dead {
					dead = true
					return errCrash
				}
				return nil
			}
			if rapid.Bool().Draw(rt, "after") {
				w.rec.after = die
			} else {
				w.rec.before = die
			}
		})
	})
}
