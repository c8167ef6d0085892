package command

import (
	"context"
	"fmt"
	"strings"

	"parley/gateway/control"
	"parley/gateway/control/all"
	"parley/gateway/control/person"
	"parley/workspace"
)

// checkLink wants a code that could be one. It may be typed in two halves.
func checkLink(args []string) error {
	if len(args) > 0 && !person.IsLinkCode(strings.Join(args, "")) {
		return row("link").wrong(strings.Join(args, " "))
	}
	return nil
}

func link(ctx context.Context, c *all.Nouns, call control.Call, args []string) error {
	if len(args) == 0 {
		_, err := c.People.AskLink(ctx, call)
		return err
	}
	_, err := c.People.Link(ctx, call, strings.Join(args, ""))
	return err
}

func renderLink(v person.LinkView) string {
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
	return "That code does not fit. A code lives ten minutes, works once and is replaced by a newer one; send /link on the other network for another."
}
