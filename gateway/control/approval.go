package control

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"parley/gateway/approval"
	"parley/workspace"
	"parley/workspace/clip"
	"parley/workspace/store"
)

// Approval is a question with what its readers want to know beside.
type Approval struct {
	workspace.Approval
	State       workspace.ApprovalState // as it is told: unknown when its call was begun and nobody knows what came of it
	Name        string                  // of the requester
	DeciderName string
	Mine        bool // the caller may decide about it here
}

// AskedBy is who asked for the call, as whoever decides about it reads it.
func (a Approval) AskedBy() string {
	return workspace.Who(a.Requester, a.Role, cmp.Or(a.Body.Asked, a.Name))
}

// Decision is an answer to a question.
type Decision struct {
	Which  string           // its id, whole or short
	Choice workspace.Choice // typed by people it may be yes or no as well
	Reason string           // of a no, in the decider's words
}

// approvalsShown is how many recent ones a short id is looked for among.
const approvalsShown = 200

// Approvals lists questions, newest first, those that the caller may decide about or asked for. state may be empty.
// next goes on behind the last that was looked at.
func (c *Control) Approvals(_ context.Context, call Call, state workspace.ApprovalState, after workspace.ApprovalID, limit int) (items []Approval, next workspace.ApprovalID, err error) {
	if err := c.may(call, "approval.list"); err != nil {
		return nil, "", err
	}
	if state != "" && state != workspace.ApprovalUnknown && !knownApproval(state) {
		return nil, "", workspace.Say(workspace.ErrInvalid, "There is no state %q of approvals.", clip.Runes(string(state), 40))
	}
	for looked := 0; looked < lookMost; {
		rows, err := c.Store.ApprovalsBefore(after, lookAt)
		if err != nil {
			return nil, "", err
		}
		for _, ap := range rows {
			after = ap.ID
			if !c.sees(call, ap) {
				continue
			}
			v, err := c.approval(call, ap)
			if err != nil {
				return nil, "", err
			}
			if state != "" && v.State != state {
				continue
			}
			if items = append(items, v); len(items) > limit {
				return items[:limit], items[limit-1].ID, nil
			}
		}
		if looked += len(rows); len(rows) < lookAt {
			return items, "", nil
		}
	}
	return items, after, nil
}

func knownApproval(state workspace.ApprovalState) bool {
	return slices.Contains([]workspace.ApprovalState{workspace.ApprovalPending, workspace.ApprovalApproved, workspace.ApprovalConsumed, workspace.ApprovalDenied,
		workspace.ApprovalExpired, workspace.ApprovalCancelled}, state)
}

// Approval reads one, by its id or the short form of a recent one.
func (c *Control) Approval(_ context.Context, call Call, which string) (Approval, error) {
	if err := c.may(call, "approval.list"); err != nil {
		return Approval{}, err
	}
	ap, err := c.findApproval(call, which)
	if err != nil {
		return Approval{}, err
	}
	return c.approval(call, ap)
}

func (c *Control) approval(call Call, ap workspace.Approval) (v Approval, err error) {
	v = Approval{Approval: ap, State: ap.State, DeciderName: c.Questions.DeciderName(ap)}
	if ap.State == workspace.ApprovalConsumed {
		steps, err := c.Store.Steps(ap.RunID)
		if err != nil {
			return v, err
		}
		if i := slices.IndexFunc(steps, func(st workspace.Step) bool { return st.CallID == ap.CallID }); i >= 0 && steps[i].State == workspace.StepUnknown {
			v.State = workspace.ApprovalUnknown // its call was begun, and nobody knows what came of it
		}
	}
	v.Mine = ap.State == workspace.ApprovalPending && c.decidesHere(call, ap) == nil
	v.Name, err = c.nameOf(map[workspace.PersonID]string{}, ap.Requester)
	return v, err
}

// sees says whether a question is the caller's business: owners see all, others what they asked for or may decide.
func (c *Control) sees(call Call, ap workspace.Approval) bool {
	return owner(call) || ap.Requester == call.Actor.Person || c.Questions.Decides(ap, call.Actor) == nil
}

func (c *Control) findApproval(call Call, which string) (workspace.Approval, error) {
	missing := workspace.Say(workspace.ErrNotFound, "There is no approval %q.", clip.Runes(which, 40))
	ap, err := c.Store.Approval(workspace.ApprovalID(strings.ToUpper(which)))
	if errors.Is(err, workspace.ErrNotFound) {
		recent, err := c.Store.ApprovalsBefore("", approvalsShown)
		if err != nil {
			return ap, err
		}
		i := slices.IndexFunc(recent, func(ap workspace.Approval) bool {
			return strings.EqualFold(workspace.Short(ap.ID), which) && c.sees(call, ap)
		})
		if i < 0 {
			return ap, missing
		}
		return recent[i], nil
	}
	if err == nil && !c.sees(call, ap) {
		return workspace.Approval{}, missing
	}
	return ap, err
}

// decidesHere refuses who may not decide about a question at the surface that the call came by.
func (c *Control) decidesHere(call Call, ap workspace.Approval) error {
	return c.Questions.DecidesBy(ap, call.Actor, func() string { return call.surface(c) })
}

// surface is the way of the call in the words of domains[].owner.surfaces.
func (call Call) surface(c *Control) string {
	switch {
	case call.Via == ViaTerminal:
		return "cli"
	case call.Input == nil || call.Room == "" || call.Read:
		return "http"
	}
	r, err := c.Store.Room(call.Room)
	if err != nil {
		return ""
	}
	return "channel:" + call.Input.Data.Channel + ":" + string(r.Peer)
}

// Approve takes an answer to a question. The first one holds; workspace.ErrDecided comes with the sentence that tells the others.
func (c *Control) Approve(_ context.Context, call Call, d Decision) (Approval, error) {
	v := verb("approve")
	if call.Pressed {
		v = "approve.button"
	}
	if err := c.may(call, v); err != nil {
		return Approval{}, err
	}
	ap, err := c.findApproval(call, d.Which)
	if err != nil {
		return Approval{}, err
	}
	if err := c.roleNow(&call); err != nil {
		return Approval{}, err
	}
	if err := c.decidesHere(call, ap); err != nil {
		return Approval{}, err
	}
	verdict, err := c.verdict(call, ap, d)
	if err != nil {
		return Approval{}, err
	}
	if ap, err = c.Questions.Current(ap); err != nil {
		return Approval{}, err
	}
	if ap.State != workspace.ApprovalPending {
		return Approval{}, c.Questions.TooLate(ap)
	}
	after := ap
	after.State, after.Grant, after.DecidedBy, after.Reason = verdict.To, verdict.Grant, verdict.By, verdict.Reason
	value := Approval{Approval: after, State: after.State}
	did, err := c.commit(call, func(store.Did) any { return value }, verdict)
	if errors.Is(err, workspace.ErrConflict) {
		now, readErr := c.Store.Approval(ap.ID)
		if readErr == nil && now.State != workspace.ApprovalPending {
			return Approval{}, c.Questions.TooLate(now)
		}
		return Approval{}, errors.Join(err, readErr) // the command itself was done before
	}
	if err != nil {
		return Approval{}, err
	}
	c.Questions.Resolved(*did.Decided)
	return c.approval(call, *did.Decided)
}

// roleNow lowers the caller's role to what their person has at this moment: a press may have waited in the journal.
func (c *Control) roleNow(call *Call) error {
	p, err := c.Store.PersonByID(call.Actor.Person)
	switch {
	case errors.Is(err, workspace.ErrNotFound):
		return workspace.Say(workspace.ErrDenied, "I don't know you.")
	case err != nil:
		return err
	case !p.Role.AtLeast(call.Actor.Role):
		call.Actor.Role = p.Role
	}
	return nil
}

// verdict reads what was chosen.
func (c *Control) verdict(call Call, ap workspace.Approval, d Decision) (store.Verdict, error) {
	v := store.Verdict{ID: ap.ID, By: call.Actor.Person, Via: call.via(), Reason: clip.Runes(strings.TrimSpace(d.Reason), approval.MaxReason)}
	switch choice := workspace.Choice(strings.ToLower(string(d.Choice))); choice {
	case workspace.ChooseDeny, "no":
		v.To = workspace.ApprovalDenied
		return v, nil
	case workspace.ChooseOnce, "yes", workspace.ChooseSession:
		v.To, v.Grant = workspace.ApprovalApproved, workspace.Once
		if choice == workspace.ChooseSession {
			v.Grant = workspace.ForSession
		}
	case "always":
		return v, workspace.Say(workspace.ErrInvalid, "Nothing is ever approved for always: what is always allowed belongs in the configuration, where it can be read (agents[].tools). Say once or deny.")
	default:
		return v, workspace.Say(workspace.ErrInvalid, "Say once, session or deny.")
	}
	if slices.Contains(ap.Body.Grants, v.Grant) {
		return v, nil
	}
	if ap.Domain != "" {
		return v, workspace.Say(workspace.ErrInvalid, "What belongs to %s is approved one call at a time. Say once or deny.", ap.Domain)
	}
	return v, workspace.Say(workspace.ErrInvalid, "Commands are approved one at a time: the next one is another command. Say once or deny.")
}

// RunApprovals lists what a run has asked, oldest first, for who may read the run.
func (c *Control) RunApprovals(call Call, run workspace.RunID) (items []Approval, err error) {
	list, err := c.Store.RunApprovals(run)
	for _, ap := range list {
		v, err := c.approval(call, ap)
		if err != nil {
			return nil, err
		}
		items = append(items, v)
	}
	return items, err
}

// waitingApprovals counts the questions that the caller may answer.
func (c *Control) waitingApprovals(call Call) (n int, err error) {
	list, err := c.Store.OpenApprovals()
	for _, ap := range list {
		if ap.State == workspace.ApprovalPending && c.Questions.Decides(ap, call.Actor) == nil {
			n++
		}
	}
	return n, err
}

// Age is how long a question has stood.
func (a Approval) Age(now time.Time) time.Duration { return now.Sub(a.Created) }
