package approval

import (
	"context"
	"errors"
	"slices"
	"strings"

	"parley/gateway/approval"
	"parley/gateway/control"
	"parley/workspace"
	"parley/workspace/clip"
	"parley/workspace/store"
)

// Decision is an answer to a question.
type Decision struct {
	Which  string           // its id, whole or short
	Choice workspace.Choice // typed by people it may be yes or no as well
	Reason string           // of a no, in the decider's words
}

// decidesHere refuses who may not decide about a question at the surface that the call came by.
func (c *Approvals) decidesHere(call control.Call, ap workspace.Approval) error {
	return c.Questions.DecidesBy(ap, call.Actor, func() string { return c.surface(call) })
}

// surface is the way of the call in the words of domains[].owner.surfaces.
func (c *Approvals) surface(call control.Call) string {
	switch {
	case call.Via == control.ViaTerminal:
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

// Decide takes an answer to a question. The first one holds; workspace.ErrDecided comes with the sentence that tells the others.
func (c *Approvals) Decide(_ context.Context, call control.Call, d Decision) (Approval, error) {
	verb := "approve"
	if call.Pressed {
		verb = "approve.button"
	}
	if err := c.Allow(call, verb); err != nil {
		return Approval{}, err
	}
	ap, err := c.find(call, d.Which)
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
	did, err := c.Commit(call, func(store.Did) any { return value }, verdict)
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
	return c.view(call, *did.Decided)
}

// roleNow lowers the caller's role to what their person has at this moment: a press may have waited in the journal.
func (c *Approvals) roleNow(call *control.Call) error {
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
func (c *Approvals) verdict(call control.Call, ap workspace.Approval, d Decision) (store.Verdict, error) {
	v := store.Verdict{ID: ap.ID, By: call.Actor.Person, Via: call.Surface(),
		Reason: clip.Runes(strings.TrimSpace(d.Reason), approval.MaxReason)}
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
		return v, workspace.Say(workspace.ErrInvalid, "Nothing is ever approved for always: what is always allowed belongs in the "+
			"configuration, where it can be read (agents[].tools). Say once or deny.")
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
