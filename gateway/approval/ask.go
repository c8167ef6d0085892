// Asking: how a turn asks, and what it is told of the answer.

package approval

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/agentloop"
	"parley/gateway/live"
	"parley/gateway/transport"
	"parley/workspace"
	"parley/workspace/rule"
	"parley/workspace/store"
)

// maxShown bounds what a person is asked to read, in bytes. What is longer is refused, never shortened.
const maxShown = 256 << 10

// Asker is the turn that asks.
type Asker struct {
	Run       workspace.Run
	Key       workspace.Key
	Requester workspace.Actor
	Room      workspace.Room
	Channel   *transport.Channel // of the room; nil: it has none
	Answers   []workspace.Input  // what the turn answers: a message that asks replies to the first
	// TTL is how long a question of a domain may stand; empty: one that owners decide.
	TTL func(domain string) time.Duration
	// Steers says that messages are steered into the turn, Superseded that the requester has written one behind a number.
	Steers     bool
	Superseded func(after int64) bool
}

// Ask finds the answer to a call, or has a person asked and the run wait, for the question that it
// returns then.
func (q *Questions) Ask(by Asker, w agentloop.Wanted) (agentloop.Answer, *workspace.Approval, error) {
	ap, err := q.opt.Store.ApprovalOf(by.Run.ID, w.Step.CallID)
	if errors.Is(err, workspace.ErrNotFound) {
		return q.askFirst(by, w)
	}
	if err != nil {
		return agentloop.Answer{}, nil, err
	}
	return q.askedBefore(by, ap, w)
}

// askFirst asks about a call that nobody was asked about.
func (q *Questions) askFirst(by Asker, w agentloop.Wanted) (agentloop.Answer, *workspace.Approval, error) {
	if len(w.Question.Shown) > maxShown {
		return refused("too long", "Refused: a person must approve this call and would have to read %d bytes. Make it shorter than %d.",
			len(w.Question.Shown), maxShown), nil, nil
	}
	if w.Question.Rule == nil && slices.Contains(w.Grants, workspace.ForSession) {
		granted, err := q.Tool(by.Run.SessionID, w.Step.Tool, by.Key.Agent, by.Run.Requester)
		if granted || err != nil {
			return agentloop.Answer{}, nil, err
		}
	}
	before, err := q.opt.Store.RunApprovals(by.Run.ID)
	if err != nil {
		return agentloop.Answer{}, nil, err
	}
	if i := slices.IndexFunc(before, func(ap workspace.Approval) bool {
		return ap.Hash == w.Hash && (ap.State == workspace.ApprovalDenied || ap.State == workspace.ApprovalExpired)
	}); i >= 0 {
		return refused(string(before[i].State)+" before",
			"Refused: the answer to this very call was no already in this turn, and nobody is asked twice."), nil, nil
	}
	if by.Steers && by.Superseded(0) {
		return wroteInstead(), nil, nil
	}
	ap := q.about(by, w)
	unit := store.Ask{Run: by.Run, Approval: ap}
	unit.Approval.Body.Rooms, unit.Questions = q.opt.Rooms.audience(by, ap)
	got, err := q.opt.Store.Ask(unit)
	if err != nil {
		return agentloop.Answer{}, nil, err
	}
	if got.StopBy != "" {
		return agentloop.Answer{Stop: true}, nil, nil
	}
	ap = got.Approval
	q.opt.Log.Info("approval asked for", "approval", ap.ID, "tool", ap.Tool, "run", ap.RunID, "session", ap.Session, "domain", ap.Domain)
	q.deadlines.watch(ap)
	q.opt.Rooms.push(got.Pushed)
	q.opt.Feed.Publish(ap.Session, live.Update{Session: ap.SessionID, Run: ap.RunID, Stored: true})
	q.opt.Feed.Needs()
	q.askSystem(ap)
	return agentloop.Answer{Wait: true}, &ap, nil
}

// about is the question about a call.
func (q *Questions) about(by Asker, w agentloop.Wanted) workspace.Approval {
	now := q.opt.Now()
	var allows *rule.Command
	if slices.Contains(w.Grants, workspace.ForSession) {
		allows = w.Question.Rule
	}
	return workspace.Approval{ID: workspace.ApprovalID(q.opt.Store.IDs().New()), RunID: by.Run.ID, CallID: w.Step.CallID,
		SessionID: by.Run.SessionID, Session: by.Key.String(), Agent: by.Key.Agent, RoomID: by.Room.ID,
		Tool: w.Step.Tool, Hash: w.Hash, Domain: w.Domain, Requester: by.Run.Requester, Role: by.Requester.Role,
		Body: workspace.ApprovalBody{Shown: workspace.Exact(w.Question.Shown), Args: w.Question.Args, Cwd: w.Question.Cwd,
			Env: w.Question.Env, Sandbox: w.Question.Sandbox, Asked: by.Requester.Name, Grants: w.Grants, Rule: allows,
			Dangers: w.Question.Dangers},
		Created: now, Expires: now.Add(by.TTL(w.Domain))}
}

// SupersededAfter is the number behind which a message of the requester takes the place of a question; where messages are
// steered in, any that still waits does.
func SupersededAfter(ap workspace.Approval, steers bool) int64 {
	if steers {
		return 0
	}
	return ap.Body.After
}

// refused is the answer to a call that must not run, in words for the model.
func refused(rule, format string, args ...any) agentloop.Answer {
	return agentloop.Answer{Rule: "approval: " + rule, Refused: fmt.Sprintf(format, args...)}
}

func wroteInstead() agentloop.Answer {
	return refused("the person wrote instead",
		"Not run: the person wrote a new message instead of approving this. Read it before you go on.")
}

// askedBefore says what became of a question about a call, which is looked at as it would run now.
func (q *Questions) askedBefore(by Asker, ap workspace.Approval, w agentloop.Wanted) (agentloop.Answer, *workspace.Approval, error) {
	same := ap.Hash == w.Hash
	switch ap.State {
	case workspace.ApprovalPending:
		switch {
		case q.deadlines.over(ap.ID):
			return q.settle(by, w, expired(ap.ID))
		case by.Superseded(SupersededAfter(ap, by.Steers)):
			return q.settle(by, w, store.Verdict{ID: ap.ID, To: workspace.ApprovalCancelled, By: by.Run.Requester, Via: "message",
				Reason: reasonWrote})
		case !same:
			return q.settle(by, w, store.Verdict{ID: ap.ID, To: workspace.ApprovalCancelled, Via: "gateway", Reason: reasonChanged})
		}
		got, err := q.opt.Store.Ask(store.Ask{Run: by.Run, Approval: ap})
		if err != nil || got.StopBy != "" {
			return agentloop.Answer{Stop: true}, nil, err
		}
		if got.Approval.State != workspace.ApprovalPending { // just now
			return q.askedBefore(by, got.Approval, w)
		}
		q.deadlines.watch(ap)
		return agentloop.Answer{Wait: true}, &ap, nil
	case workspace.ApprovalApproved:
		switch {
		case !same:
			return q.settle(by, w, store.Verdict{ID: ap.ID, To: workspace.ApprovalCancelled, Via: "gateway", Reason: reasonChanged})
		case !q.Stands(ap):
			return q.settle(by, w, store.Verdict{ID: ap.ID, To: workspace.ApprovalCancelled, Via: "gateway", Reason: reasonRights})
		}
		return agentloop.Answer{Approval: ap.ID}, nil, nil
	}
	return q.over(ap), nil, nil
}

// over is what a turn is told of a question that stands no more.
func (q *Questions) over(ap workspace.Approval) agentloop.Answer {
	switch ap.State {
	case workspace.ApprovalConsumed:
		return agentloop.Answer{} // begun by an earlier try; what may run again does
	case workspace.ApprovalDenied:
		said := "Refused: " + q.DeciderName(ap) + " said no."
		if ap.Reason != "" {
			return refused("denied", "%s Their words: %s. Do not try the same in another way, unless that is what they say.", said,
				strings.TrimRight(workspace.Line(ap.Reason, MaxReason), ". "))
		}
		return refused("denied", "%s Do not try it in another way.", said)
	case workspace.ApprovalExpired:
		return refused("expired", "Refused: nobody approved it within %s, which is a no. Say so.",
			ap.Expires.Sub(ap.Created).Round(time.Second))
	}
	if ap.Reason == reasonWrote {
		return wroteInstead()
	}
	return refused("cancelled", "Not run: %s. If it is still wanted, make the call again; a person will be asked again.", ap.Reason)
}

// Why a question is taken back.
const (
	reasonWrote   = "the person wrote instead"
	reasonChanged = "what would run now is not what was asked about"
	reasonRights  = "who approved it may not do so any more"
)

// settle takes a question back, unless somebody was quicker.
func (q *Questions) settle(by Asker, w agentloop.Wanted, v store.Verdict) (agentloop.Answer, *workspace.Approval, error) {
	now, _, err := q.opt.Store.Decide(v)
	if err == nil {
		q.Resolved(now)
	} else if !errors.Is(err, workspace.ErrConflict) {
		return agentloop.Answer{}, nil, err
	}
	return q.askedBefore(by, now, w)
}

// WaitsFor is what people are told that a turn waits for.
func WaitsFor(ap workspace.Approval) string {
	if ap.Domain != "" {
		return fmt.Sprintf("it waits for the owner of %s to decide about %s (approval %s)", ap.Domain, ap.Tool, workspace.Short(ap.ID))
	}
	return fmt.Sprintf("it waits for an owner to approve %s (approval %s)", ap.Tool, workspace.Short(ap.ID))
}
