package control

import (
	"context"

	"parley/routes"
	"parley/workspace"
)

// Needs is how many pairing requests and questions wait for a decision of the caller; none, when it is not theirs to
// decide.
func (c *Control) Needs(_ context.Context, call Call) (pairings, approvals int, err error) {
	if c.May(call, "approval.list") {
		if approvals, err = c.waitingApprovals(call); err != nil {
			return 0, 0, err
		}
	}
	if !c.May(call, "pairing.list") {
		return 0, approvals, nil
	}
	list, err := c.Store.Pairings(pairingsShown)
	for _, p := range list {
		if routes.PairingOpen(p, c.Now()) {
			pairings++
		}
	}
	return pairings, approvals, err
}

// Me is who asks, the agents that answer, and the number of this start of the gateway.
func (c *Control) Me(_ context.Context, call Call) (who workspace.Actor, agents []Agent, boot int64, err error) {
	if err := c.may(call, "me"); err != nil {
		return workspace.Actor{}, nil, 0, err
	}
	return call.Actor, append([]Agent{}, c.House.Agents()...), c.Store.Epoch(), nil
}
