package run

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"parley/gateway/control"
	"parley/gateway/control/approval"
	"parley/gateway/control/view"
	"parley/gateway/rights"
	"parley/workspace"
)

// Reason is why the newest answer was given, or why the input may ask that asks when there was none.
type Reason struct {
	Input *workspace.Input
	Run   *workspace.Run
	Steps []workspace.Step
	Title string // of the session
	// Approvals are the questions of the run.
	Approvals []approval.Approval
}

// Why tells which gates a message passed, which rule chose the agent, and what the run did.
var Why = control.Verb[*Runs, struct{}, Reason]{
	Name: "why", Help: "Tell why a chat was answered as it was",
	Rights: rights.Row{Owner: rights.Yes, Member: rights.Own, Guest: rights.Own},
	Chat:   "why", Say: Reason.say,
	Do: func(_ context.Context, c *Runs, call control.Call, _ struct{}) (Reason, error) {
		w, err := c.newest(call)
		if err != nil {
			return Reason{}, err
		}
		if w.Input == nil {
			w.Input = call.Input
		}
		return w, c.Answer(call, w)
	},
}

// newest is the reason of the session's last run, if it is the caller's business.
func (c *Runs) newest(call control.Call) (w Reason, err error) {
	ses, err := c.Store.SessionByKey(call.Session)
	if err != nil {
		return w, nil // nothing was said here
	}
	run, err := c.Store.LastRun(ses.ID)
	if err != nil || !call.Owner() && run.Requester != call.Actor.Person {
		return w, nil
	}
	w.Run = &run
	inputs, err := c.Store.RunInputs(run.ID)
	if err != nil {
		return w, err
	}
	if len(inputs) > 0 {
		w.Input = &inputs[0]
	}
	if w.Steps, err = c.Store.Steps(run.ID); err != nil {
		return w, err
	}
	if w.Title, err = c.Find.Title(map[string]string{}, call.Session.String()); err != nil {
		return w, err
	}
	w.Approvals, err = c.Approvals.OfRun(call, run.ID)
	return w, err
}

func (w Reason) say() string {
	if w.Input == nil {
		return "I have answered nothing here yet."
	}
	var b strings.Builder
	d, r := w.Input.Decision, w.Input.Binding
	if w.Run != nil {
		verb := "ended"
		if w.Run.State.Live() {
			verb = "is"
		}
		fmt.Fprintf(&b, "Run %s %s %s", workspace.Short(w.Run.ID), verb, w.Run.State)
		if w.Run.Reason != "" {
			fmt.Fprintf(&b, " (%s)", w.Run.Reason)
		}
		b.WriteString(".\n")
		if t := view.TroubleOf(w.Run.Trouble, false); t != nil {
			fmt.Fprintf(&b, "- its model failed: %s\n", t.Sentence)
		}
	}
	fmt.Fprintf(&b, "- you may speak here by rule `%s`", d.Rule)
	if len(d.Gates) > 0 {
		fmt.Fprintf(&b, ", having passed %s", strings.Join(d.Gates, ", "))
	}
	fallback := ""
	if r.Fallback {
		fallback = ", as a fallback: no route names this place"
	}
	fmt.Fprintf(&b, "\n- agent `%s` by route `%s`%s\n- session **%s**, rights of %s", r.Agent, r.Rule, fallback,
		cmp.Or(w.Title, r.Key), w.Input.Role)
	if w.Run != nil && w.Run.Model != "" {
		u := w.Run.Usage
		fmt.Fprintf(&b, "\n- model `%s`, %d tokens in, %d out%s", w.Run.Model, u.InputTokens+u.CacheReadTokens, u.OutputTokens,
			control.Cost(u.CostUSD))
	}
	for _, ap := range w.Approvals {
		fmt.Fprintf(&b, "\n- approval %s of `%s`: %s", workspace.Short(ap.ID), workspace.Line(ap.Tool, 40), ap.Stands())
	}
	for _, st := range w.Steps {
		if st.Kind == workspace.StepTool {
			fmt.Fprintf(&b, "\n- tool `%s`: %s%s", workspace.Line(st.Tool, 40), st.State, judged(st.Body))
		}
	}
	return b.String()
}

// judged is what policy said of a call: the layer that decided first, then what all said.
func judged(b workspace.StepBody) string {
	d := b.Decision
	if d == nil {
		if b.Reason == "" {
			return ""
		}
		return ", " + b.Reason
	}
	s := ", " + control.PolicyOutcome(*d) + " by " + d.Layer + " `" + d.Rule + "`"
	if d.Domain != "" {
		s += ", domain `" + d.Domain + "`"
	}
	if b.Reason != "" && b.Reason != d.Layer+": "+d.Rule {
		s += ", " + b.Reason
	}
	var steps []string
	for _, l := range d.Record {
		steps = append(steps, fmt.Sprintf("%s %s (%s)", l.Layer, l.Outcome, l.Rule))
	}
	if len(steps) > 0 {
		s += ": " + strings.Join(steps, " → ")
	}
	return s
}
