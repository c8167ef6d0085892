package gateway

import (
	"testing"

	"parley/channels"
	"parley/workspace"
)

// T10: who was looked up right before a role was taken away is not remembered with it.
func TestT10_RoleThatWasTakenAwayIsNotRemembered(t *testing.T) {
	t.Parallel()
	p := newPuppet(t, "a")
	g := startPuppets(t, "{dm: open}", "people: [{id: ana, role: owner, accounts: [{channel: a, user: \"7\"}]}]", nil, p)
	p.hear(p.says("7", "1", "hello")) // binds the accounts
	p.next()
	g.people.forget()
	from := channels.Sender{User: "7"}
	who, known, err := g.people.find("puppet", p.Account(), from)
	if err != nil || !known || who.Role != workspace.Owner {
		t.Fatalf("%+v, %v, %v", who, known, err)
	}
	a := account{"puppet", p.Account(), "7"}
	g.people.forget()
	_, cached, age := g.people.cached(a) // somebody looks ana up …
	if cached {
		t.Fatal("forgotten and still known")
	}
	was := who
	if err := g.store.SyncPeople([]workspace.Person{{ID: "ana", Role: workspace.Guest, Name: "Ana"}}); err != nil {
		t.Fatal(err)
	}
	g.people.forget()           // … the role is taken away …
	g.people.learn(a, was, age) // … and the look-up comes to its end
	if who, _, err = g.people.find("puppet", p.Account(), from); err != nil || who.Role != workspace.Guest {
		t.Errorf("ana is %q, %v", who.Role, err)
	}
	stamp := g.people.stamp()
	g.people.forget()
	g.people.learn(account{"puppet", p.Account(), "8"}, workspace.Person{ID: "ben", Role: workspace.Guest}, stamp)
	if _, known, _ := g.people.find("puppet", p.Account(), channels.Sender{User: "8"}); known {
		t.Error("a guest of before is known")
	}
}
