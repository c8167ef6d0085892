package store_test

import (
	"errors"
	"testing"
	"time"

	"parley/channels"
	"parley/workspace"
	"parley/workspace/store"
)

// Speaking in an allowed group makes a record and no more. Only an owner's approval of that very account, or the
// configuration, makes its person known to the gate of direct messages.
func TestT09_OnlyApprovalOrConfigurationMakesAPersonKnown(t *testing.T) {
	t.Parallel()
	s := open(t)
	find := func(account, user string) workspace.Person {
		t.Helper()
		p, err := s.Person("telegram", channels.AccountID(account), channels.UserID(user))
		if err != nil && !errors.Is(err, workspace.ErrNotFound) {
			t.Fatal(err)
		}
		return p
	}
	room := channels.Address{Network: "telegram", Account: "42", Kind: channels.Group, Peer: "-100"}
	_, err := s.Accept(store.Arrival{
		Input: workspace.Input{ID: workspace.InputID(s.IDs().New()), Source: "telegram", Account: "42", Key: "m:-100:1", Kind: channels.KindMessage,
			Person: "g1", Role: workspace.Guest, Mode: workspace.ModeNote, State: workspace.InputContext, Text: "hello"},
		Room: room, Guest: &workspace.Account{Network: "telegram", Account: "42", User: "7", Person: "g1"},
		Key: workspace.Key{Agent: "assistant", Scope: workspace.ScopeAddress, Network: "telegram", Account: "42", Kind: channels.Group, Peer: "-100"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if p := find("42", "7"); p.ID != "g1" || p.Role != workspace.Guest || p.Known() {
		t.Errorf("after a word in a group: %+v", p)
	}

	now := time.Now()
	ask := workspace.Pairing{ID: "01PAIRING", Channel: "tg", Network: "telegram", Account: "42", User: "7", State: workspace.PairingOpen, Requested: now}
	if err := s.PutPairings(ask); err != nil {
		t.Fatal(err)
	}
	if p := find("42", "7"); p.Known() {
		t.Errorf("after asking: %+v", p)
	}
	yes := ask
	yes.State, yes.Decided, yes.DecidedBy = workspace.PairingApproved, now, "ana"
	if _, _, err := s.DecidePairing(yes, workspace.Guest, nil); err != nil {
		t.Fatal(err)
	}
	if p := find("42", "7"); p.ID != "g1" || p.Role != workspace.Guest || !p.Known() {
		t.Errorf("after the approval: %+v", p)
	}
	if p := find("43", "7"); p.Known() {
		t.Errorf("the same user to another account: %+v", p)
	}

	ben := workspace.Account{Network: "telegram", Account: "42", User: "8", Person: "ben"}
	if err := s.SyncPeople([]workspace.Person{{ID: "ben", Role: workspace.Guest}}); err != nil {
		t.Fatal(err)
	}
	if err := s.SyncAccounts("telegram", "42", []workspace.Account{ben}); err != nil {
		t.Fatal(err)
	}
	if p := find("42", "8"); !p.Known() {
		t.Errorf("configured as a guest: %+v", p)
	}
	if err := s.SyncPeople(nil); err != nil {
		t.Fatal(err)
	}
	if p := find("42", "8"); p.Known() {
		t.Errorf("no longer configured: %+v", p)
	}
}
