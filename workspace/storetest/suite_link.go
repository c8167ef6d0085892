package storetest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"parley/channels"
	"parley/workspace"
	"parley/workspace/store"
)

// linker is some people, each with one user of their own, and what a link does to them.
type linker struct {
	t *testing.T
	s *store.Store
}

func user(network, user string) workspace.Account {
	return workspace.Account{Network: channels.Network(network), Account: "42", User: channels.UserID(user)}
}

// known makes a user a person of the role, as an operator's approval does.
func (l linker) known(network, id string, role workspace.Role) workspace.PersonID {
	l.t.Helper()
	p := workspace.Pairing{ID: "pair-" + network + id, Channel: network, Network: channels.Network(network), Account: "42", User: channels.UserID(id),
		State: workspace.PairingOpen, Requested: time.UnixMilli(1000)}
	if err := l.s.PutPairings(p); err != nil {
		l.t.Fatal(err)
	}
	p.State, p.Decided = workspace.PairingApproved, time.UnixMilli(2000)
	acc, _, err := l.s.DecidePairing(p, role, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	return acc.Person
}

func (l linker) who(network, id string) workspace.Person {
	l.t.Helper()
	a := user(network, id)
	p, err := l.s.Person(a.Network, a.Account, a.User)
	if err != nil {
		l.t.Fatal(err)
	}
	return p
}

func (l linker) ask(p workspace.PersonID, hash string) {
	l.t.Helper()
	if _, err := l.s.RunCommand(store.Command{Changes: []store.Change{store.AskLink{Person: p, Network: "telegram", CodeHash: hash}}}); err != nil {
		l.t.Fatal(err)
	}
}

func (l linker) give(p workspace.PersonID, hash string, life time.Duration) workspace.Joined {
	l.t.Helper()
	did, err := l.s.RunCommand(store.Command{Changes: []store.Change{store.GiveLink{
		Person: p, CodeHash: hash, Life: life, Tries: 5, Notice: "linked", Audit: workspace.AuditRow{Kind: workspace.AuditPeopleLinked, Actor: p},
	}}})
	if err != nil {
		l.t.Fatal(err)
	}
	return did.Joined
}

// linkOnce: a code joins two users into one person, once, and no account's role changes by it.
func linkOnce(t *testing.T, s *store.Store) {
	l := linker{t, s}
	ana, bob := l.known("telegram", "1", workspace.Owner), l.known("slack", "2", workspace.Guest)
	l.ask(ana, "code")
	if j := l.give(bob, "code", 0); j.Outcome != workspace.LinkWrong {
		t.Errorf("a code past its life: %+v", j)
	}
	if j := l.give(ana, "code", time.Minute); j.Outcome != workspace.LinkSame {
		t.Errorf("one's own code: %+v", j)
	}
	l.ask(ana, "first")
	l.ask(ana, "second")
	if j := l.give(bob, "first", time.Minute); j.Outcome != workspace.LinkWrong {
		t.Errorf("a code that was replaced: %+v", j)
	}
	if j := l.give(bob, "second", time.Minute); j != (workspace.Joined{Outcome: workspace.Linked, Into: ana, From: bob, With: "telegram"}) {
		t.Errorf("joined: %+v", j)
	}
	if j := l.give(l.known("discord", "3", workspace.Guest), "second", time.Minute); j.Outcome != workspace.LinkWrong {
		t.Errorf("a code that was used: %+v", j)
	}
	if p := l.who("slack", "2"); p.ID != ana || p.Role != workspace.Guest {
		t.Errorf("the guest is %+v", p)
	}
	if p := l.who("telegram", "1"); p.ID != ana || p.Role != workspace.Owner {
		t.Errorf("the owner is %+v", p)
	}
	if list, err := s.Humans("", 10); err != nil || len(list) != 2 || len(list[0].Accounts)+len(list[1].Accounts) != 3 {
		t.Errorf("people: %+v %v", list, err)
	}
	rows, err := s.AuditAfter(-1, 10)
	if err != nil || len(rows) != 1 {
		t.Fatalf("audit: %+v %v", rows, err)
	}
	if row, err := rows[0].Row(); err != nil || row.Kind != workspace.AuditPeopleLinked || row.What["into"] != string(ana) || row.What["from"] != string(bob) {
		t.Errorf("audit: %+v %v", row, err)
	}
}

// linkTries: five wrong codes end the right one for who gave them, and for nobody else.
func linkTries(t *testing.T, s *store.Store) {
	l := linker{t, s}
	ana, eve, bob := l.known("telegram", "1", workspace.Guest), l.known("slack", "2", workspace.Guest), l.known("slack", "3", workspace.Guest)
	l.ask(ana, "right")
	for i := range 5 {
		if j := l.give(eve, fmt.Sprint("wrong", i), time.Minute); j.Outcome != workspace.LinkWrong {
			t.Errorf("wrong code %d: %+v", i, j)
		}
	}
	if j := l.give(eve, "right", time.Minute); j.Outcome != workspace.LinkTries {
		t.Errorf("the right code after five wrong ones: %+v", j)
	}
	if j := l.give(bob, "", time.Minute); j.Outcome != workspace.LinkWrong {
		t.Errorf("no code: %+v", j)
	}
	if j := l.give(bob, "right", time.Minute); j.Outcome != workspace.Linked {
		t.Errorf("somebody else's try: %+v", j)
	}
}

// linkRoles: whoever is joined with whom, in whatever order, no account speaks with another role than before, and a later
// approval is for its account alone.
func linkRoles(t *testing.T, s *store.Store) {
	l := linker{t, s}
	if err := s.SyncPeople([]workspace.Person{{ID: "named", Role: workspace.Member}, {ID: "other", Role: workspace.Guest}}); err != nil {
		t.Fatal(err)
	}
	named, other := user("webchat", "n"), user("webchat", "o")
	named.Person, other.Person = "named", "other"
	if err := s.SyncAccounts("webchat", "42", []workspace.Account{named, other}); err != nil {
		t.Fatal(err)
	}
	roles := map[string]workspace.Role{"g": workspace.Guest, "g2": workspace.Guest, "m": workspace.Member, "o": workspace.Owner}
	ids := map[string]workspace.PersonID{}
	for id, role := range roles {
		ids[id] = l.known("telegram", id, role)
	}
	for i, step := range []struct {
		ask, give workspace.PersonID
		want      workspace.LinkOutcome
	}{
		{"named", "other", workspace.LinkConfigured},
		{ids["o"], "named", workspace.LinkConfigured}, // it would take the owner's role
		{ids["g"], "named", workspace.Linked},
		{ids["g2"], ids["m"], workspace.Linked},
		{ids["m"], ids["g"], workspace.Linked}, // both have been joined before, or into
		{"named", ids["g2"], workspace.LinkSame},
	} {
		code := fmt.Sprint("code", i)
		l.ask(step.ask, code)
		if j := l.give(step.give, code, time.Minute); j.Outcome != step.want {
			t.Errorf("step %d: %+v, want %s", i, j, step.want)
		}
		for id, role := range roles {
			if p := l.who("telegram", id); p.Role != role {
				t.Errorf("step %d: %s speaks as %s, was %s", i, id, p.Role, role)
			}
		}
		if p := l.who("webchat", "n"); p.Role != workspace.Member {
			t.Errorf("step %d: the named one speaks as %s", i, p.Role)
		}
	}
	if err := s.SyncPeople([]workspace.Person{{ID: "named", Role: workspace.Owner}}); err != nil {
		t.Fatal(err)
	}
	if p := l.who("telegram", "g"); p.ID != "named" || p.Role != workspace.Guest {
		t.Errorf("a guest who was joined with an owner of the configuration is %+v", p)
	}
	if err := s.SyncAccounts("telegram", "42", []workspace.Account{{User: "g", Person: "other"}}); err != nil {
		t.Fatal(err)
	}
	if p := l.who("telegram", "g"); p.ID != "other" {
		t.Errorf("the configuration names the account as another's, and it is %+v", p)
	}
}

// approvedAfterLink: an approval of one account says nothing of those that it was linked with.
func approvedAfterLink(t *testing.T, s *store.Store) {
	l := linker{t, s}
	one, two := l.known("telegram", "1", workspace.Guest), l.known("slack", "2", workspace.Guest)
	l.ask(one, "code")
	if j := l.give(two, "code", time.Minute); j.Outcome != workspace.Linked {
		t.Fatalf("%+v", j)
	}
	again := workspace.Pairing{ID: "again", Channel: "slack", Network: "slack", Account: "42", User: "2", State: workspace.PairingOpen, Requested: time.UnixMilli(1)}
	if err := s.PutPairings(again); err != nil {
		t.Fatal(err)
	}
	again.State = workspace.PairingApproved
	if _, _, err := s.DecidePairing(again, workspace.Owner, nil); err != nil {
		t.Fatal(err)
	}
	if p := l.who("slack", "2"); p.Role != workspace.Owner || p.ID != one {
		t.Errorf("the approved account is %+v", p)
	}
	if p := l.who("telegram", "1"); p.Role != workspace.Guest {
		t.Errorf("the other account is %+v", p)
	}
}

// linkedAtOnce: one code that two give at the same time joins one of them.
func linkedAtOnce(t *testing.T, s *store.Store) {
	l := linker{t, s}
	ana := l.known("telegram", "1", workspace.Guest)
	var givers []workspace.PersonID
	for i := range 6 {
		givers = append(givers, l.known("slack", fmt.Sprint(i), workspace.Guest))
	}
	l.ask(ana, "code")
	var wg sync.WaitGroup
	got := make([]workspace.Joined, len(givers))
	for i, g := range givers {
		wg.Go(func() { got[i] = l.give(g, "code", time.Minute) })
	}
	wg.Wait()
	done := 0
	for _, j := range got {
		if j.Outcome == workspace.Linked {
			done++
		}
	}
	if list, err := s.Humans("", 20); done != 1 || err != nil || len(list) != len(givers) {
		t.Errorf("%d were joined, %d people are left (%v)", done, len(list), err)
	}
	// Two who give each other's codes at once are joined once.
	a, b := givers[0], givers[1]
	l.ask(a, "a")
	l.ask(b, "b")
	wg.Go(func() { l.give(b, "a", time.Minute) })
	wg.Go(func() { l.give(a, "b", time.Minute) })
	wg.Wait()
	if one, two := l.who("slack", "0"), l.who("slack", "1"); one.ID != two.ID {
		t.Errorf("they are %s and %s", one.ID, two.ID)
	}
}
