package control

import (
	"context"

	"parley/workspace"
)

// Invite says whether the caller may make a way in for a browser: who comes in by it is the local owner.
func (c *Control) Invite(_ context.Context, call Call) error { return c.may(call, "sign-in.code") }

// Me is who asks, the agents that answer, and the number of this start of the gateway.
func (c *Control) Me(_ context.Context, call Call) (who workspace.Actor, agents []Agent, boot int64, err error) {
	if err := c.may(call, "me"); err != nil {
		return workspace.Actor{}, nil, 0, err
	}
	return call.Actor, append([]Agent{}, c.House.Agents()...), c.Store.Epoch(), nil
}
