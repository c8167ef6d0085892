package agentloop

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"parley/tools"
	"parley/tools/tail"
	"parley/workspace"
	"parley/workspace/clip"
)

// What the model reads of calls that did not run to their end.
const (
	saidUnknown   = "Interrupted, outcome unknown: the gateway stopped while this call ran. It was not run again. Find out what it did before you repeat it."
	saidCancelled = "Not run: the turn was stopped."
	saidAborted   = "Interrupted, outcome unknown: the turn was stopped while this call ran."
	saidLost      = "No result was recorded."
)

var (
	errToolTimeout = errors.New("tool timed out")
	errToolHangs   = errors.New("tool did not return after its context ended")
	errToolPanic   = errors.New("tool panicked")
)

// call is one tool call of a round.
type call struct {
	workspace.Content                // what the model wrote
	step              workspace.Step // its row; State is the last that was journalled
	nth               int            // of the very same calls of this run, from 1
	tool              tools.Tool
	result            []workspace.Content // nil: none yet
}

// newCall numbers a call and judges it for the first time, so that its row tells its effect.
func (p *pass) newCall(c workspace.Content) *call {
	p.lastN++
	out := &call{Content: c, nth: p.breaker.wanted(c), step: workspace.Step{
		RunID: p.turn.Run, N: p.lastN, Kind: workspace.StepTool, CallID: c.CallID, Tool: c.Name,
		ArgsHash: argsHash(c), Effect: workspace.Pure,
	}}
	if t, ok := p.Tools.Lookup(c.Name); ok {
		out.step.Effect = t.Spec().Effect
	}
	return out
}

// argsHash is the SHA-256 of tool and arguments, as the model wrote them.
func argsHash(c workspace.Content) string {
	sum := sha256.Sum256([]byte(c.Name + "\x00" + string(c.Args)))
	return hex.EncodeToString(sum[:])
}

// moved is the call's row in its next state.
func (c *call) moved(s workspace.StepState) workspace.Step {
	c.step.State = s
	return c.step
}

// settle gives the call its result and returns the row that records it.
func (c *call) settle(s workspace.StepState, reason string, result ...workspace.Content) workspace.Step {
	c.result = result
	c.step.Body = workspace.StepBody{Content: result, Reason: reason, Decision: c.step.Body.Decision, Began: c.step.Body.Began}
	return c.moved(s)
}

// broken adds the breaker's no to what policy said.
func (c *call) broken(rule, said string) {
	d := *c.step.Body.Decision
	d.Layer, d.Rule, _ = strings.Cut(rule, ": ")
	d.Allow, d.Ask, d.Domain, d.Reason = false, false, "", said
	d.Record = append(slices.Clip(d.Record), workspace.Layer{Layer: d.Layer, Rule: d.Rule, Outcome: workspace.LayerDeny, Reason: said})
	c.step.Body.Decision = &d
}

// say settles the call with a sentence for the model.
func (c *call) say(s workspace.StepState, reason, text string, isError bool) workspace.Step {
	return c.settle(s, reason, workspace.Content{
		Kind: workspace.ToolResult, CallID: c.CallID, Name: c.Name, Text: text, Error: isError,
	})
}

// act runs the calls of the round that have no result, adds all results to the conversation, then what was
// steered in meanwhile. Neighbours that are pure run side by side.
func (p *pass) act(ctx context.Context) error {
	for i, j := 0, 0; i < len(p.round); i = j {
		for j < len(p.round) && (p.round[j].result != nil || p.judged(p.round[j])) {
			j++
		}
		j = max(j, i+1)
		if err := p.batch(ctx, p.round[i:j], j == len(p.round)); err != nil {
			return err
		}
	}
	for _, c := range p.round {
		p.breaker.saw(c)
		p.conv.add(toolMessage(c.result))
	}
	p.round = nil
	for _, e := range p.steered {
		p.conv.add(present(userMessage(&e, p.turn.PeerKind), &p.conv.used))
	}
	p.steered = nil
	return nil
}

// judged says whether the call may run beside others: it is pure and nobody is asked about it, or it will be refused.
func (p *pass) judged(c *call) bool {
	t, ok := p.Tools.Lookup(c.Name)
	return !ok || t.Spec().Effect == workspace.Pure && !p.asks(c)
}

// batch runs calls at once and records them together; last says that the round ends with them.
func (p *pass) batch(ctx context.Context, calls []*call, last bool) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var begun []workspace.Step
	var run []*call
	for _, c := range calls {
		if c.result != nil {
			continue
		}
		if c.step.State == "" {
			begun = append(begun, c.moved(workspace.StepPlanned))
		}
		row, no, err := p.settling(ctx, c)
		if err != nil {
			return err
		}
		if !no {
			row, no = p.refuse(c)
		}
		if no {
			p.unsaved = append(p.unsaved, row)
			continue
		}
		if d := c.step.Body.Decision; d != nil && d.Ask {
			if err := p.step(ctx, false, begun...); err != nil { // what is asked about stands in the journal
				return err
			}
			begun = nil
			row, no, err = p.approve(ctx, c)
			if err != nil {
				return err
			}
			if no {
				p.unsaved = append(p.unsaved, row)
				continue
			}
		}
		if c.step.State == workspace.StepPlanned {
			now := p.Now()
			c.step.Body.Began = &now
			begun = append(begun, c.moved(workspace.StepStarted))
		}
		run = append(run, c)
	}
	if err := p.step(ctx, false, begun...); err != nil {
		p.unstart(run)
		return err
	}
	for _, c := range run {
		c.step.Approval = "" // it is used up
	}
	rows := append(p.unsaved, p.runAll(ctx, run)...)
	p.unsaved = nil
	if err := p.step(ctx, last && ctx.Err() == nil, rows...); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// settling waits until the tool of an allowed call knows whether it works. no says that row settles the call.
func (p *pass) settling(ctx context.Context, c *call) (row workspace.Step, no bool, err error) {
	t, _ := p.Tools.Lookup(c.Name)
	s, ok := t.(tools.Settling)
	if !ok || c.step.State != workspace.StepPlanned {
		return row, false, nil
	}
	done, why := s.Settled()
	v := p.Tools.Decide(p.turn.Subject(), c.Name, c.Args)
	if done == nil || !v.Allow {
		return row, false, nil
	}
	p.event(Event{Type: EventWait, Note: "waiting: " + why})
	timer := time.NewTimer(p.limits.Settle)
	defer timer.Stop()
	select {
	case <-done:
		return row, false, nil
	case <-ctx.Done():
		return row, false, context.Cause(ctx)
	case <-timer.C:
	}
	p.log().Info("tool call refused", "tool", workspace.Line(c.Name, 40), "rule", ruleSettling)
	c.step.Body.Decision = v.Decision()
	said := fmt.Sprintf("Refused: %s, and that takes longer than %s. Say so; it may work in a minute.", why, p.limits.Settle)
	c.broken(ruleSettling, said)
	return c.say(workspace.StepRefused, ruleSettling, said, true), true, nil
}

const ruleSettling = "built-in: not known yet"

// refuse settles what must not run: a call that an earlier try had begun outside, a call that policy does not
// allow now, arguments that cannot be meant.
func (p *pass) refuse(c *call) (workspace.Step, bool) {
	begun := c.step.State == workspace.StepStarted
	if begun && c.step.Effect == workspace.Outside {
		return c.say(workspace.StepUnknown, "interrupted", saidUnknown, true), true
	}
	state := workspace.StepRefused
	if begun {
		state = workspace.StepFailed
	}
	v := p.Tools.Decide(p.turn.Subject(), c.Name, c.Args)
	c.step.Body.Decision = v.Decision()
	if !v.Allow {
		p.log().Info("tool call refused", "tool", workspace.Line(c.Name, 40), "layer", v.Layer, "rule", v.Rule)
		return c.say(state, v.Layer+": "+v.Rule, "Refused: "+workspace.Visible(v.Reason), true), true
	}
	if rule, said := p.breaker.refuses(c, p.limits); rule != "" {
		p.log().Info("tool call refused", "tool", workspace.Line(c.Name, 40), "rule", rule)
		c.broken(rule, said)
		return c.say(state, rule, said, true), true
	}
	t, ok := p.Tools.Lookup(c.Name)
	if !ok {
		return c.say(state, "built-in: exists", "Refused: there is no such tool.", true), true
	}
	c.tool = t
	if err := tools.CheckArgs(t.Spec().Schema, c.Args); err != nil {
		said, ok := workspace.Sentence(err)
		if !ok {
			p.log().Error("tool schema cannot be read", "tool", c.Name, "err", err)
			said = "The tool is broken."
		}
		return c.say(state, "arguments", said, true), true
	}
	return workspace.Step{}, false
}

// runAll runs calls side by side and returns the rows of those that came to an end, in the calls' order. A call
// that was cut short by the end of the turn has none: only its end can say what becomes of it.
func (p *pass) runAll(ctx context.Context, calls []*call) []workspace.Step {
	if len(calls) == 0 || ctx.Err() != nil {
		return nil
	}
	root := p.openRoot()
	results := make([]ran, len(calls))
	ended, written := make(chan int, len(calls)), make(chan Event)
	places := make(chan struct{}, p.limits.Parallel)
	for i, c := range calls {
		p.event(Event{Type: EventToolStart, Tool: c.Name, Call: c.CallID})
		go func() {
			places <- struct{}{}
			results[i] = p.invoke(ctx, c, root, written)
			<-places
			ended <- i
		}()
	}
	for left := len(calls); left > 0; {
		var i int
		select {
		case e := <-written:
			p.event(e)
			continue
		case i = <-ended:
			left--
		}
		e := Event{Type: EventToolEnd, Tool: calls[i].Name, Call: calls[i].CallID}
		if results[i].err != nil || results[i].Error {
			e.Err = "failed"
		}
		p.event(e)
	}
	var rows []workspace.Step
	for i, c := range calls {
		if results[i].err != nil && ctx.Err() != nil {
			continue
		}
		row := p.settled(c, results[i])
		row.Ended = p.Now()
		rows = append(rows, row)
	}
	return rows
}

// openRoot opens the turn's work folder once. Tools that need it say so when there is none.
func (p *pass) openRoot() *workspace.Root {
	if p.root != nil || p.turn.WorkDir == "" {
		return p.root
	}
	root, err := workspace.OpenWork(p.turn.WorkDir)
	if err != nil {
		p.log().Error("work folder does not open", "err", err)
		return nil
	}
	root.Under(p.Disk)
	for _, f := range p.turn.Folders {
		if err := root.Mount(f); err != nil { // it may have gone since the start; the others are there
			p.log().Warn("folder is not shown", "folder", f.As, "err", err)
		}
	}
	p.root = root
	return root
}

// ran is how a tool came back.
type ran struct {
	tools.Result
	err error
}

// invoke calls a tool under its time limit. A tool that does not even return after that is left behind.
func (p *pass) invoke(ctx context.Context, c *call, root *workspace.Root, written chan<- Event) ran {
	limit := p.limits.ToolTimeout
	if t, ok := c.tool.(tools.TimeLimited); ok {
		limit = t.TimeLimit()
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errToolTimeout)
	defer cancel()
	call := p.callOf(c, root) // made here: a tool that is left behind must not read what goes on
	defer call.Output.Watch(ctx, p.log(), tail.Free{Text: p.freed, Hide: p.Hide}, func(ctx context.Context, v tail.View) {
		select {
		case written <- Event{Type: EventOutput, Tool: c.Name, Call: c.CallID, Text: v.Text, Lines: v.Lines}:
		case <-ctx.Done():
		}
	})()
	done := make(chan ran, 1)
	go func() { done <- p.shielded(ctx, c.tool, call) }()
	select {
	case r := <-done:
		return r.because(ctx)
	case <-ctx.Done():
	}
	grace := time.NewTimer(p.limits.Grace)
	defer grace.Stop()
	select {
	case r := <-done:
		return r.because(ctx)
	case <-grace.C:
		p.log().Error("tool does not return", "tool", c.Name, "err", errToolHangs)
		return ran{err: errToolHangs}.because(ctx)
	}
}

// because names the time limit as the cause of an error that followed it.
func (r ran) because(ctx context.Context) ran {
	if r.err != nil && errors.Is(context.Cause(ctx), errToolTimeout) {
		r.err = fmt.Errorf("%w: %w", errToolTimeout, r.err)
	}
	return r
}

// shielded calls a tool and turns its panic into a failure.
func (p *pass) shielded(ctx context.Context, t tools.Tool, call tools.Call) (r ran) {
	defer func() {
		if v := recover(); v != nil {
			p.log().Error("tool panicked", "tool", t.Spec().Name, "err", fmt.Sprint(v), "stack", string(debug.Stack()))
			r = ran{err: errToolPanic}
		}
	}()
	r.Result, r.err = t.Call(ctx, call)
	return r
}

// callOf is a call with the facts that decide about it.
func (p *pass) callOf(c *call, root *workspace.Root) tools.Call {
	t := p.turn
	return tools.Call{
		ID: c.CallID, Args: c.Args, Run: t.Run, Session: t.Session, Agent: t.Agent, Actor: t.Requester, Root: root,
		Control: t.Control, MaxFile: t.MaxFile, Decision: c.step.Body.Decision, Output: tail.New(),
	}
}

// settled turns how a tool came back into what the model reads.
func (p *pass) settled(c *call, r ran) workspace.Step {
	if r.err == nil {
		row := c.settle(workspace.StepDone, "", p.resultOf(c, r.Result)...)
		row.Body.Files, row.Body.Sandbox = r.Files, r.Sandbox
		return row
	}
	state, said := workspace.StepFailed, "The tool failed."
	sentence, ok := workspace.Sentence(r.err)
	switch {
	case errors.Is(r.err, errToolTimeout) && c.step.Effect == workspace.Outside:
		state, said = workspace.StepUnknown, "The tool did not finish in time and was stopped. Whether it took effect is unknown."
	case errors.Is(r.err, errToolTimeout):
		said = "The tool did not finish in time and was stopped."
	case errors.Is(r.err, errToolPanic):
		said = "The tool failed: it broke down. Other tools still work."
	case ok:
		said = workspace.Visible(sentence)
	}
	if ok { // what the tool foresaw is said to the model
		p.log().Debug("tool refused", "tool", c.Name, "err", r.err)
	} else {
		p.log().Warn("tool failed", "tool", c.Name, "err", r.err)
	}
	return c.say(state, "", cut(p.Hide.Redact(said), p.limits.Output), true)
}

// resultOf is a tool's result as one piece of visible text within the limit, with its files and images behind it.
func (p *pass) resultOf(c *call, r tools.Result) []workspace.Content {
	var text []string
	var rest []workspace.Content
	for _, piece := range r.Content {
		switch piece.Kind {
		case workspace.FileRef, workspace.Image:
			rest = append(rest, piece)
		case workspace.JSON:
			if piece.Text == "" {
				piece.Text = string(piece.Args)
			}
			text = append(text, piece.Text)
		default:
			text = append(text, piece.Text)
		}
	}
	return append([]workspace.Content{{
		Kind: workspace.ToolResult, CallID: c.CallID, Name: c.Name, Error: r.Error,
		Text: cut(p.freed(strings.Join(text, "\n")), p.limits.Output),
	}}, p.hideFiles(rest)...)
}

// cut keeps the first limit bytes of text, at a character's end, and says so.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return fmt.Sprintf("%s\n[cut: the first %d of %d bytes are shown]", clip.Bytes(text, limit), limit, len(text))
}
