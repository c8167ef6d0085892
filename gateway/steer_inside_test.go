package gateway

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/agentloop/llm/llmtest"
	"parley/tools"
	"parley/workspace"
	"parley/workspace/store"
)

// waitTool is called once and returns when it is let go.
type waitTool struct{ called, open chan struct{} }

func newWaitTool() waitTool { return waitTool{make(chan struct{}), make(chan struct{})} }

// script is a model that calls it.
func (waitTool) script(q *llmtest.Request) llmtest.Reply {
	if q.Round() == 0 {
		return llmtest.Reply{Calls: []llmtest.Call{{Name: "wait", Args: `{}`}}}
	}
	return llmtest.Reply{Text: "done with " + q.LastUser()}
}

func (w waitTool) Spec() tools.Spec {
	return tools.Spec{Name: "wait", Description: "For tests.", Effect: workspace.Pure, Group: tools.GroupFiles, MinRole: workspace.Guest,
		Schema: json.RawMessage(`{"type":"object","additionalProperties":false}`)}
}

func (w waitTool) Call(ctx context.Context, _ tools.Call) (tools.Result, error) {
	close(w.called)
	select {
	case <-w.open:
	case <-ctx.Done():
	}
	return tools.TextResult("waited"), nil
}

// A message that was stopped or deleted in the very moment in which the turn wanted to take it in does not harm the turn.
func outlivesWhatEnded(t *testing.T, g *Gateway, p *puppet, w waitTool, model *llmtest.Server) {
	p.hear(p.says("7", "1", "work"))
	select {
	case <-w.called:
	case <-time.After(time.Minute):
		t.Fatal("the tool was not called")
	}
	p.hear(p.says("7", "2", "gone"), p.says("7", "3", "kept"))
	queued, err := g.store.Queued()
	if err != nil || len(queued) != 2 {
		t.Fatalf("%+v, %v", queued, err)
	}
	// as a delete whose commit is there and which the lane was not told of yet
	if _, err := g.store.EndInputs([]store.Ending{{Seq: queued[0].Seq, From: workspace.InputQueued, To: workspace.InputCancelled, Reason: "deleted"}}); err != nil {
		t.Fatal(err)
	}
	close(w.open)
	if got := p.next(); got != "done with kept" {
		t.Errorf("answer %q", got)
	}
	if bodies := model.Bodies(); strings.Contains(bodies[len(bodies)-1], `"gone"`) {
		t.Error("what was deleted reached the model")
	}
	if got := query(t, g, `SELECT state FROM inputs WHERE account = 'bot-steered' ORDER BY seq`); !slices.Equal(got, []string{"answered", "cancelled", "answered"}) {
		t.Errorf("inputs %q", got)
	}
	p.hear(p.says("7", "4", "next"))
	if got := p.next(); !strings.Contains(got, "next") {
		t.Errorf("after that %q", got)
	}
}
