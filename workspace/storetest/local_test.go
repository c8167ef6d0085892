package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"parley/channels"
	"parley/workspace"
	"parley/workspace/store"
)

// local is a chat of person local with a page of the gateway's own.
func local(n int) Chat {
	key := workspace.Key{Agent: "assistant", Scope: workspace.ScopeLocal, Local: fmt.Sprint("main", n)}
	return Chat{Addr: channels.Address{Network: "page", Account: workspace.LocalOwner, Kind: channels.DM, Peer: channels.PeerID(key.String())},
		Person: workspace.LocalOwner, Key: key}
}

// verified has the database read whole after a test.
func verified(test func(*testing.T, *store.Store)) func(*testing.T, *Place) {
	return func(t *testing.T, p *Place) {
		s := p.Open(t)
		test(t, s)
		if err := s.Verify(t.Context()); err != nil {
			t.Errorf("verify: %v", err)
		}
	}
}

// The first owner who is made has all that was local's, local is them, and nothing of it is done twice.
func TestTheFirstOwnerTakesOverLocal(t *testing.T) {
	t.Parallel()
	both(t, verified(firstOwner))
}

func firstOwner(t *testing.T, s *store.Store) {
	if err := s.SyncPeople(nil); err != nil {
		t.Fatal(err)
	}
	if p, err := s.PersonByID(workspace.LocalOwner); err != nil || p.Role != workspace.Owner {
		t.Fatalf("while nobody owns it: %+v %v", p, err)
	}
	run, in, ask := asking(t, s, local(1), "k1")
	if _, err := s.Ask(ask); err != nil {
		t.Fatal(err)
	}
	verdict := store.Verdict{ID: ask.Approval.ID, To: workspace.ApprovalApproved, By: workspace.LocalOwner, Via: "cli", Grant: workspace.ForSession}
	if _, _, err := s.Decide(verdict); err != nil {
		t.Fatal(err)
	}
	for n := range 1100 { // more than a piece
		accept(t, s, local(2).Message(s, fmt.Sprint("m", n), "x"))
	}
	file := workspace.Upload{Ref: "f", Person: workspace.LocalOwner, Kind: "file", Name: "f", MIME: "text/plain", Size: 1, Created: time.UnixMilli(1000).UTC()}
	if err := errors.Join(s.AddUpload(file, time.Time{}, 100), s.PutAnswer(workspace.LocalOwner, "key", store.Answer{Hash: "h", Status: 201})); err != nil {
		t.Fatal(err)
	}
	if _, err := s.MarkRead(workspace.LocalOwner, local(1).Key, 1, 1); err != nil {
		t.Fatal(err)
	}
	accept(t, s, NewChat(9).Message(s, "other", "x"))

	two := []workspace.Person{{ID: "ben", Role: workspace.Member}, {ID: "zoe", Role: workspace.Owner, Name: "Zoe"}, {ID: "ana", Role: workspace.Owner}}
	for range 3 {
		if err := s.SyncPeople(two); err != nil {
			t.Fatal(err)
		}
		if p, err := s.PersonByID(workspace.LocalOwner); err != nil || p.ID != "zoe" || p.Role != workspace.Owner || p.Name != "Zoe" {
			t.Errorf("local is %+v, %v", p, err)
		}
		got, err := s.Run(run.ID)
		if err != nil || got.Requester != "zoe" {
			t.Errorf("the run is %s's, %v", got.Requester, err)
		}
		if one := input(t, s, in.ID); one.Person != "zoe" || one.Account != "zoe" {
			t.Errorf("the input is %s's by %s", one.Person, one.Account)
		}
		if again, err := s.InputByKey("page", "zoe", "m1099"); err != nil || again.Person != "zoe" {
			t.Errorf("the last message: %+v, %v", again, err)
		}
		if room, err := s.Room(in.RoomID); err != nil || room.Address.Account != "zoe" {
			t.Errorf("the room is %+v, %v", room.Address, err)
		}
		if grants, err := s.SessionGrants(run.SessionID, "act", "a", "zoe"); err != nil || len(grants) != 1 {
			t.Errorf("grants: %+v, %v", grants, err)
		}
		if up, err := s.Upload("zoe", "f"); err != nil || up.Person != "zoe" {
			t.Errorf("upload: %+v, %v", up, err)
		}
		if r, err := s.ReadOf("zoe", local(1).Key); err != nil || r.N != 1 || r.Since.IsZero() {
			t.Errorf("read: %+v, %v", r, err)
		}
		if a, err := s.AnswerOf("zoe", "key"); err != nil || a.Status != 201 {
			t.Errorf("answer: %+v, %v", a, err)
		}
		two[1], two[2] = two[2], two[1] // the order of a later file is of no matter
	}
	if n := linkedRows(t, s); n != 1 {
		t.Errorf("%d rows tell of it", n)
	}
	if in, err := s.InputByKey("telegram", "42", "other"); err != nil || in.Person != NewChat(9).Person {
		t.Errorf("somebody else's message: %+v, %v", in, err)
	}
	// nobody owns it again: local does, and the next first owner is another
	if err := s.SyncPeople([]workspace.Person{{ID: "zoe", Role: workspace.Guest}}); err != nil {
		t.Fatal(err)
	}
	if p, err := s.PersonByID(workspace.LocalOwner); err != nil || p.ID != workspace.LocalOwner || p.Role != workspace.Owner {
		t.Errorf("with no owner local is %+v, %v", p, err)
	}
	l := linker{t, s}
	boss := l.known("telegram", "77", workspace.Owner)
	if p, err := s.PersonByID(workspace.LocalOwner); err != nil || p.ID != boss {
		t.Errorf("after an owner was approved local is %+v, %v", p, err)
	}
	if err := s.SyncPeople(nil); err != nil {
		t.Fatal(err)
	}
	if p, err := s.PersonByID(workspace.LocalOwner); err != nil || p.ID != boss || linkedRows(t, s) != 2 {
		t.Errorf("after a reload local is %+v, %v", p, err)
	}
}

func linkedRows(t *testing.T, s *store.Store) (n int) {
	t.Helper()
	list, err := s.AuditAfter(0, 500)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if row, err := e.Row(); err == nil && row.Kind == workspace.AuditPeopleLinked && row.What["from"] == workspace.LocalOwner {
			n++
		}
	}
	return n
}

// A person whom the configuration calls local is one like others.
func TestAPersonNamedLocal(t *testing.T) {
	t.Parallel()
	both(t, verified(namedLocal))
}

func namedLocal(t *testing.T, s *store.Store) {
	if err := s.SyncPeople([]workspace.Person{{ID: workspace.LocalOwner, Role: workspace.Member}, {ID: "ana", Role: workspace.Owner}}); err != nil {
		t.Fatal(err)
	}
	if p, err := s.PersonByID(workspace.LocalOwner); err != nil || p.ID != workspace.LocalOwner || p.Role != workspace.Member {
		t.Errorf("%+v, %v", p, err)
	}
}
