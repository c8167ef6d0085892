package person

import (
	"context"
	"fmt"

	"parley/channels"
	"parley/gateway/control"
	"parley/routes"
	"parley/workspace"
	"parley/workspace/store"
)

// LinkCode is a code by which the caller can be joined with who they are on another network.
type LinkCode struct {
	Code    string `json:"code"`
	Minutes int    `json:"minutes"` // that it lives
}

// LinkView is what became of a code.
type LinkView struct {
	Outcome workspace.LinkOutcome `json:"outcome"`
	With    channels.Network      `json:"with,omitempty"` // where the code was asked for
}

// AskLink issues a one-time code; the caller's former one is worth nothing then.
func (c *People) AskLink(_ context.Context, call control.Call) (LinkCode, error) {
	network, err := c.linkable(call)
	if err != nil {
		return LinkCode{}, err
	}
	v := LinkCode{Code: routes.NewCode(), Minutes: int(routes.CodeLife.Minutes())}
	_, err = c.Commit(call, func(store.Did) any { return v },
		store.AskLink{Person: call.Actor.Person, Network: network, Room: call.Room, CodeHash: routes.CodeHash(v.Code)})
	return v, err
}

// Link joins the caller with whoever asked for the code. Whatever comes of it, the command is done: a wrong code is kept
// as a try of the caller's.
func (c *People) Link(_ context.Context, call control.Call, code string) (LinkView, error) {
	network, err := c.linkable(call)
	if err != nil {
		return LinkView{}, err
	}
	var v LinkView
	did, err := c.Commit(call, func(d store.Did) any { return LinkView{Outcome: d.Joined.Outcome, With: d.Joined.With} }, store.GiveLink{
		Person: call.Actor.Person, CodeHash: routes.CodeHash(code), Life: routes.CodeLife, Tries: routes.CodeTries,
		Audit: c.AuditRow(call, workspace.AuditPeopleLinked, nil),
		Notice: fmt.Sprintf("You are linked: whoever gave your code on %s and you are one person to me now. "+
			"If that was not you, tell an owner of this gateway at once.", network),
	})
	if err != nil {
		return v, err
	}
	c.Changed()
	c.Push(did.Told)
	return LinkView{Outcome: did.Joined.Outcome, With: did.Joined.With}, nil
}

// linkable is the network of a caller who may be linked.
func (c *People) linkable(call control.Call) (channels.Network, error) {
	if err := c.Allow(call, "link"); err != nil {
		return "", err
	}
	if call.Input == nil || call.Actor.Person == "" {
		return "", workspace.Say(workspace.ErrInvalid, "A link is asked for and given in a chat with me.")
	}
	return channels.Network(call.Input.Source), nil
}

// IsLinkCode says whether a text can be a code at all.
func IsLinkCode(text string) bool {
	_, ok := routes.NormalizeCode(text)
	return ok
}
