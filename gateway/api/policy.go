package api

import (
	"encoding/json"
	"net/http"

	"parley/gateway/control"
	"parley/workspace"
)

// policyDecision is what tool policy said of a call.
type policyDecision struct {
	Outcome string            `json:"outcome"`          // allow, ask, deny
	Domain  string            `json:"domain,omitempty"` // whose owner is asked
	Layer   string            `json:"layer,omitempty"`  // that decided
	Rule    string            `json:"rule,omitempty"`
	Reason  string            `json:"reason,omitempty"`
	Record  []workspace.Layer `json:"record"` // what each layer said, in order
}

func policyOf(d *workspace.ToolDecision) *policyDecision {
	if d == nil {
		return nil
	}
	return &policyDecision{control.PolicyOutcome(*d), d.Domain, d.Layer, d.Rule, d.Reason, append([]workspace.Layer{}, d.Record...)}
}

// policyRequest is a made-up call.
type policyRequest struct {
	Person  string          `json:"person,omitempty"`  // by id; left out: an owner
	Role    string          `json:"role,omitempty"`    // in place of the person's: owner, member, guest, nobody
	Channel string          `json:"channel,omitempty"` // by name; left out: a local session
	Route   string          `json:"route,omitempty"`   // label of the rule that chose the agent
	Helper  bool            `json:"helper,omitempty"`  // of a helper
	Tool    string          `json:"tool,omitempty"`    // left out: all
	Args    json.RawMessage `json:"args,omitempty"`    // of the call
}

// explainPolicy is a dry run: nothing is stored.
func (s *server) explainPolicy(w http.ResponseWriter, r *http.Request) error {
	var q policyRequest
	if err := decode(w, r, &q); err != nil {
		return err
	}
	x, err := s.opt.Control.ExplainPolicy(r.Context(), s.call(r), control.PolicyProbe{Agent: workspace.AgentID(r.PathValue("id")), Person: q.Person, Role: q.Role,
		Channel: q.Channel, Route: q.Route, Helper: q.Helper, Tool: q.Tool, Args: q.Args})
	if err == nil {
		reply(w, http.StatusOK, x)
	}
	return err
}
