package person

import (
	"context"
	"fmt"
	"strings"

	"parley/channels"
	"parley/gateway/control"
	"parley/gateway/rights"
	"parley/gateway/spec"
	"parley/routes"
	"parley/workspace"
	"parley/workspace/store"
)

// LinkCode is a code by which the caller can be joined with who they are on another network.
type LinkCode struct {
	Code    string
	Minutes int // that it lives
}

// LinkView is what became of a code.
type LinkView struct {
	Outcome workspace.LinkOutcome
	With    channels.Network // where the code was asked for
}

// mayLink is what being joined with somebody needs.
var mayLink = rights.Row{Owner: rights.Direct, Member: rights.OwnDirect, Guest: rights.OwnDirect}

// AskLink issues a one-time code; the caller's former one is worth nothing then.
var AskLink = control.Verb[*People, struct{}, LinkCode]{
	Name: "link", Help: "Make a code by which two accounts become one person", Rights: mayLink, Chat: "link",
	Do: func(_ context.Context, c *People, call control.Call, _ struct{}) (LinkCode, error) {
		network, err := linkable(call)
		if err != nil {
			return LinkCode{}, err
		}
		v := LinkCode{Code: routes.NewCode(), Minutes: int(routes.CodeLife.Minutes())}
		_, err = c.Commit(call, func(store.Did) any { return v },
			store.AskLink{Person: call.Actor.Person, Network: network, Room: call.Room, CodeHash: routes.CodeHash(v.Code)})
		return v, err
	},
	Say: func(v LinkCode) string {
		const text = "Your code is **%s**. Send me `/link %s` where you want to be known as the same person. It works once, for %d minutes."
		return fmt.Sprintf(text, v.Code, v.Code, v.Minutes)
	},
}

// LinkIn is a code that was asked for on another network.
type LinkIn struct {
	Code string `json:"code" help:"that was asked for on another network"`
}

// Link joins the caller with whoever asked for the code. Whatever comes of it, the command is done: a wrong code is kept
// as a try of the caller's.
var Link = control.Verb[*People, LinkIn, LinkView]{
	Name: "link", Help: "Be one person with whoever asked for a code", Rights: mayLink,
	Chat: "link [code]", Order: spec.BeforeRouting, Say: LinkView.say,
	Parse: func(words []string) (LinkIn, error) { // it may be typed in two halves
		in := LinkIn{Code: strings.Join(words, "")}
		if _, ok := routes.NormalizeCode(in.Code); !ok {
			return in, control.NotTaken(strings.Join(words, " "))
		}
		return in, nil
	},
	Do: func(_ context.Context, c *People, call control.Call, in LinkIn) (LinkView, error) {
		network, err := linkable(call)
		if err != nil {
			return LinkView{}, err
		}
		view := func(d store.Did) LinkView { return LinkView{Outcome: d.Joined.Outcome, With: d.Joined.With} }
		did, err := c.Commit(call, func(d store.Did) any { return view(d) }, store.GiveLink{
			Person: call.Actor.Person, CodeHash: routes.CodeHash(in.Code), Life: routes.CodeLife, Tries: routes.CodeTries,
			Audit: c.AuditRow(call, workspace.AuditPeopleLinked, nil),
			Notice: fmt.Sprintf("You are linked: whoever gave your code on %s and you are one person to me now. "+
				"If that was not you, tell an owner of this gateway at once.", network),
		})
		if err != nil {
			return LinkView{}, err
		}
		c.Changed()
		c.Push(did.Told)
		return view(did), nil
	},
}

// linkable is the network of a caller who may be linked.
func linkable(call control.Call) (channels.Network, error) {
	if call.Input == nil || call.Actor.Person == "" {
		return "", workspace.Say(workspace.ErrInvalid, "A link is asked for and given in a chat with me.")
	}
	return channels.Network(call.Input.Source), nil
}

func (v LinkView) say() string {
	switch v.Outcome {
	case workspace.Linked:
		return fmt.Sprintf("Linked: here and on %s you are one person to me now. What each account may do stays as it was.", v.With)
	case workspace.LinkTries:
		return "You gave too many wrong codes. Wait ten minutes, then ask for a new one."
	case workspace.LinkSame:
		return "That is your own code: you are one person to me already. Give it on the other network."
	case workspace.LinkConfigured:
		return "I can't link you: the configuration says who both of you are. An owner can list both accounts under one person there."
	case workspace.LinkStranger:
		return "I can't link you: whoever asked for that code is not known here any more."
	}
	return "That code does not fit. A code lives ten minutes, works once and is replaced by a newer one; " +
		"send /link on the other network for another."
}
