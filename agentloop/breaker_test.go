package agentloop

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"parley/tools"
	"parley/workspace"
)

func fails(name string) fn {
	return fn{name: name, effect: workspace.Outside, call: func(context.Context, tools.Call) (tools.Result, error) {
		return tools.Result{}, workspace.Say(errors.New("broken"), "It is broken.")
	}}
}

func TestT14_TheSameCallInOtherWordsIsTheSame(t *testing.T) {
	t.Parallel()
	var script []any
	for i, args := range []string{`{"n":{"a":1,"b":2}}`, `{"n":{"b":2,"a":1}}`, `{ "n":{"a":1.0,"b":2}}`, `{"n":{"a":1,"b":2e0}}`, `{"\u006e":{"a":1,"b":2}}`, "{\"n\":{\"a\":1,\n\"b\":2}}"} {
		script = append(script, calls(toolCall(fmt.Sprint("c", i), "look", args)))
	}
	b := newTable(t, says(append(script, "I give up.")...), echoes("look", workspace.Pure))
	b.turn.MaxSteps = 20
	b.run(t.Context())
	if b.rec.state("c4") != workspace.StepDone || b.rec.state("c5") != workspace.StepRefused {
		t.Errorf("c4 is %s, c5 is %s", b.rec.state("c4"), b.rec.state("c5"))
	}
	var d *workspace.ToolDecision
	for _, st := range b.rec.steps {
		if st.CallID == "c5" {
			d = st.Body.Decision
		}
	}
	if d == nil || d.Allow || d.Rule != "repeat" || len(d.Record) == 0 || d.Record[len(d.Record)-1].Rule != "repeat" {
		t.Errorf("the journal says %+v", d)
	}
}

func TestT14_AToolThatOnlyFailsIsTakenAway(t *testing.T) {
	t.Parallel()
	var script []any
	add := func(id, tool string, n int) {
		script = append(script, calls(toolCall(id, tool, fmt.Sprintf(`{"n":%d}`, n))))
	}
	for i := range 7 {
		add(fmt.Sprint("a", i), "break", i)
	}
	add("ok", "look", 1) // something works: the count begins again
	for i := range 9 {
		add(fmt.Sprint("b", i), "break", 100+i)
	}
	b := newTable(t, says(append(script, "It does not work.")...), fails("break"), echoes("look", workspace.Pure))
	b.turn.MaxSteps = 40
	b.run(t.Context())
	for id, want := range map[string]workspace.StepState{"a6": workspace.StepFailed, "b7": workspace.StepFailed, "b8": workspace.StepRefused} {
		if got := b.rec.state(id); got != want {
			t.Errorf("%s is %s, want %s", id, got, want)
		}
	}
	if r := b.rec.result("b8"); !strings.Contains(r.Text, "8 times in a row") {
		t.Errorf("the model reads %q", r.Text)
	}
}

// TestT14_AModelThatDoesNotListenIsStopped: it is asked once more without tools, and the turn ends for all to see.
func TestT14_AModelThatDoesNotListenIsStopped(t *testing.T) {
	t.Parallel()
	var script []any
	for i := range 8 {
		script = append(script, calls(toolCall(fmt.Sprint("c", i), "look", `{}`)))
	}
	b := newTable(t, says(append(script, "I was stuck.")...), echoes("look", workspace.Pure))
	b.turn.MaxSteps = 1000
	o := b.run(t.Context())
	if o.State != workspace.RunCompleted || o.Reason != "repeat_limit" || o.Text != "I was stuck." {
		t.Errorf("it ends %s (%s): %q", o.State, o.Reason, o.Text)
	}
	if b.rec.state("c7") != workspace.StepRefused || len(b.rec.steps) != 8*2+1 {
		t.Errorf("c7 is %s, %d steps", b.rec.state("c7"), len(b.rec.steps))
	}
}
