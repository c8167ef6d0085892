package agentloop

import (
	"context"
	"errors"

	"parley/tools"
	"parley/workspace"
)

// Why a pass ends that is not the end of its turn: the run goes on from its journal, in another pass, when somebody
// has decided.
var (
	ErrWaiting = errors.New("waiting for a person")
	ErrPaused  = errors.New("paused by a person")
)

// Wanted is a call that a person must approve first.
type Wanted struct {
	Step     workspace.Step // planned, or started by an earlier try
	Question tools.Question
	Hash     string
	Domain   string            // that owns it; empty: owners decide
	Grants   []workspace.Grant // what may be granted, most careful first
}

// Answer is what became of a Wanted.
type Answer struct {
	// Wait: the question stands and the run waits. Stop: the run was stopped. Else Refused is why the call must not run,
	// one sentence for the model, with Rule for the record; when it is empty the call may run, and the step that starts
	// it uses up Approval, if there is one.
	Wait     bool
	Stop     bool
	Refused  string
	Rule     string
	Approval workspace.ApprovalID
}

const saidUnaskable = "Refused: a person would have to approve this call, and it cannot be put in words for them."

// asks says whether policy wants a person asked about a call.
func (p *pass) asks(c *call) bool {
	v := p.Tools.Decide(p.turn.Subject(), c.Name, c.Args)
	return v.Allow && v.Ask
}

// approve finds out whether a person has approved exactly this call, as it would run now, and has one asked if not. no
// says that row settles the call. The error is ErrWaiting when the pass must end for it.
func (p *pass) approve(ctx context.Context, c *call) (row workspace.Step, no bool, err error) {
	state := workspace.StepRefused
	if c.step.State == workspace.StepStarted {
		state = workspace.StepFailed
	}
	q, err := tools.QuestionFor(ctx, c.tool, p.callOf(c, p.openRoot()))
	hash := ""
	if err == nil {
		hash, err = tools.Hash(q, c.Name, p.turn.Session, p.turn.Requester.Person)
	}
	if err != nil {
		said, ok := workspace.Sentence(err)
		if !ok {
			p.log().Warn("nobody can be asked about a call", "tool", c.Name, "err", err)
			said = saidUnaskable
		}
		return c.say(state, "approval: no question", workspace.Visible(said), true), true, nil
	}
	w := Wanted{Step: c.step, Question: q, Hash: hash, Domain: c.step.Body.Decision.Domain, Grants: []workspace.Grant{workspace.Once}}
	if w.Domain == "" && (c.tool.Spec().Group != tools.GroupExec || q.Rule != nil) {
		w.Grants = append(w.Grants, workspace.ForSession)
	}
	a, err := p.rec.Ask(context.WithoutCancel(ctx), w)
	switch {
	case err != nil:
		return row, false, &recordError{err}
	case a.Stop:
		return row, false, ErrStopped
	case a.Wait:
		return row, false, ErrWaiting
	case a.Refused != "":
		return c.say(state, a.Rule, a.Refused, true), true, nil
	}
	c.step.Approval = a.Approval
	return row, false, nil
}

// unstart takes back that calls were started: a stop came first, and none of it was stored.
func (p *pass) unstart(calls []*call) {
	if !p.held {
		return
	}
	for _, c := range calls {
		if c.step.Approval != "" {
			c.step.State, c.step.Approval = workspace.StepPlanned, ""
		}
	}
}
