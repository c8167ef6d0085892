package approval

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"parley/gateway/control"
	"parley/gateway/spec"
	"parley/workspace"
	"parley/workspace/rule"
)

// Item is a question to people about one exact tool call.
type Item struct {
	ID      string          `json:"id"`
	Short   string          `json:"short"`
	State   string          `json:"state"` // pending, approved, consumed, denied, expired, cancelled, unknown
	Tool    string          `json:"tool"`
	Text    string          `json:"text"` // the whole of what would be done
	Args    json.RawMessage `json:"args"`
	Cwd     string          `json:"cwd,omitempty"`
	Env     []string        `json:"env"`
	Sandbox string          `json:"sandbox,omitempty"`
	Hash    string          `json:"hash"`
	Domain  string          `json:"domain,omitempty"` // that owns it; left out: owners decide
	Origin
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires_at"`
	Dangers []Danger  `json:"dangers"` // what to look at first: a hint, without which it is not harmless
	Choices []string  `json:"choices"` // what the caller may answer: once, session, deny; empty: nothing
	// Allows is what session lets run again in the session, and AllowsSeconds for how long; without them the whole tool, until
	// the session begins again.
	Allows        string `json:"allows,omitempty"`
	AllowsSeconds int    `json:"allows_s,omitempty"`
	Outcome
}

// Danger is a piece of a command that is dangerous.
type Danger struct {
	Kind string `json:"kind"`           // pipe, remove, outside, network, root, rights, disk, machine, environment, computed, bomb …
	What string `json:"what,omitempty"` // the piece
	Why  string `json:"why"`            // what it does: "removes folders with all that is in them"
}

// Origin is where a question comes from, and who asked for the call.
type Origin struct {
	Agent         string `json:"agent"`
	Session       string `json:"session"`                 // key
	Title         string `json:"session_title,omitempty"` // left out: the caller does not reach the session
	SessionID     string `json:"session_id"`
	RunID         string `json:"run_id"`
	CallID        string `json:"call_id"`
	Source        string `json:"source"` // the network it was asked from, or local
	Requester     string `json:"requester"`
	RequesterName string `json:"requester_name"`
	AskedBy       string `json:"asked_by"` // id, role and, in quotes, the name of the requester: what to show
	Role          string `json:"role"`     // of the requester when it was asked
}

// Outcome is how a question was answered.
type Outcome struct {
	Decided       *time.Time `json:"decided_at,omitempty"`
	DecidedBy     string     `json:"decided_by,omitempty"`
	DecidedByName string     `json:"decided_by_name,omitempty"`
	Via           string     `json:"via,omitempty"`   // telegram … webchat, api, cli, webhook, command, expiry, message, stop, gateway
	Grant         string     `json:"grant,omitempty"` // once or session
	Reason        string     `json:"reason,omitempty"`
	ExternalRef   string     `json:"external_ref,omitempty"`
}

// Item shows a question as the person sees it who asked for it.
func (a Approval) Item() Item {
	v := Item{ID: string(a.ID), Short: workspace.Short(a.ID), State: string(a.State), Tool: a.Tool, Text: a.Body.Shown,
		Args: control.AsJSON(a.Body.Args), Cwd: a.Body.Cwd, Env: append([]string{}, a.Body.Env...), Sandbox: a.Body.Sandbox,
		Hash: a.Hash, Domain: a.Domain,
		Created: a.Created.UTC(), Expires: a.Expires.UTC(), Choices: []string{}, Dangers: []Danger{}}
	for _, d := range a.Body.Dangers {
		v.Dangers = append(v.Dangers, Danger(d))
	}
	v.Origin = Origin{Agent: string(a.Agent), Session: a.Session, Title: a.Title, SessionID: string(a.SessionID), RunID: string(a.RunID),
		CallID: a.CallID, Source: "local", Requester: string(a.Requester), RequesterName: a.Name, AskedBy: a.AskedBy(),
		Role: string(a.Role)}
	v.Outcome = Outcome{Decided: control.Moment(a.Decided), DecidedBy: string(a.DecidedBy), DecidedByName: a.DeciderName, Via: a.Via,
		Grant: string(a.Grant), Reason: a.Reason, ExternalRef: a.External}
	if k, err := workspace.ParseKey(a.Session); err == nil {
		v.Source = control.SourceOf(k)
	}
	if len(v.Args) == 0 {
		v.Args = json.RawMessage("{}")
	}
	if v.Allows = allows(a.Approval); a.Body.Rule != nil && v.Allows != "" {
		v.AllowsSeconds = int(a.Body.Rule.Lasts().Seconds())
	}
	if a.Mine {
		for _, g := range a.Body.Grants {
			v.Choices = append(v.Choices, string(g))
		}
		v.Choices = append(v.Choices, "deny")
	}
	return v
}

// AllowsIn is what the answer session lets run, and for how long, in words.
func (it Item) AllowsIn() string {
	if it.AllowsSeconds == 0 {
		return cmp.Or(it.Allows, "this tool") + " in this session"
	}
	return it.Allows + " in this session for " + rule.Span(time.Duration(it.AllowsSeconds)*time.Second)
}

// shown is all of it for a terminal: nothing is cut.
func (it Item) shown() spec.Shown {
	s := spec.Shown{Text: "\n" + it.Text, Rows: [][]any{{"approval", it.Short + " (" + it.ID + ")"}, {"state", it.State}, {"tool", it.Tool},
		{"domain", it.Domain}, {"asked by", it.AskedBy}, {"session", control.Called(it.Title, it.Session)}, {"run", it.RunID},
		{"in", it.Cwd}, {"with", strings.Join(it.Env, " ")}, {"sandbox", it.Sandbox}, {"hash", it.Hash}}}
	for _, d := range it.Dangers {
		s.Rows = append(s.Rows, []any{"look twice", "it " + rule.Danger(d).In(it.Text, "")})
	}
	if it.State == string(workspace.ApprovalPending) {
		s.Rows = append(s.Rows, []any{"until", spec.Until(it.Expires)}, []any{"answers", strings.Join(it.Choices, ", ")})
		if slices.Contains(it.Choices, string(workspace.ChooseSession)) {
			s.Rows = append(s.Rows, []any{"session", "allows " + it.AllowsIn()})
		}
	} else {
		decided := strings.TrimSpace(it.DecidedByName + " " + it.Grant + " " + it.Via)
		s.Rows = append(s.Rows, []any{"decided", decided}, []any{"reason", it.Reason})
	}
	s.Rows = append(s.Rows, []any{"reference", it.ExternalRef})
	return s
}
