package api

import (
	"encoding/json"
	"net/http"

	"parley/channels"
	"parley/gateway/api/wire"
	"parley/gateway/control/operator"
	"parley/workspace"
)

// explain answers what would become of a message or a call that nobody has sent.
type explain struct{ base }

func (e explain) routes() []route {
	return []route{
		{"POST /v1/routes/explain", e.route, loose,
			operation{"routes", "Say what gate and routes would do with a message", "", probeRequest{},
				one(200, operator.Explained{}), ""}},
		{"POST /v1/agents/{id}/policy/explain", e.policy, loose,
			operation{"agents", "Say what tool policy would do with a call", "", policyRequest{},
				one(200, operator.PolicyExplained{}), ""}},
	}
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

// policy is a dry run: nothing is stored.
func (e explain) policy(w http.ResponseWriter, r *http.Request) error {
	var q policyRequest
	if err := wire.Decode(w, r, &q); err != nil {
		return err
	}
	x, err := e.control.Operator.ExplainPolicy(r.Context(), e.call(r), operator.PolicyProbe{Agent: workspace.AgentID(r.PathValue("id")),
		Person: q.Person, Role: q.Role,
		Channel: q.Channel, Route: q.Route, Helper: q.Helper, Tool: q.Tool, Args: q.Args})
	if err == nil {
		wire.Reply(w, http.StatusOK, x)
	}
	return err
}

type probeRequest struct {
	Channel   string   `json:"channel"`
	Kind      string   `json:"kind,omitempty"`
	Peer      string   `json:"peer,omitempty"`
	Thread    string   `json:"thread,omitempty"`
	User      string   `json:"user,omitempty"`
	Roles     []string `json:"roles,omitempty"`
	Server    string   `json:"server,omitempty"`
	Team      string   `json:"team,omitempty"`
	Text      string   `json:"text,omitempty"`
	Mentioned bool     `json:"mentioned,omitempty"`
}

// route is a dry run: nothing is stored.
func (e explain) route(w http.ResponseWriter, r *http.Request) error {
	var q probeRequest
	if err := wire.Decode(w, r, &q); err != nil {
		return err
	}
	x, err := e.control.Operator.ExplainRoute(r.Context(), e.call(r), operator.Probe{Channel: q.Channel, Kind: channels.PeerKind(q.Kind),
		Peer:   q.Peer,
		Thread: q.Thread,
		User:   q.User, Roles: q.Roles, Server: q.Server, Team: q.Team, Text: q.Text, Mentioned: q.Mentioned})
	if err == nil {
		wire.Reply(w, http.StatusOK, x)
	}
	return err
}
