package approval

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"parley/gateway/approval"
	"parley/gateway/control"
	"parley/gateway/rights"
	"parley/workspace"
	"parley/workspace/clip"
	"parley/workspace/rule"
	"parley/workspace/store"
)

// DecideIn is an answer to a question.
type DecideIn struct {
	ID       string           `json:"id,omitempty" help:"whole or short"`
	Decision workspace.Choice `json:"decision,omitempty" help:"once, session or deny; typed by people it may be yes or no as well"`
	Reason   string           `json:"reason,omitempty" help:"of a no, in the decider's words: the model is told it"`
}

// Decide takes an answer to a question. The first one holds; workspace.ErrDecided comes with the sentence that tells the others.
// HTTP has it in a route of its own, where domains' systems answer as well.
var Decide = control.Verb[*Approvals, DecideIn, Approval]{
	Name: "approve", Help: "Answer a question", Rights: rights.Row{Owner: rights.Direct, Member: rights.OwnDirect},
	Chat: "approve <id> once|session|deny why", Parse: parseDecision, Do: decide, Say: sayDecided,
}

// Press is Decide by a button, which is all that decides in a group.
var Press = control.Verb[*Approvals, DecideIn, Approval]{
	Name: "approve.button", Help: "Answer a question by its button", Rights: rights.Row{Owner: rights.Yes, Member: rights.Own},
	Do: decide,
}

// parseDecision reads an id, an answer, and behind a no the reason.
func parseDecision(words []string) (DecideIn, error) {
	if len(words) < 2 {
		return DecideIn{}, control.NotTaken("")
	}
	in := DecideIn{ID: words[0], Decision: workspace.Choice(strings.ToLower(words[1]))}
	reason := strings.Join(words[2:], " ")
	switch in.Decision {
	case workspace.ChooseDeny, "no":
		in.Reason = reason
	case workspace.ChooseOnce, workspace.ChooseSession, "always", "yes":
		if reason != "" {
			return in, control.NotTaken(reason)
		}
	default:
		return in, control.NotTaken(words[1])
	}
	return in, nil
}

func sayDecided(v Approval) string {
	switch {
	case v.State == workspace.ApprovalDenied:
		return "Denied. It does not run."
	case v.Grant == workspace.ForSession && v.Body.Rule != nil:
		return fmt.Sprintf("Approved, and `%s` in this session for %s. /new or `/approve revoke %s` ends that.",
			strings.ReplaceAll(workspace.Line(v.Body.Rule.Says(), 120), "`", "ˋ"), rule.Span(v.Body.Rule.For), workspace.Short(v.ID))
	case v.Grant == workspace.ForSession:
		return fmt.Sprintf("Approved, and `%s` for the rest of this session. /new or `/approve revoke %s` ends that.",
			workspace.Line(v.Tool, 40), workspace.Short(v.ID))
	}
	return "Approved, once. I go on."
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

func decide(_ context.Context, c *Approvals, call control.Call, in DecideIn) (Approval, error) {
	ap, err := c.find(call, in.ID)
	if err != nil {
		return Approval{}, err
	}
	if err := c.roleNow(&call); err != nil {
		return Approval{}, err
	}
	if err := c.decidesHere(call, ap); err != nil {
		return Approval{}, err
	}
	verdict, err := c.verdict(call, ap, in)
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
func (c *Approvals) verdict(call control.Call, ap workspace.Approval, in DecideIn) (store.Verdict, error) {
	v := store.Verdict{ID: ap.ID, By: call.Actor.Person, Via: call.Surface(),
		Reason: clip.Runes(strings.TrimSpace(in.Reason), approval.MaxReason)}
	switch choice := workspace.Choice(strings.ToLower(string(in.Decision))); choice {
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
	return v, workspace.Say(workspace.ErrInvalid,
		"Commands are approved one at a time, but for simple ones that change nothing by surprise. Say once or deny.")
}
