package agentloop

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"parley/tools"
	"parley/workspace"
)

// asking is a Set whose owner wants to be asked about some tools.
type asking struct {
	tools.Set
	about  string
	domain string
	off    bool // policy has changed its mind
}

func (a *asking) Decide(t tools.Subject, name string, args json.RawMessage) tools.Verdict {
	v := a.Set.Decide(t, name, args)
	if a.off && name == a.about {
		return tools.Verdict{Layer: "exec", Rule: "deny", Reason: "No."}
	}
	if v.Allow && name == a.about {
		v.Ask, v.Domain = true, a.domain
	}
	return v
}

// askTable is a table with one tool that is asked about; the model calls it once and then answers.
func askTable(t *testing.T, effect workspace.Effect) (*table, *asking, *int) {
	ran := 0
	act := fn{name: "act", effect: effect, call: func(context.Context, tools.Call) (tools.Result, error) {
		ran++
		return tools.TextResult("done"), nil
	}}
	tb := newTable(t, plays([][]workspace.Content{calls(toolCall("c1", "act", `{"n":1}`))}), act, echoes("look", workspace.Pure))
	set := &asking{Set: tb.loop.Tools, about: "act"}
	tb.loop.Tools = set
	return tb, set, &ran
}

func (tb *table) again() error {
	tb.Helper()
	tb.turn.Journal = slices.Clone(tb.rec.steps)
	return tb.loop.Run(tb.Context(), tb.turn, tb.rec, nil)
}

func TestACallThatNeedsAPersonWaitsForOneAndRunsOnce(t *testing.T) {
	t.Parallel()
	for _, effect := range []workspace.Effect{workspace.Pure, workspace.Store, workspace.Outside} {
		tb, _, ran := askTable(t, effect)
		var asked []Wanted
		answer := Answer{Wait: true}
		tb.rec.ask = func(w Wanted) (Answer, error) {
			asked = append(asked, w)
			return answer, nil
		}
		if err := tb.again(); !errors.Is(err, ErrWaiting) {
			t.Fatalf("%s: the pass ended with %v", effect, err)
		}
		if len(tb.rec.outcomes) != 0 || *ran != 0 || tb.rec.state("c1") != workspace.StepPlanned {
			t.Fatalf("%s: %d ends, ran %d, %s", effect, len(tb.rec.outcomes), *ran, tb.rec.state("c1"))
		}
		answer = Answer{Approval: "A1"}
		var started workspace.Step
		tb.rec.before = func(_ int, steps []workspace.Step) error {
			for _, st := range steps {
				if st.State == workspace.StepStarted {
					started = st
				}
			}
			return nil
		}
		if err := tb.again(); err != nil || len(tb.rec.outcomes) != 1 || *ran != 1 || tb.rec.state("c1") != workspace.StepDone {
			t.Fatalf("%s: then %v, ran %d, %s", effect, err, *ran, tb.rec.state("c1"))
		}
		if started.Approval != "A1" || started.CallID != "c1" || started.Body.Began == nil { // its clock begins here, behind the wait
			t.Errorf("%s: started by %+v", effect, started)
		}
		if len(asked) != 2 || asked[0].Hash != asked[1].Hash || asked[0].Hash == "" || !strings.Contains(asked[0].Question.Shown, `"n": 1`) {
			t.Errorf("%s: asked %+v", effect, asked)
		}
		if !slices.Equal(asked[0].Grants, []workspace.Grant{workspace.Once, workspace.ForSession}) {
			t.Errorf("grants %v", asked[0].Grants)
		}
	}
}

// T11: what a domain owns is never granted for longer than once.
func TestT11_ADomainsCallIsGrantedOnceOnly(t *testing.T) {
	t.Parallel()
	tb, set, _ := askTable(t, workspace.Outside)
	set.domain = "pay"
	tb.rec.ask = func(w Wanted) (Answer, error) {
		if w.Domain != "pay" || !slices.Equal(w.Grants, []workspace.Grant{workspace.Once}) {
			t.Errorf("wanted %+v", w)
		}
		return Answer{Wait: true}, nil
	}
	if err := tb.again(); !errors.Is(err, ErrWaiting) {
		t.Error(err)
	}
}

func TestANoIsToldToTheModelAndNothingRuns(t *testing.T) {
	t.Parallel()
	tb, _, ran := askTable(t, workspace.Outside)
	tb.rec.ask = func(Wanted) (Answer, error) {
		return Answer{Refused: "Refused: Ana said no.", Rule: "approval: denied"}, nil
	}
	if err := tb.again(); err != nil || *ran != 0 || tb.rec.state("c1") != workspace.StepRefused || !strings.Contains(tb.rec.result("c1").Text, "Ana said no") {
		t.Errorf("%v, ran %d, %s %q", err, *ran, tb.rec.state("c1"), tb.rec.result("c1").Text)
	}
}

// T11: policy is asked again when the call is to run.
func TestT11_PolicyThatChangedMeanwhileRefusesAnApprovedCall(t *testing.T) {
	t.Parallel()
	tb, set, ran := askTable(t, workspace.Outside)
	tb.rec.ask = func(Wanted) (Answer, error) { return Answer{Wait: true}, nil }
	if err := tb.again(); !errors.Is(err, ErrWaiting) {
		t.Fatal(err)
	}
	set.off = true
	tb.rec.ask = func(Wanted) (Answer, error) { t.Error("asked"); return Answer{Approval: "A1"}, nil }
	if err := tb.again(); err != nil || *ran != 0 || tb.rec.state("c1") != workspace.StepRefused {
		t.Errorf("%v, ran %d, %s", err, *ran, tb.rec.state("c1"))
	}
}

func TestAStopBeforeAnApprovedCallStartsLeavesItUnrun(t *testing.T) {
	t.Parallel()
	tb, _, ran := askTable(t, workspace.Outside)
	tb.rec.ask = func(Wanted) (Answer, error) { return Answer{Approval: "A1"}, nil }
	tb.rec.held = true
	if err := tb.again(); err != nil || *ran != 0 {
		t.Fatalf("%v, ran %d", err, *ran)
	}
	o := tb.rec.outcomes[0]
	if o.State != workspace.RunStopped || len(o.Steps) != 1 || o.Steps[0].State != workspace.StepCancelled {
		t.Errorf("ended %+v", o)
	}
}

func TestAPauseTakesHoldAtAStepsEnd(t *testing.T) {
	t.Parallel()
	rounds := [][]workspace.Content{calls(toolCall("c1", "look", `{}`)), calls(toolCall("c2", "look", `{}`))}
	tb := newTable(t, plays(rounds), echoes("look", workspace.Pure))
	tb.rec.boundary = func([]workspace.Step) Boundary { return Boundary{Pause: true} }
	if err := tb.again(); !errors.Is(err, ErrPaused) || tb.rec.state("c1") != workspace.StepDone || len(tb.rec.outcomes) != 0 {
		t.Fatalf("%v, %s", err, tb.rec.state("c1"))
	}
	tb.rec.boundary = nil
	if err := tb.again(); err != nil || tb.rec.outcomes[0].Text != "the end" || tb.rec.outcomes[0].Usage.Calls != 3 {
		t.Errorf("%v %+v", err, tb.rec.outcomes)
	}
}
