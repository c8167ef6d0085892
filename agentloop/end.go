package agentloop

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"parley/agentloop/llm"
	"parley/workspace"
)

// errNoModel is a chain that cannot be made.
var errNoModel = errors.New("find the model")

// answer is the end that a turn is for.
func (p *pass) answer(resp llm.Response) Outcome {
	out := Outcome{
		State: workspace.RunCompleted, Content: resp.Content, Model: resp.Model,
		Text: strings.TrimSpace(workspace.PlainText(resp.Content)), Steps: []workspace.Step{p.modelStep(resp)},
	}
	if out.Text == Silence {
		out.Text, out.Silent, out.Reason = "", true, "silent"
		return out
	}
	if resp.Stop == llm.StopLength {
		out.Reason, out.Partial = "length", true
		out.Text += "\n\n_(The answer is cut here: it reached the model's limit.)_"
	}
	if p.halved {
		out.Text += "\n\n_(This conversation has become too long for the model; its oldest part was left out.)_"
	}
	return out
}

// summary ends a turn that used all its steps, or went round in circles: the model is asked once more, without tools,
// what it did.
func (p *pass) summary(ctx context.Context) (Outcome, error) {
	out := Outcome{State: workspace.RunCompleted, Reason: "step_limit"}
	prompt, why := wrapUp, fmt.Sprintf("I stopped after %d steps, the limit of one turn, before I was done. Say \"go on\" and I will", p.turn.MaxSteps)
	if p.breaker.spent(p.limits) {
		out.Reason, prompt, why = "repeat_limit", wrapRound, "I stopped since I went round in circles: the same calls came to nothing, again and again"
	}
	resp, err := p.ask(ctx, nil, prompt)
	if err != nil && ctx.Err() != nil {
		return Outcome{}, err
	}
	if err == nil {
		resp.Content = withoutCalls(resp.Content)
		out.Text = strings.TrimSpace(workspace.PlainText(resp.Content))
	}
	if err != nil || out.Text == "" || out.Text == Silence {
		p.discard()
		out.Err = err
		out.Text = fmt.Sprintf("%s (run %s).", why, workspace.Short(p.turn.Run))
		out.Content = []workspace.Content{{Kind: workspace.Text, Text: out.Text}}
		return out, nil
	}
	out.Content, out.Model, out.Steps = resp.Content, resp.Model, []workspace.Step{p.modelStep(resp)}
	return out, nil
}

func withoutCalls(content []workspace.Content) []workspace.Content {
	var kept []workspace.Content
	for _, c := range content {
		if c.Kind != workspace.ToolCall {
			kept = append(kept, c)
		}
	}
	return kept
}

// failed says how a turn ends that came to err. An error back means: no Finish, somebody else goes on with the run.
func (p *pass) failed(ctx context.Context, err error) (Outcome, error) {
	var re *recordError
	if errors.As(err, &re) || errors.Is(err, ErrWaiting) || errors.Is(err, ErrPaused) {
		return Outcome{}, err
	}
	if errors.Is(err, errPanic) {
		return p.end(workspace.RunFailed, "panic", err, "Something went wrong inside the gateway."), nil
	}
	if ctx.Err() != nil {
		return p.cancelled(context.Cause(ctx), err)
	}
	if errors.Is(err, ErrStopped) { // told at a boundary
		return p.stopped("stopped"), nil
	}
	reason, sentence := explain(err)
	if t := llm.TroubleOf(err); t.Kind != "" {
		var e *llm.Error
		errors.As(err, &e) // it is one
		t.Failures = e.Failures
		p.fails(t)
	}
	return p.end(workspace.RunFailed, reason, err, p.Hide.Redact(sentence)), nil
}

// cancelled ends a turn whose context has ended. A restart, a shutdown and a cause nobody names are not its end.
func (p *pass) cancelled(cause, err error) (Outcome, error) {
	switch {
	case errors.Is(cause, ErrStopped):
		return p.stopped("stopped"), nil
	case errors.Is(cause, ErrInterrupted):
		return p.stopped("interrupted"), nil
	case errors.Is(cause, ErrTimeout), errors.Is(cause, context.DeadlineExceeded):
		return p.timedOut(err), nil
	}
	return Outcome{}, cause
}

// explain is the reason and the plain sentence of a turn that the model failed.
func explain(err error) (reason, sentence string) {
	var nothing emptyError
	switch {
	case errors.As(err, &nothing) && nothing.model != "":
		return "model_empty", "The model " + nothing.model + " gave no answer, twice. Try to say it in other words."
	case errors.Is(err, errEmpty):
		return "model_empty", "The model gave no answer, twice. Try to say it in other words."
	case errors.Is(err, errFiltered):
		return "model_filtered", "The model's provider withheld the answer."
	case errors.Is(err, errNoModel):
		return "model_unknown", "My model is not set up properly. Tell the owner."
	}
	cause := llm.Cause(err)
	switch reason, known := reasons[cause]; {
	case known:
		return reason, llm.Ending(err)
	case cause == llm.TooLong:
		return "model_too_long", "The model's answer was longer than it may be, and nothing of it could be kept. Try to ask for less at once."
	case cause == llm.Overflow:
		return "context_overflow", "This conversation has become too long for the model. Start afresh with /new."
	}
	return "internal", "Something went wrong inside the gateway."
}

// reasons are those of turns that a model failed, by what it failed with in the end.
var reasons = map[llm.Kind]string{
	llm.Auth: "model_auth", llm.Limited: "model_limited", llm.Overload: "model_down", llm.CoolDown: "model_down", llm.NoneLeft: "model_down",
	llm.TimedOut: "model_down", llm.Rejected: "model_rejected", llm.Cut: "model_cut", llm.Malformed: "model_malformed",
}

// end is an outcome with one sentence for the chat, which names the run.
func (p *pass) end(state workspace.RunState, reason string, err error, sentence string) Outcome {
	return Outcome{
		State: state, Reason: reason, Err: err, Steps: p.closeRound(),
		Text: fmt.Sprintf("%s (run %s)", sentence, workspace.Short(p.turn.Run)),
	}
}

// stopped keeps what had been said so far.
func (p *pass) stopped(reason string) Outcome {
	out := Outcome{State: workspace.RunStopped, Reason: reason, Steps: p.closeRound(), Text: p.shown()}
	out.Partial = out.Text != ""
	out.Content = p.unfinished()
	return out
}

func (p *pass) timedOut(err error) Outcome {
	sentence := "This took longer than a turn may, so I stopped."
	why := p.waitedFor(err)
	switch {
	case why != "":
	case p.health.silent.Lasted(p.Now()) >= time.Second:
		why = llm.Silence(p.health.silent.Who(), p.health.silent.Lasted(p.Now()))
		p.fails(p.health.silent.Trouble())
	case llm.KindOf(err) == llm.Cancelled:
		why = "the model had not finished its answer by then"
	default:
		why = "this took longer than a turn may"
	}
	if !p.turn.Started.IsZero() {
		sentence = fmt.Sprintf("I stopped after %s: %s.", p.Now().Sub(p.turn.Started).Round(time.Second), why)
	}
	if said := p.shown(); said != "" {
		sentence = said + "\n\n" + sentence
	}
	out := p.end(workspace.RunTimeout, "timeout", err, sentence)
	out.Partial = p.shown() != ""
	out.Content = p.unfinished()
	return out
}

// waitedFor says in plain words what a turn waited for that ran out of time; empty: for nothing of the model's.
func (p *pass) waitedFor(err error) string {
	t := llm.TroubleOf(err)
	if t.Kind == "" && p.turn.Trouble != nil {
		t = *p.turn.Trouble
	}
	if t.Kind == "" {
		return ""
	}
	return p.Hide.Redact(llm.Problem(t)) + ". Try again in a few minutes"
}

// unfinished is the half answer as the transcript keeps it; a whole response is in the journal already.
func (p *pass) unfinished() []workspace.Content {
	if text := p.shown(); text != "" && !p.stream.whole {
		return []workspace.Content{{Kind: workspace.Text, Text: text}}
	}
	return nil
}

// closeRound gives the calls that are still open their last state, so that none is left without a result.
func (p *pass) closeRound() []workspace.Step {
	rows := p.unsaved
	for _, c := range p.round {
		switch {
		case c.result != nil:
		case c.step.State == workspace.StepStarted:
			rows = append(rows, c.say(workspace.StepUnknown, "stopped", saidAborted, true))
		case c.step.State == workspace.StepPlanned:
			rows = append(rows, c.say(workspace.StepCancelled, "stopped", saidCancelled, true))
		}
	}
	return rows
}
