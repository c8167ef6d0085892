// Package grant is what runs in a session without a question, since somebody allowed it there before. The approvals of the
// record are the grants; here is which of them hold.
//
// It owns no goroutine.
package grant

import (
	"log/slog"
	"slices"
	"sync"
	"time"

	"parley/workspace"
	"parley/workspace/rule"
)

// Store reads grants. *store.Store does.
type Store interface {
	Grants() ([]workspace.Approval, error)
	SessionGrants(s workspace.SessionID, tool string, agent workspace.AgentID, requester workspace.PersonID) ([]workspace.Approval, error)
}

// Options of Grants; all of them are needed.
type Options struct {
	Store  Store
	Stands func(workspace.Approval) bool // who gave it may still do so
	Now    func() time.Time
	Log    *slog.Logger
}

// Grants are those of all sessions. Safe for concurrent use.
type Grants struct {
	opt  Options
	mu   sync.Mutex
	ends map[workspace.ApprovalID]time.Time // of rules, by the machine's steady clock, from when each was seen first
}

// New makes them; it does no IO.
func New(o Options) *Grants { return &Grants{opt: o, ends: map[workspace.ApprovalID]time.Time{}} }

// Holds says whether a grant for a session holds: nobody took it back, it is not over, and who gave it may still do so. A rule
// for commands begins with the command that was asked about, which uses its approval up.
func (g *Grants) Holds(ap workspace.Approval) bool {
	given := ap.State == workspace.ApprovalConsumed || ap.State == workspace.ApprovalApproved && ap.Body.Rule == nil
	return given && ap.Grant == workspace.ForSession && ap.Domain == "" && ap.Revoked.IsZero() && !g.Over(ap) && g.opt.Stands(ap)
}

// Commands are the rules for commands that hold in a generation, for an agent and whom it works for. Policy is the only one who
// decides by them.
func (g *Grants) Commands(s workspace.SessionID, tool string, agent workspace.AgentID, who workspace.PersonID) (rules []rule.Granted) {
	list, err := g.opt.Store.SessionGrants(s, tool, agent, who)
	if err != nil {
		g.opt.Log.Error("grants of a session not read, so that each command asks", "session", s, "err", err)
		return nil
	}
	for _, ap := range list {
		if ap.Body.Rule != nil && g.Holds(ap) {
			rules = append(rules, rule.Granted{Approval: string(ap.ID), Command: *ap.Body.Rule})
		}
	}
	return rules
}

// Standing counts the grants of all sessions that hold.
func (g *Grants) Standing() (n int) {
	list, err := g.opt.Store.Grants()
	if err != nil {
		g.opt.Log.Error("grants not counted", "err", err)
	}
	for _, ap := range list {
		if g.Holds(ap) {
			n++
		}
	}
	return n
}

// Tool says whether a tool may be used for the rest of the session. Commands never may: policy judges each by its rule.
func (g *Grants) Tool(s workspace.SessionID, tool string, agent workspace.AgentID, who workspace.PersonID) (bool, error) {
	list, err := g.opt.Store.SessionGrants(s, tool, agent, who)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(list, func(ap workspace.Approval) bool { return ap.Body.Rule == nil && g.Holds(ap) }), nil
}

// most is how many rules are remembered: what is forgotten is reckoned by the wall clock once more.
const most = 10_000

// Over says that a rule's time is over, by the wall clock or the steady one: setting the wall clock back makes none longer, and
// what was over does not hold again.
func (g *Grants) Over(ap workspace.Approval) bool {
	last := ap.Body.Rule.Until(ap.Decided)
	if last.IsZero() {
		return false
	}
	now := g.opt.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	end, known := g.ends[ap.ID]
	if !known {
		if len(g.ends) >= most {
			clear(g.ends)
		}
		end = time.Now().Add(min(last.Sub(now), last.Sub(ap.Decided)))
	}
	if !now.Before(last) {
		end = time.Time{}
	}
	g.ends[ap.ID] = end
	return !time.Now().Before(end)
}
