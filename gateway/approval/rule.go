// The rule: who may decide about a question, and how it is told who did.

package approval

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"parley/gateway/grant"
	"parley/gateway/snapshot"
	"parley/workspace"
)

// People reads who is who. *store.Store does.
type People interface {
	PersonByID(workspace.PersonID) (workspace.Person, error)
	People() ([]workspace.Person, []workspace.Account, error)
}

// Rule says who may decide: it is the only place that does. Safe for concurrent use.
type Rule struct {
	People        People
	Domains       func() map[string]snapshot.Domain // of the configuration in force
	*grant.Grants                                   // what was allowed for sessions
}

// NewRule makes the rule over a store.
func NewRule(st interface { // *store.Store is one
	People
	grant.Store
}, domains func() map[string]snapshot.Domain, now func() time.Time, log *slog.Logger) *Rule {
	r := &Rule{People: st, Domains: domains}
	r.Grants = grant.New(grant.Options{Store: st, Stands: r.Stands, Now: now, Log: log})
	return r
}

// Decides refuses who may not decide about a question, wherever they are: owners decide, or whom its domain names; who
// asked for a domain's call only where the domain says so (T11).
func (r *Rule) Decides(ap workspace.Approval, who workspace.Actor) error {
	no := func(format string, args ...any) error { return workspace.Say(workspace.ErrDenied, format, args...) }
	if who.Person == "" || !who.Role.AtLeast(workspace.Guest) {
		return no("I don't know you.")
	}
	if ap.Domain == "" {
		if !who.Role.AtLeast(workspace.Owner) {
			return no("Only an owner may decide this.")
		}
		return nil
	}
	d, ok := r.Domains()[ap.Domain]
	switch {
	case !ok:
		return no("The domain %s is not configured any more, so that nobody may decide this.", ap.Domain)
	case d.Elsewhere:
		return no("This is decided by the system of %s, not here.", ap.Domain)
	case who.Person == ap.Requester && !d.RequesterMay:
		return no("You asked for it, so that somebody else must decide (domain %s).", ap.Domain)
	case slices.Contains(d.People, who.Person), slices.Contains(d.Roles, who.Role),
		len(d.People)+len(d.Roles) == 0 && who.Role == workspace.Owner:
		return nil
	}
	return no("Only the owner of %s may decide this.", ap.Domain)
}

// DecidesBy is Decides by one surface, which is named as in domains[].owner.surfaces; it is asked for only where a domain
// names some.
func (r *Rule) DecidesBy(ap workspace.Approval, who workspace.Actor, surface func() string) error {
	if err := r.Decides(ap, who); err != nil || ap.Domain == "" {
		return err
	}
	d := r.Domains()[ap.Domain]
	if len(d.Surfaces) == 0 || slices.Contains(d.Surfaces, surface()) {
		return nil
	}
	return workspace.Say(workspace.ErrDenied, "This is decided elsewhere: %s.", strings.Join(d.Surfaces, ", "))
}

// Stands says whether a yes still holds when its call is to run: who gave it may still do so.
func (r *Rule) Stands(ap workspace.Approval) bool {
	if ap.DecidedBy == "" { // a domain's own system
		_, ok := r.Domains()[ap.Domain]
		return ok && ap.Domain != ""
	}
	return r.decides(ap, ap.DecidedBy)
}

// decides says whether a person may decide about a question somewhere.
func (r *Rule) decides(ap workspace.Approval, person workspace.PersonID) bool {
	p, err := r.People.PersonByID(person)
	return err == nil && r.Decides(ap, workspace.Actor{Person: p.ID, Role: p.Role}) == nil
}

// MaxReason is how long the reason of an answer may be, in characters.
const MaxReason = 500

// maxDeciders is how many people are asked directly.
const maxDeciders = 5

// deciders are the people who may decide about a question.
func (r *Rule) deciders(ap workspace.Approval) (list []workspace.PersonID, err error) {
	people, _, err := r.People.People()
	for _, p := range people {
		if len(list) < maxDeciders && r.Decides(ap, workspace.Actor{Person: p.ID, Role: p.Role}) == nil {
			list = append(list, p.ID)
		}
	}
	return list, err
}

// Told is how a question was answered, as half a sentence: by whom, by what way, and how.
func (r *Rule) Told(ap workspace.Approval) string {
	via := ""
	if ap.Via != "" {
		via = " (" + ap.Via + ")"
	}
	switch ap.State {
	case workspace.ApprovalApproved, workspace.ApprovalConsumed:
		how := "once"
		if ap.Grant == workspace.ForSession {
			how = "for this session"
		}
		return fmt.Sprintf("Approved %s by %s%s", how, r.DeciderName(ap), via)
	case workspace.ApprovalDenied:
		return fmt.Sprintf("Denied by %s%s", r.DeciderName(ap), via)
	case workspace.ApprovalExpired:
		return "Nobody answered in time, which is a no"
	case workspace.ApprovalCancelled:
		return "Not asked any more: " + ap.Reason
	}
	return "Not decided yet"
}

// DeciderName is who decided, in words.
func (r *Rule) DeciderName(ap workspace.Approval) string {
	if ap.DecidedBy == "" {
		if ap.Via == viaWebhook || ap.Via == viaCommand {
			return "the system of " + ap.Domain
		}
		return ""
	}
	p, err := r.People.PersonByID(ap.DecidedBy)
	if err != nil {
		return string(ap.DecidedBy)
	}
	return workspace.Who(p.ID, p.Role, p.Name)
}

// TooLate tells who comes too late by whom it was decided, and how; it is workspace.ErrDecided.
func (r *Rule) TooLate(ap workspace.Approval) error {
	return workspace.Say(errors.Join(workspace.ErrDecided, workspace.ErrConflict), "%s", r.Told(ap)+".")
}
