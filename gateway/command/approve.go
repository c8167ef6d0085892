package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"parley/channels"
	"parley/gateway/control"
	"parley/gateway/control/all"
	"parley/gateway/control/approval"
	"parley/gateway/control/run"
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

func renderApprovals(list []approval.Item) string {
	if len(list) == 0 {
		return "Nothing waits for an answer."
	}
	var b strings.Builder
	cut := false
	for _, ap := range list {
		cut = cut || workspace.Line(ap.Text, 120) != ap.Text
		fmt.Fprintf(&b, "- **%s** %s: `%s`", ap.Short, workspace.Line(ap.Tool, 40), strings.ReplaceAll(workspace.Line(ap.Text, 120), "`", "ˋ"))
		if ap.Domain != "" {
			fmt.Fprintf(&b, ", belongs to %s", workspace.Line(ap.Domain, 40))
		}
		fmt.Fprintf(&b, ", asked for by %s\n", ap.AskedBy)
	}
	if cut {
		b.WriteString("Here they are cut short: read one whole where it was asked, in WebChat, or by `parley approval show`. ")
	}
	b.WriteString("`/approve <id> once` or `deny` answers it.")
	return b.String()
}

func renderApproval(v approval.Approval) string {
	switch {
	case v.State == workspace.ApprovalDenied:
		return "Denied. It does not run."
	case v.Approval.Grant == workspace.ForSession:
		return fmt.Sprintf("Approved, and `%s` for the rest of this session. /new ends that.", workspace.Line(v.Tool, 40))
	}
	return "Approved, once. I go on."
}

func renderStoppedAll(v run.StoppedAll) string {
	if v.Runs+v.Queued+v.Parts == 0 {
		return "Nothing is running anywhere."
	}
	return fmt.Sprintf("Stopped everywhere: %s, %s, %s.", control.Plural(v.Runs, "run"), control.Plural(v.Queued, "waiting message"), control.Plural(v.Parts, "unsent part"))
}

// approvalTold is how a question stands, in half a sentence.
func approvalTold(v approval.Approval) string {
	s := string(v.State)
	if v.DeciderName != "" {
		s += " by " + v.DeciderName
	}
	if v.Via != "" {
		s += " (" + v.Via + ")"
	}
	if v.Domain != "" {
		s += ", belongs to " + workspace.Line(v.Domain, 40)
	}
	return s
}
