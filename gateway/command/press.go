// Answers to questions that need no words: buttons, and a yes or no that quotes the question.

package command

import (
	"context"
	"errors"

	"parley/channels"
	"parley/gateway/control"
	"parley/gateway/control/all"
	"parley/gateway/control/approval"
	"parley/workspace"
)

func decided(p workspace.Press) approval.DecideIn {
	return approval.DecideIn{ID: string(p.Approval), Decision: p.Choice, Reason: p.Reason}
}

// press does what a button decides. The message that asked says what came of it, so that only who came too late, or may not
// decide, is told in words; in a group those who may not are told only where they alone read it.
func press(ctx context.Context, c *all.Nouns, call control.Call, p workspace.Press) error {
	call.Render = nil
	_, err := approval.Press.Call(ctx, c.Approvals, call, decided(p))
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
	call.Render = approval.Decide.Said
	_, err := approval.Decide.Call(ctx, c.Approvals, call, decided(p))
	return ended(c, call, err)
}
