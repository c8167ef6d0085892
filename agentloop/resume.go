package agentloop

import (
	"context"
	"slices"

	"parley/agentloop/llm"
	"parley/workspace"
)

// resume rebuilds the conversation from the transcript and the journal of an earlier try, and runs what that try
// left open: pure calls again, planned ones now, a started call with outside effect never (it becomes unknown).
func (p *pass) resume(ctx context.Context) error {
	past, now := p.turn.Known.split(p.turn.History, p.turn.Run, p.turn.PeerKind)
	p.conv.past, p.conv.used, p.conv.summary = past, now.used, summaryMessage(p.turn.Summary)
	steps := slices.Clone(p.turn.Journal)
	slices.SortStableFunc(steps, func(a, b workspace.Step) int { return a.N - b.N })
	for _, m := range now.upTo(0) {
		p.conv.add(m)
	}
	for i, st := range steps {
		p.lastN = max(p.lastN, st.N)
		if st.Kind == workspace.StepModel {
			p.endRound(now.upTo(st.N - 1))
			p.replay(st, steps[i+1:])
		}
	}
	if p.open() {
		if err := p.act(ctx); err != nil {
			return err
		}
	}
	p.endRound(now.upTo(p.lastN))
	return nil
}

// replay takes a journalled response: its calls and as many of their results as the journal has.
func (p *pass) replay(model workspace.Step, later []workspace.Step) {
	p.asked++
	if model.Body.Usage != nil {
		p.usage = p.usage.Add(*model.Body.Usage)
	}
	p.conv.add(assistantMessage(model.Body.Content))
	for _, c := range model.Body.Content {
		if c.Kind != workspace.ToolCall {
			continue
		}
		p.ids[c.CallID] = true
		i := slices.IndexFunc(later, func(st workspace.Step) bool { return st.Kind == workspace.StepTool && st.CallID == c.CallID })
		if i < 0 {
			p.round = append(p.round, p.newCall(c))
			continue
		}
		call := &call{Content: c, step: later[i], nth: p.breaker.wanted(c)}
		switch call.step.State {
		case workspace.StepPlanned, workspace.StepStarted:
		default:
			if call.result = call.step.Body.Content; len(call.result) == 0 {
				call.say(call.step.State, call.step.Body.Reason, saidLost, true)
			}
		}
		p.round = append(p.round, call)
	}
}

// open says whether a call of the last round has no result.
func (p *pass) open() bool {
	return slices.ContainsFunc(p.round, func(c *call) bool { return c.result == nil })
}

// endRound adds the results of a round, and what was steered in after it.
func (p *pass) endRound(steered []llm.Message) {
	for _, c := range p.round {
		if c.result == nil { // a later response was journalled, so it had one
			c.say(workspace.StepUnknown, "", saidLost, true)
		}
		p.breaker.saw(c)
		p.conv.add(toolMessage(c.result))
	}
	p.round = nil
	for _, m := range steered {
		p.conv.add(m)
	}
}
