package grant

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"parley/workspace"
	"parley/workspace/rule"
)

// people are known by their ids.
type people map[workspace.PersonID]workspace.Role

func (p people) decides(ap workspace.Approval) bool { return p[ap.DecidedBy] == workspace.Owner }

// grants is a store in which some approvals stand.
type grants struct {
	Store
	list []workspace.Approval
}

func (g *grants) SessionGrants(s workspace.SessionID, _ string, _ workspace.AgentID,
	_ workspace.PersonID) (list []workspace.Approval, _ error) {
	for _, ap := range g.list {
		if ap.SessionID == s {
			list = append(list, ap)
		}
	}
	return list, nil
}

func grant(id workspace.ApprovalID, by workspace.PersonID, at time.Time, r *rule.Command) workspace.Approval {
	return workspace.Approval{ID: id, SessionID: "S", Tool: "exec", Agent: "a", Requester: "ben", State: workspace.ApprovalConsumed,
		Grant: workspace.ForSession, Decided: at, DecidedBy: by, Body: workspace.ApprovalBody{Rule: r}}
}

// T11: a rule for a session holds for eight hours at most, by the wall clock over a restart and by the steady one within a
// process, whatever the wall clock is set to; only as long as who gave it is an owner, and until it is taken back.
func TestT11_ARuleForASessionIsOverInItsTime(t *testing.T) {
	t.Parallel()
	ls := &rule.Command{Program: "/usr/bin/ls", Rest: true, For: rule.Most}
	for name, c := range map[string]struct {
		jump time.Duration // of the wall clock, after an hour
		ends time.Duration // since it was given
	}{
		"no jump":           {0, 8 * time.Hour},
		"set back":          {-20 * time.Hour, 8 * time.Hour},
		"set forward":       {4 * time.Hour, 4 * time.Hour},
		"set forward, over": {24 * time.Hour, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				known := people{"ana": workspace.Owner}
				wall := time.Now
				began := time.Now()
				st := &grants{list: []workspace.Approval{grant("A", "ana", began, ls)}}
				g := New(Options{Store: st, Stands: known.decides, Now: func() time.Time { return wall() }, Log: slog.New(slog.DiscardHandler)})
				holds := func() bool { return len(g.Commands("S", "exec", "a", "ben")) == 1 }
				if !holds() {
					t.Fatal("it does not hold at once")
				}
				<-time.After(time.Hour)
				wall = func() time.Time { return time.Now().Add(c.jump) }
				if c.ends > time.Hour {
					<-time.After(c.ends - time.Hour - time.Second)
					if !holds() {
						t.Error("it is over too soon")
					}
					<-time.After(time.Second)
				}
				if holds() {
					t.Error("it holds for longer than it may")
				}
				wall = func() time.Time { return began }
				if holds() {
					t.Error("what was over holds again")
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		known := people{"ana": workspace.Owner, "ben": workspace.Member}
		long := *ls
		long.For = 1000 * time.Hour
		given := time.Now()
		revoked := grant("C", "ana", given, ls)
		revoked.Revoked = given
		denied := grant("D", "ana", given, ls)
		denied.State = workspace.ApprovalDenied
		once := grant("E", "ana", given, ls)
		once.Grant = workspace.Once
		domains := grant("F", "ana", given, ls)
		domains.Domain = "pay"
		early := grant("H", "ana", given, ls)
		early.State = workspace.ApprovalApproved // its own call has not begun
		st := &grants{list: []workspace.Approval{early, grant("A", "ana", given, &long), grant("B", "ben", given, ls), revoked, denied,
			once, domains, grant("G", "ana", given, nil)}}
		g := New(Options{Store: st, Stands: known.decides, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
		if ok, err := g.Tool("S", "exec", "a", "ben"); !ok || err != nil { // by G, which names no rule
			t.Errorf("the whole tool: %v %v", ok, err)
		}
		if got := g.Commands("S", "exec", "a", "ben"); len(got) != 1 || got[0].Approval != "A" {
			t.Errorf("what holds: %+v", got)
		}
		known["ana"] = workspace.Member
		if got := g.Commands("S", "exec", "a", "ben"); len(got) != 0 {
			t.Errorf("given by who is no owner any more: %+v", got)
		}
		known["ana"] = workspace.Owner
		<-time.After(rule.Most)
		if got := g.Commands("S", "exec", "a", "ben"); len(got) != 0 {
			t.Errorf("for longer than it may: %+v", got)
		}
	})
}
