package api

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"parley/gateway/api/wire"
	"parley/gateway/control"
	"parley/gateway/control/approval"
	"parley/workspace"
)

// approvals are questions to people, and their answers.
type approvals struct {
	base
	systems Systems
}

func (a approvals) routes() []route {
	return []route{
		{"POST /v1/approvals/{id}", a.decide, system,
			operation{"approvals", "Answer one; the first answer holds", "", decisionRequest{}, one(200, approval.Item{}), ""}},
	}
}

// decisionRequest answers a question.
type decisionRequest struct {
	Decision string `json:"decision"`         // once, session or deny
	Reason   string `json:"reason,omitempty"` // of a no: the model is told it
	// ExternalRef is what a domain's own system calls it; only that may send it.
	ExternalRef string `json:"external_ref,omitempty"`
}

// decide takes an answer: of a person, or, by the token that it was given for this one question, of a domain's
// own system. Who comes too late is told who decided, and how.
func (a approvals) decide(w http.ResponseWriter, r *http.Request) error {
	var q decisionRequest
	if err := wire.Decode(w, r, &q); err != nil {
		return err
	}
	id := r.PathValue("id")
	var answered approval.Approval
	var err error
	system := scopedCall(r)
	switch {
	case system && q.Decision != "once" && q.Decision != "deny":
		err = wire.Invalid("Say once or deny.")
	case system:
		return a.decideBySystem(w, workspace.ApprovalID(id), q)
	case q.ExternalRef != "":
		err = wire.Invalid("external_ref belongs to a domain's own system.")
	default:
		answered, err = approval.Decide.Call(r.Context(), a.control.Approvals, a.call(r),
			approval.DecideIn{ID: id, Decision: workspace.Choice(q.Decision), Reason: q.Reason})
	}
	if errors.Is(err, workspace.ErrDecided) {
		p := decidedBefore(err)
		if now, readErr := approval.Show.Call(r.Context(), a.control.Approvals, a.call(r), control.ByID{ID: id}); readErr == nil {
			p.Approval = now
		}
		return p
	}
	if err == nil {
		wire.Reply(w, http.StatusOK, answered.Item())
	}
	return err
}

// decideBySystem takes the answer of a domain's own system, which proved itself by the token of this one question.
func (a approvals) decideBySystem(w http.ResponseWriter, id workspace.ApprovalID, q decisionRequest) error {
	ap, err := a.systems.Callback(id, q.Decision == "once", q.Reason, q.ExternalRef)
	if errors.Is(err, workspace.ErrDecided) {
		return decidedBefore(err)
	}
	if err == nil {
		wire.Reply(w, http.StatusOK, control.Done{Status: string(ap.State)})
	}
	return err
}

func decidedBefore(err error) *wire.Problem {
	p := wire.ProblemOf(err)
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

// bySystem marks a request that a domain's own system sends, by the token of the one question that it answers.
func bySystem(systems Systems, r *http.Request) (*http.Request, bool) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if systems == nil || !strings.EqualFold(scheme, "Bearer") || !systems.Scoped(r.PathValue("id"), strings.TrimSpace(token)) {
		return r, false
	}
	return r.WithContext(context.WithValue(r.Context(), scopedKey{}, true)), true
}
