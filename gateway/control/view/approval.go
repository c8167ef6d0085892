package view

import (
	"time"

	"parley/gateway/control"
	"parley/workspace"
)

// Permission is what an event tells of a question.
type Permission struct {
	ID        string     `json:"id"`
	Short     string     `json:"short"`
	CallID    string     `json:"call_id"`
	Tool      string     `json:"tool"`
	Domain    string     `json:"domain,omitempty"`
	State     string     `json:"state"`
	Text      string     `json:"text,omitempty"` // of a question: the whole of it
	Grants    []string   `json:"grants,omitempty"`
	Allows    string     `json:"allows,omitempty"` // of a command: what the answer session lets run again
	Expires   *time.Time `json:"expires_at,omitempty"`
	DecidedBy string     `json:"decided_by,omitempty"`
	Via       string     `json:"via,omitempty"`
	Grant     string     `json:"grant,omitempty"`
	Reason    string     `json:"reason,omitempty"`
}

func permission(e workspace.Entry) Permission {
	a := e.Body.Approval
	v := Permission{ID: string(a.ID), Short: workspace.Short(a.ID), CallID: a.CallID, Tool: a.Tool, Domain: a.Domain,
		State: string(a.State), Text: e.Body.Plain(),
		Expires: control.Moment(a.Expires), DecidedBy: string(a.By), Via: a.Via, Grant: string(a.Grant),
		Allows: a.Allows, Reason: e.Body.Reason}
	for _, g := range a.Grants {
		v.Grants = append(v.Grants, string(g))
	}
	return v
}

// Hold is what an event tells of a run that pauses or goes on.
type Hold struct {
	By string `json:"by,omitempty"`
}
