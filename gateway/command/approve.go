package command

import (
	"context"
	"errors"
	"strings"

	"parley/channels"
	"parley/gateway/control"
	"parley/gateway/control/all"
	"parley/gateway/control/approval"
	"parley/gateway/spec"
	"parley/workspace"
)

// decisions is what people decide, and what waits for them.
func decisions() []Command {
	return []Command{
		{Name: "approve", Args: "[<id> once|session|deny]", Help: "answer a question of mine, or list those that wait", Example: "/approve 3f2a9c once", Wrong: "/approve 3f2a9c maybe",
			MaxArgs: 2, verb: approveVerb, check: checkApprove, run: approve},
	}
}

func approveVerb(args []string) string {
	if args != nil && len(args) == 0 {
		return "approval.list"
	}
	return "approve"
}

func checkApprove(args []string) error {
	if len(args) == 0 {
		return nil
	}
	if len(args) == 1 {
		return row("approve").wrong("")
	}
	switch strings.ToLower(args[1]) {
	case "once", "session", "deny", "always", "yes", "no":
		return nil
	}
	return row("approve").wrong(args[1])
}

func approve(ctx context.Context, c *all.Nouns, call control.Call, args []string) error {
	if len(args) == 0 {
		list, err := approval.List.Call(ctx, c.Approvals, call, approval.ListIn{State: string(workspace.ApprovalPending), Page: spec.Page{Limit: 20}})
		if err != nil {
			return err
		}
		return c.Text(ctx, call, "approval.list", renderApprovals(list.Items))
	}
	_, err := c.Approvals.Decide(ctx, call, approval.Decision{Which: args[0], Choice: workspace.Choice(args[1])})
	return err
}

// press does what a button decides. The message that asked says what came of it, so that only who came too late, or may not
// decide, is told in words; in a group those who may not are told only where they alone read it.
func press(ctx context.Context, c *all.Nouns, call control.Call, p workspace.Press) error {
	call.Pressed, call.Render = true, nil
	_, err := c.Approvals.Decide(ctx, call, approval.Decision{Which: string(p.Approval), Choice: p.Choice})
	if err == nil {
		return nil
	}
	sentence, ok := workspace.Sentence(err)
	if !ok {
		return err
	}
	hidden := errors.Is(err, workspace.ErrDenied) || errors.Is(err, workspace.ErrNotFound)
	if hidden && call.Kind != channels.DM && !call.Private { // not theirs to see either
		call.Room = ""
	}
	return c.Refuse(call, sentence)
}

// quoted does what a yes or no decides that quotes the message that asked, and says so.
func quoted(ctx context.Context, c *all.Nouns, call control.Call, p workspace.Press) error {
	call.Render = Render
	_, err := c.Approvals.Decide(ctx, call, approval.Decision{Which: string(p.Approval), Choice: p.Choice})
	return ended(c, call, err)
}
