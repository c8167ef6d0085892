package intake

import (
	"testing"

	"parley/channels"
	"parley/gateway/transport"
	"parley/workspace"
	"parley/workspace/store"
)

// T10: who was looked up right before a role was taken away is not remembered with it.
func TestT10_RoleThatWasTakenAwayIsNotRemembered(t *testing.T) {
	t.Parallel()
	st, err := store.Open(t.Context(), store.Options{Dir: t.TempDir(), BallastBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	d := NewDirectory(st, transport.NewMoves(st))
	people := func(role workspace.Role) {
		t.Helper()
		if err := st.SyncPeople([]workspace.Person{{ID: "ana", Role: role, Name: "Ana"}}); err != nil {
			t.Fatal(err)
		}
	}
	people(workspace.Owner)
	at := account{"mem", "bot", "7"}
	ana := workspace.Account{Network: at.network, Account: at.account, User: at.user, Person: "ana"}
	if err := st.SyncAccounts(at.network, at.account, []workspace.Account{ana}); err != nil {
		t.Fatal(err)
	}
	from := channels.Sender{User: at.user}
	who, known, err := d.people.find(at.network, at.account, from)
	if err != nil || !known || who.Role != workspace.Owner {
		t.Fatalf("%+v, %v, %v", who, known, err)
	}
	d.ForgetPeople()
	_, cached, age := d.people.cached(at) // somebody looks ana up …
	if cached {
		t.Fatal("forgotten and still known")
	}
	was := who
	people(workspace.Guest)
	d.ForgetPeople()             // … the role is taken away …
	d.people.learn(at, was, age) // … and the look-up comes to its end
	if who, _, err = d.people.find(at.network, at.account, from); err != nil || who.Role != workspace.Guest {
		t.Errorf("ana is %q, %v", who.Role, err)
	}
	stamp := d.people.stamp()
	d.ForgetPeople()
	d.people.learn(account{at.network, at.account, "8"}, workspace.Person{ID: "ben", Role: workspace.Guest}, stamp)
	if _, known, _ := d.people.find(at.network, at.account, channels.Sender{User: "8"}); known {
		t.Error("a guest of before is known")
	}
}
