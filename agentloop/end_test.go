package agentloop

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/agentloop/llm"
	"parley/tools"
	"parley/workspace"
)

func TestStepLimitEndsWithASummary(t *testing.T) {
	t.Parallel()
	round := func(i int) []workspace.Content { return calls(toolCall(fmt.Sprintf("c%d", i), "look", `{}`)) }
	b := newTable(t, says(round(1), round(2), "I looked twice; nothing is open."), echoes("look", workspace.Pure))
	b.turn.MaxSteps = 2
	out := b.run(t.Context())
	if out.State != workspace.RunCompleted || out.Reason != "step_limit" || out.Text != "I looked twice; nothing is open." || len(out.Steps) != 1 {
		t.Errorf("outcome %+v", out)
	}
	last := b.model.requests[2]
	if len(last.Tools) != 0 || !strings.Contains(last.Messages[len(last.Messages)-1].Content[0].Text, "all the steps") {
		t.Errorf("last request %+v", last)
	}
	b = newTable(t, says(round(1), round(2), &llm.Error{Kind: llm.Overload}), echoes("look", workspace.Pure))
	b.turn.MaxSteps = 2
	if out = b.run(t.Context()); out.State != workspace.RunCompleted || out.Reason != "step_limit" || !strings.Contains(out.Text, "after 2 steps") || !strings.Contains(out.Text, "run bc9f2a") {
		t.Errorf("without a summary: %+v", out)
	}
}

func TestEmptyAnswerIsAskedForOnceMore(t *testing.T) {
	t.Parallel()
	thought := workspace.Content{Kind: workspace.Reasoning, Text: "hmm"}
	b := newTable(t, says(calls(thought), "Here it is."))
	if out := b.run(t.Context()); out.Text != "Here it is." || len(out.Steps) != 1 || out.Usage.Calls != 2 {
		t.Errorf("outcome %+v", out)
	}
	second := b.model.requests[1].Messages
	if len(second) != 2 || !strings.Contains(second[1].Content[0].Text, "was empty") {
		t.Errorf("second request %+v", second)
	}
	b = newTable(t, says(calls(thought), calls(text("  \n"))))
	if out := b.run(t.Context()); out.State != workspace.RunFailed || out.Reason != "model_empty" || !strings.Contains(out.Text, "no answer") {
		t.Errorf("outcome %+v", out)
	}
}

func TestSilenceIsRecordedAndNeverShown(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{"NO_REPLY", "  NO_REPLY\n"} {
		b := newTable(t, says(answer))
		if out := b.run(t.Context()); !out.Silent || out.Text != "" || out.State != workspace.RunCompleted || b.count(EventText) != 0 {
			t.Errorf("%q: %+v, events %+v", answer, out, b.events)
		}
	}
	for _, answer := range []string{"NO", "NO_REPLY is what I would say", "NO_"} {
		b := newTable(t, says(answer))
		if out := b.run(t.Context()); out.Silent || out.Text != answer || b.watched() != answer {
			t.Errorf("%q: %+v, watched %q", answer, out, b.watched())
		}
	}
}

func TestReasoningIsNeverShown(t *testing.T) {
	t.Parallel()
	m := says()
	m.answer = func(_ context.Context, _ int, _ llm.Request, see func(llm.Delta)) (llm.Response, error) {
		see(llm.Delta{Reasoning: "secret thought"})
		see(llm.Delta{Reasoning: " more of it"})
		see(llm.Delta{Text: "Yes."})
		return reply(workspace.Content{Kind: workspace.Reasoning, Text: "secret thought more of it"}, text("Yes.")), nil
	}
	b := newTable(t, m)
	out := b.run(t.Context())
	if out.Text != "Yes." || strings.Contains(fmt.Sprintf("%+v", b.events), "thought") || b.count(EventThinking) != 1 {
		t.Errorf("text %q, events %+v", out.Text, b.events)
	}
}

func TestHalfAnswersAreDiscardedWhenAskedAgain(t *testing.T) {
	t.Parallel()
	m := says()
	m.answer = func(_ context.Context, _ int, _ llm.Request, see func(llm.Delta)) (llm.Response, error) {
		see(llm.Delta{Text: "The ans"})
		see(llm.Delta{Discard: true})
		see(llm.Delta{Text: "The answer is 4."})
		return reply(text("The answer is 4.")), nil
	}
	b := newTable(t, m)
	if b.run(t.Context()); b.watched() != "The answer is 4." || b.count(EventDiscard) != 1 {
		t.Errorf("watched %q, events %+v", b.watched(), b.events)
	}
	m = says()
	m.answer = func(_ context.Context, n int, _ llm.Request, see func(llm.Delta)) (llm.Response, error) {
		see(llm.Delta{Text: "Wrong"})
		return reply(text("Right")), nil
	}
	b = newTable(t, m)
	if b.run(t.Context()); b.watched() != "Right" || b.count(EventDiscard) != 1 {
		t.Errorf("watched %q, events %+v", b.watched(), b.events)
	}
}

func TestModelFailuresEndInOnePlainSentence(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err            error
		reason, phrase string
	}{
		{&llm.Error{Kind: llm.Auth, Status: 401, Err: errors.New("sk-secret")}, "model_auth", "the model refuses the key"},
		{&llm.Error{Kind: llm.NoneLeft, Err: &llm.Error{Kind: llm.Auth}}, "model_auth", "the model refuses the key"},
		{&llm.Error{Kind: llm.NoneLeft}, "model_down", "couldn't reach"},
		{&llm.Error{Kind: llm.Limited, Model: "m", Status: 429, After: time.Hour}, "model_limited", "m takes no more requests for now (429), and it asks to wait 1h0m0s"},
		{&llm.Error{Kind: llm.Overload, Model: "m", Status: 500, Said: "upstream exploded", Failures: 6}, "model_down", "couldn't reach the model: m answers 500: `upstream exploded` (6 tries)."},
		{&llm.Error{Kind: llm.NoneLeft, Err: &llm.Error{Kind: llm.Overload, Model: "n", Said: "connection refused"}, Others: []*llm.Error{{Kind: llm.Overload, Model: "m", Status: 500, Said: "boom `@all`"}}},
			"model_down", "n cannot be reached: `connection refused`; m answers 500: `boom '@all'`"},
		{&llm.Error{Kind: llm.Rejected, Model: "m", Status: 404, Said: "no model sk-***ab\nhere " + strings.Repeat("x", 500)}, "model_rejected", "m does not know the model (404): `no model [redacted] here xxx"},
		{&llm.Error{Kind: llm.CoolDown}, "model_down", "couldn't reach"},
		{&llm.Error{Kind: llm.TimedOut, Err: context.DeadlineExceeded}, "model_down", "in time"},
		{&llm.Error{Kind: llm.Rejected}, "model_rejected", "refuses the request"},
		{&llm.Error{Kind: llm.Cut, Partial: "The"}, "model_cut", "broke off"},
		{&llm.Error{Kind: llm.Malformed}, "model_malformed", "cannot be read"},
		{errFiltered, "model_filtered", "withheld"},
		{errors.New("surprise"), "internal", "Something went wrong"},
	} {
		m := says(c.err)
		if c.reason == "model_filtered" {
			m = says(llm.Response{Stop: llm.StopFiltered})
		}
		b := newTable(t, m)
		out := b.run(t.Context())
		if out.State != workspace.RunFailed || out.Reason != c.reason || !strings.Contains(out.Text, c.phrase) || !strings.HasSuffix(out.Text, "(run bc9f2a)") {
			t.Errorf("%v: %s %q", c.err, out.Reason, out.Text)
		}
		if strings.Contains(out.Text, "secret") || out.Err == nil || strings.Contains(out.Text, "\n") {
			t.Errorf("%v: text %q, err %v", c.err, out.Text, out.Err)
		}
	}
}

type noModels struct{}

func (noModels) Chain([]string, func(string)) (llm.Model, error) {
	return nil, errors.New("no model x")
}

func TestAModelThatIsNotConfiguredEndsTheTurn(t *testing.T) {
	t.Parallel()
	b := newTable(t, says())
	b.loop.Models = noModels{}
	if out := b.run(t.Context()); out.Reason != "model_unknown" || out.State != workspace.RunFailed {
		t.Errorf("%+v", out)
	}
}

func TestPanicInTheModelEndsTheTurnVisibly(t *testing.T) {
	t.Parallel()
	m := says()
	m.answer = func(context.Context, int, llm.Request, func(llm.Delta)) (llm.Response, error) { panic("boom") }
	b := newTable(t, m)
	if out := b.run(t.Context()); out.State != workspace.RunFailed || out.Reason != "panic" || strings.Contains(out.Text, "boom") {
		t.Errorf("%+v", out)
	}
}

func TestOverflowLeavesOutTheOldestHalf(t *testing.T) {
	t.Parallel()
	over := &llm.Error{Kind: llm.NoneLeft, Err: &llm.Error{Kind: llm.Overflow}}
	b := newTable(t, says(over, over, "Short enough."))
	b.turn.History = nil
	for i := range 8 {
		run := workspace.RunID(fmt.Sprintf("old%d", i))
		b.turn.History = append(b.turn.History, said(run, fmt.Sprintf("question %d", i)), answered(run, "answer"))
	}
	b.turn.History = append(b.turn.History, said(runID, "now"))
	out := b.run(t.Context())
	if !strings.HasPrefix(out.Text, "Short enough.\n\n_(") || workspace.PlainText(out.Content) != "Short enough." {
		t.Errorf("outcome %+v", out)
	}
	var sizes []int
	for _, r := range b.model.requests {
		sizes = append(sizes, len(r.Messages))
	}
	if fmt.Sprint(sizes) != "[17 10 6]" {
		t.Errorf("requests of %v messages", sizes)
	}
	if first := b.model.requests[2].Messages[0].Content[0].Text; first != "[12 earlier messages of this conversation were left out to fit.]" {
		t.Errorf("the model reads %q", first)
	}
	b = newTable(t, says(over, over, over, over))
	if out = b.run(t.Context()); out.Reason != "context_overflow" || !strings.Contains(out.Text, "/new") || len(b.model.requests) != 1 {
		t.Errorf("nothing to leave out: %+v after %d requests", out, len(b.model.requests))
	}
}

func TestOverflowInsideATurnShortensItsResults(t *testing.T) {
	t.Parallel()
	over := &llm.Error{Kind: llm.Overflow}
	b := newTable(t, says(calls(toolCall("c1", "flood", `{}`)), over, "ok"),
		fn{name: "flood", effect: workspace.Pure, call: func(context.Context, tools.Call) (tools.Result, error) {
			return tools.TextResult(strings.Repeat("x", 20_000)), nil
		}})
	out := b.run(t.Context())
	if !strings.HasPrefix(out.Text, "ok") {
		t.Fatalf("outcome %+v", out)
	}
	if got := b.model.requests[2].Messages[2].Content[0].Text; len(got) > 2200 || !strings.HasSuffix(got, outsideClose) {
		t.Errorf("result of %d bytes", len(got))
	}
}

func answered(run workspace.RunID, s string) workspace.Entry {
	return workspace.Entry{RunID: run, Role: workspace.RoleAssistant, StepN: 1, Body: workspace.EntryBody{Content: []workspace.Content{text(s)}}}
}

func TestEndsOfTheContext(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cause  error
		state  workspace.RunState // empty: no Finish
		reason string
		text   string
	}{
		{ErrStopped, workspace.RunStopped, "stopped", "Half an"},
		{ErrInterrupted, workspace.RunStopped, "interrupted", "Half an"},
		{ErrTimeout, workspace.RunTimeout, "timeout", "Half an\n\nI stopped after 1m0s: the model had not finished its answer by then. (run bc9f2a)"},
		{context.DeadlineExceeded, workspace.RunTimeout, "timeout", "Half an\n\nI stopped after 1m0s: the model had not finished its answer by then. (run bc9f2a)"},
		{ErrRestart, "", "", ""},
		{ErrShutdown, "", "", ""},
		{context.Canceled, "", "", ""},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		m := says()
		m.answer = func(ctx context.Context, _ int, _ llm.Request, see func(llm.Delta)) (llm.Response, error) {
			see(llm.Delta{Text: "Half an"})
			cancel(c.cause)
			<-ctx.Done()
			return llm.Response{}, &llm.Error{Kind: llm.Cancelled, Err: context.Cause(ctx)}
		}
		b := newTable(t, m)
		err := b.try(ctx)
		if c.state == "" {
			if !errors.Is(err, c.cause) || len(b.rec.outcomes) != 0 {
				t.Errorf("%v: %v, %d outcomes", c.cause, err, len(b.rec.outcomes))
			}
			continue
		}
		if err != nil || len(b.rec.outcomes) != 1 {
			t.Errorf("%v: %v, %d outcomes", c.cause, err, len(b.rec.outcomes))
			continue
		}
		out := b.rec.outcomes[0]
		if out.State != c.state || out.Reason != c.reason || out.Text != c.text || !out.Partial || workspace.PlainText(out.Content) != "Half an" {
			t.Errorf("%v: %+v", c.cause, out)
		}
	}
}

func TestStopDuringACallLeavesNoneOpen(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	send := fn{name: "send", effect: workspace.Outside, call: func(ctx context.Context, _ tools.Call) (tools.Result, error) {
		cancel(ErrStopped)
		<-ctx.Done()
		return tools.Result{}, ctx.Err()
	}}
	b := newTable(t, says(calls(text("Sending."), toolCall("c0", "look", `{}`), toolCall("c1", "send", `{}`), toolCall("c2", "send", `{}`))), send, echoes("look", workspace.Pure))
	out := b.run(ctx)
	if out.State != workspace.RunStopped || out.Text != "Sending." || len(out.Content) != 0 {
		t.Errorf("outcome %+v", out)
	}
	for id, want := range map[string]workspace.StepState{"c0": workspace.StepDone, "c1": workspace.StepUnknown, "c2": workspace.StepCancelled} {
		if got := b.rec.state(id); got != want || b.rec.result(id).CallID != id {
			t.Errorf("%s is %s, result %+v", id, got, b.rec.result(id))
		}
	}
}

func TestStopToldAtABoundaryEndsTheTurn(t *testing.T) {
	t.Parallel()
	b := newTable(t, says(calls(toolCall("c1", "look", `{}`))), echoes("look", workspace.Pure))
	b.rec.boundary = func([]workspace.Step) Boundary { return Boundary{Stop: true} }
	if out := b.run(t.Context()); out.State != workspace.RunStopped || b.rec.state("c1") != workspace.StepDone {
		t.Errorf("outcome %+v", out)
	}
}

func TestShutdownKeepsWhatAFinishedCallDid(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	send := fn{name: "send", effect: workspace.Outside, call: func(context.Context, tools.Call) (tools.Result, error) {
		cancel(ErrShutdown)
		return tools.TextResult("sent"), nil
	}}
	b := newTable(t, says(calls(toolCall("c1", "send", `{}`), toolCall("c2", "send", `{}`))), send)
	if err := b.try(ctx); !errors.Is(err, ErrShutdown) || len(b.rec.outcomes) != 0 {
		t.Errorf("%v, %d outcomes", err, len(b.rec.outcomes))
	}
	if b.rec.state("c1") != workspace.StepDone || b.rec.state("c2") != workspace.StepPlanned {
		t.Errorf("c1 is %s, c2 is %s", b.rec.state("c1"), b.rec.state("c2"))
	}
}

func TestTimeoutOfATurnFreesItInABubble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Minute, ErrTimeout)
		defer cancel()
		slow := timed{fn{name: "slow", effect: workspace.Pure, limit: time.Hour, call: func(ctx context.Context, _ tools.Call) (tools.Result, error) {
			<-ctx.Done()
			return tools.Result{}, ctx.Err()
		}}}
		b := newTable(t, says(calls(toolCall("c1", "slow", `{}`))), slow)
		if out := b.run(ctx); out.State != workspace.RunTimeout || b.rec.state("c1") != workspace.StepUnknown {
			t.Errorf("outcome %+v, call %s", out, b.rec.state("c1"))
		}
	})
}

// A turn that ran out of time says what it waited for, however the model failed and however often.
func TestTimedOutTurnNamesWhatItWaitedFor(t *testing.T) {
	t.Parallel()
	for kind, want := range map[llm.Kind]string{
		llm.Limited:  "I stopped after 1m0s: m takes no more requests for now (429): `no more today`. Try again in a few minutes. (run bc9f2a)",
		llm.Overload: "I stopped after 1m0s: m is overloaded (529): `no more today`. Try again in a few minutes. (run bc9f2a)",
	} {
		for _, fallback := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				late := time.AfterFunc(10*time.Minute, func() { cancel(ErrTimeout) })
				defer late.Stop()
				refuses := func(name string) *scripted {
					m := says()
					m.info.Name = name
					m.answer = func(context.Context, int, llm.Request, func(llm.Delta)) (llm.Response, error) {
						status := map[llm.Kind]int{llm.Limited: 429, llm.Overload: 529}[kind]
						return llm.Response{}, &llm.Error{Kind: kind, Model: name, Status: status, After: 25 * time.Second, Said: "no more today"}
					}
					return m
				}
				models, err := llm.NewRegistry(llm.RegistryOptions{}, refuses("m"), refuses("n"))
				if err != nil {
					t.Fatal(err)
				}
				b := newTable(t, says())
				b.loop.Models, b.turn.Models = models, []string{"m"}
				if fallback {
					b.turn.Models = append(b.turn.Models, "n")
				}
				if fallback {
					want = strings.Replace(want, ": m ", ": n ", 1)
				}
				if out := b.run(ctx); out.State != workspace.RunTimeout || out.Text != want {
					t.Errorf("%s, fallback %t: %s %q", kind, fallback, out.State, out.Text)
				}
			})
		}
	}
}
