package view

import (
	"parley/gateway/control/operator"
	"parley/workspace"
)

// PolicyDecision is what tool policy said of a call.
type PolicyDecision struct {
	Outcome string            `json:"outcome"`          // allow, ask, deny
	Domain  string            `json:"domain,omitempty"` // whose owner is asked
	Layer   string            `json:"layer,omitempty"`  // that decided
	Rule    string            `json:"rule,omitempty"`
	Reason  string            `json:"reason,omitempty"`
	Record  []workspace.Layer `json:"record"` // what each layer said, in order
}

func PolicyOf(d *workspace.ToolDecision) *PolicyDecision {
	if d == nil {
		return nil
	}
	return &PolicyDecision{operator.PolicyOutcome(*d), d.Domain, d.Layer, d.Rule, d.Reason, append([]workspace.Layer{}, d.Record...)}
}
