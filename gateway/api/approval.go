package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"parley/gateway/control"
	"parley/gateway/spec"
	"parley/workspace"
)

// approvalView is a question to people about one exact tool call.
type approvalView struct {
	ID            string          `json:"id"`
	Short         string          `json:"short"`
	State         string          `json:"state"` // pending, approved, consumed, denied, expired, cancelled, unknown
	Tool          string          `json:"tool"`
	Text          string          `json:"text"` // the whole of what would be done
	Args          json.RawMessage `json:"args"`
	Cwd           string          `json:"cwd,omitempty"`
	Env           []string        `json:"env"`
	Sandbox       string          `json:"sandbox,omitempty"`
	Hash          string          `json:"hash"`
	Domain        string          `json:"domain,omitempty"` // that owns it; left out: owners decide
	Agent         string          `json:"agent"`
	Session       string          `json:"session"` // key
	SessionID     string          `json:"session_id"`
	RunID         string          `json:"run_id"`
	CallID        string          `json:"call_id"`
	Source        string          `json:"source"` // the network it was asked from, or local
	Requester     string          `json:"requester"`
	RequesterName string          `json:"requester_name"`
	AskedBy       string          `json:"asked_by"` // id, role and, in quotes, the name of the requester: what to show
	Role          string          `json:"role"`     // of the requester when it was asked
	Created       time.Time       `json:"created"`
	Expires       time.Time       `json:"expires_at"`
	Choices       []string        `json:"choices"` // what the caller may answer: once, session, deny; empty: nothing
	Decided       *time.Time      `json:"decided_at,omitempty"`
	DecidedBy     string          `json:"decided_by,omitempty"`
	DecidedByName string          `json:"decided_by_name,omitempty"`
	Via           string          `json:"via,omitempty"`   // telegram … webchat, api, cli, webhook, command, expiry, message, stop, gateway
	Grant         string          `json:"grant,omitempty"` // once or session
	Reason        string          `json:"reason,omitempty"`
	ExternalRef   string          `json:"external_ref,omitempty"`
}

func approvalOf(a control.Approval) approvalView {
	v := approvalView{ID: string(a.ID), Short: workspace.Short(a.ID), State: string(a.State), Tool: a.Tool, Text: a.Body.Shown, Args: valid(a.Body.Args), Cwd: a.Body.Cwd,
		Env: append([]string{}, a.Body.Env...), Sandbox: a.Body.Sandbox, Hash: a.Hash, Domain: a.Domain, Agent: string(a.Agent), Session: a.Session, SessionID: string(a.SessionID),
		RunID: string(a.RunID), CallID: a.CallID, Source: "local", Requester: string(a.Requester), RequesterName: a.Name, AskedBy: a.AskedBy(), Role: string(a.Role), Created: a.Created.UTC(),
		Expires: a.Expires.UTC(), Choices: []string{}, Decided: control.Moment(a.Decided),
		DecidedBy: string(a.DecidedBy), DecidedByName: a.DeciderName, Via: a.Via, Grant: string(a.Grant),
		Reason: a.Reason, ExternalRef: a.External}
	if k, err := workspace.ParseKey(a.Session); err == nil {
		v.Source = control.SourceOf(k)
	}
	if len(v.Args) == 0 {
		v.Args = json.RawMessage("{}")
	}
	if a.Mine {
		for _, g := range a.Body.Grants {
			v.Choices = append(v.Choices, string(g))
		}
		v.Choices = append(v.Choices, "deny")
	}
	return v
}

// decisionRequest answers a question.
type decisionRequest struct {
	Decision string `json:"decision"`         // once, session or deny
	Reason   string `json:"reason,omitempty"` // of a no: the model is told it
	// ExternalRef is what a domain's own system calls it; only that may send it.
	ExternalRef string `json:"external_ref,omitempty"`
}

func (s *server) listApprovals(w http.ResponseWriter, r *http.Request) error {
	p, err := pageOf(r)
	if err != nil {
		return err
	}
	found, next, err := s.opt.Control.Approvals(r.Context(), s.call(r), workspace.ApprovalState(r.URL.Query().Get("state")), workspace.ApprovalID(p.after), p.limit)
	if err != nil {
		return err
	}
	l := spec.List[approvalView]{Items: []approvalView{}, Next: optional(next)}
	for _, one := range found {
		l.Items = append(l.Items, approvalOf(one))
	}
	reply(w, http.StatusOK, l)
	return nil
}

func (s *server) getApproval(w http.ResponseWriter, r *http.Request) error {
	a, err := s.opt.Control.Approval(r.Context(), s.call(r), r.PathValue("id"))
	if err == nil {
		reply(w, http.StatusOK, approvalOf(a))
	}
	return err
}

// decideApproval takes an answer: of a person, or, by the token that it was given for this one question, of a domain's
// own system. Who comes too late is told who decided, and how.
func (s *server) decideApproval(w http.ResponseWriter, r *http.Request) error {
	var q decisionRequest
	if err := decode(w, r, &q); err != nil {
		return err
	}
	id := r.PathValue("id")
	var a control.Approval
	var err error
	system := scopedCall(r)
	switch {
	case system && q.Decision != "once" && q.Decision != "deny":
		err = fault(http.StatusBadRequest, "invalid", "Say once or deny.")
	case system:
		return s.decideBySystem(w, workspace.ApprovalID(id), q)
	case q.ExternalRef != "":
		err = fault(http.StatusBadRequest, "invalid", "external_ref belongs to a domain's own system.")
	default:
		a, err = s.opt.Control.Approve(r.Context(), s.call(r), control.Decision{Which: id, Choice: workspace.Choice(q.Decision), Reason: q.Reason})
	}
	if errors.Is(err, workspace.ErrDecided) {
		p := decidedBefore(err)
		if now, readErr := s.opt.Control.Approval(r.Context(), s.call(r), id); readErr == nil {
			v := approvalOf(now)
			p.Approval = &v
		}
		return p
	}
	if err == nil {
		reply(w, http.StatusOK, approvalOf(a))
	}
	return err
}

// decideBySystem takes the answer of a domain's own system, which proved itself by the token of this one question.
func (s *server) decideBySystem(w http.ResponseWriter, id workspace.ApprovalID, q decisionRequest) error {
	ap, err := s.opt.Systems.Callback(id, q.Decision == "once", q.Reason, q.ExternalRef)
	if errors.Is(err, workspace.ErrDecided) {
		return decidedBefore(err)
	}
	if err == nil {
		reply(w, http.StatusOK, control.Done{Status: string(ap.State)})
	}
	return err
}

func decidedBefore(err error) *problem {
	p := problemOf(err)
	p.Type = "urn:parley:error:decided"
	return p
}

// Systems is what domains' own systems answer with: Scoped says that a token lets its bearer answer this one question, and
// Callback takes the answer; workspace.ErrDecided means that it comes too late.
type Systems interface {
	Scoped(id, token string) bool
	Callback(id workspace.ApprovalID, yes bool, reason, external string) (workspace.Approval, error)
}

// scopedKey marks a request that was let in by the token of one question.
type scopedKey struct{}

func scopedCall(r *http.Request) bool { return r.Context().Value(scopedKey{}) != nil }

// letIn checks who asks. Only the answer to a question may come with that question's own token.
func (s *server) letIn(rt route, r *http.Request) (*http.Request, error) {
	if rt.pattern == decidePattern && s.opt.Systems != nil {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if strings.EqualFold(scheme, "Bearer") && s.opt.Systems.Scoped(r.PathValue("id"), strings.TrimSpace(token)) {
			return r.WithContext(context.WithValue(r.Context(), scopedKey{}, true)), nil
		}
	}
	return r, s.guard.allow(r)
}

const decidePattern = "POST /v1/approvals/{id}"

func approvalOperations() map[string]operation {
	return map[string]operation{
		"GET /v1/approvals":      {"approvals", "List questions to people, newest first", "state=approvals limit after", nil, one(200, spec.List[approvalView]{}), ""},
		"GET /v1/approvals/{id}": {"approvals", "Read one whole", "", nil, one(200, approvalView{}), ""},
		decidePattern:            {"approvals", "Answer one; the first answer holds", "", decisionRequest{}, one(200, approvalView{}), ""},
	}
}

// permissionData is what an event tells of a question.
type permissionData struct {
	ID        string     `json:"id"`
	Short     string     `json:"short"`
	CallID    string     `json:"call_id"`
	Tool      string     `json:"tool"`
	Domain    string     `json:"domain,omitempty"`
	State     string     `json:"state"`
	Text      string     `json:"text,omitempty"` // of a question: the whole of it
	Grants    []string   `json:"grants,omitempty"`
	Expires   *time.Time `json:"expires_at,omitempty"`
	DecidedBy string     `json:"decided_by,omitempty"`
	Via       string     `json:"via,omitempty"`
	Grant     string     `json:"grant,omitempty"`
	Reason    string     `json:"reason,omitempty"`
}

func permission(e workspace.Entry) permissionData {
	a := e.Body.Approval
	v := permissionData{ID: string(a.ID), Short: workspace.Short(a.ID), CallID: a.CallID, Tool: a.Tool, Domain: a.Domain, State: string(a.State), Text: e.Body.Plain(),
		Expires: control.Moment(a.Expires), DecidedBy: string(a.By), Via: a.Via, Grant: string(a.Grant), Reason: e.Body.Reason}
	for _, g := range a.Grants {
		v.Grants = append(v.Grants, string(g))
	}
	return v
}

// holdData is what an event tells of a run that pauses or goes on.
type holdData struct {
	By string `json:"by,omitempty"`
}
