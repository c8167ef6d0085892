package command

import (
	"context"
	"strings"

	"parley/gateway/control"
	"parley/gateway/control/all"
	"parley/gateway/control/person"
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
