package storetest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"parley/channels"
	"parley/workspace"
	"parley/workspace/store"
)

// lists: what pages of an operator read of everybody's runs and of people.
func lists(t *testing.T, s *store.Store) {
	var all []workspace.RunID
	var first NamedRun
	for i := range 3 {
		c := NewChat(1 + i%2)
		a := accept(t, s, c.Begun(s, "m:1:"+string(rune('1'+i)), "ping"))
		finish(t, s, Answer(a.Begun.Run, "pong", a.Input))
		all = append(all, a.Begun.Run.ID)
		if i == 0 {
			first = NamedRun{a.Begun.Run.ID, a.Input.SessionID, c.Key.String()}
		}
	}
	live := accept(t, s, NewChat(3).Begun(s, "m:3:1", "still at it")).Begun.Run.ID
	newest, err := s.RunsBefore("", 2)
	if err != nil || len(newest) != 2 || newest[0].ID != live || newest[1].ID != all[2] || newest[1].Key.String() != first.Key || newest[1].Gen != 1 {
		t.Fatalf("newest: %+v, %v", newest, err)
	}
	rest, err := s.RunsBefore(newest[1].ID, 10)
	if err != nil || len(rest) != 2 || rest[0].ID != all[1] || rest[1].ID != all[0] {
		t.Errorf("rest: %+v, %v", rest, err)
	}
	if at, err := s.LiveRunRows(); err != nil || len(at) != 1 || at[0].ID != live {
		t.Errorf("live: %+v, %v", at, err)
	}
	mine, n, err := s.SessionRunsBefore(first.Session, 1<<62, 10)
	if err != nil || len(mine) != 2 || mine[0].ID != all[2] || mine[1].ID != all[0] {
		t.Fatalf("of a session: %+v, %v", mine, err)
	}
	if at, err := s.RunFirst(all[2]); err != nil || at != n[0] {
		t.Errorf("first entry %d, %v, want %d", at, err, n[0])
	}
	if mine, _, err = s.SessionRunsBefore(first.Session, n[0], 10); err != nil || len(mine) != 1 || mine[0].ID != all[0] {
		t.Errorf("before the last: %+v, %v", mine, err)
	}
	spent(t, s, append(all, live))
	humans(t, s)
}

// NamedRun is a run with its session.
type NamedRun struct {
	Run     workspace.RunID
	Session workspace.SessionID
	Key     string
}

func spent(t *testing.T, s *store.Store, want []workspace.RunID) {
	t.Helper()
	now := time.Now()
	var got []workspace.RunID
	var after workspace.RunID
	for more := true; more; {
		list, last, again, err := s.SpentBetween(now.Add(-time.Hour), now.Add(time.Hour), after, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, sp := range list {
			got = append(got, sp.ID)
			if sp.Agent == "" || sp.Person == "" || sp.Started.IsZero() {
				t.Errorf("%+v", sp)
			}
		}
		after, more = last, again
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("spent by %v, want %v", got, want)
	}
	if list, _, _, err := s.SpentBetween(now.Add(-48*time.Hour), now.Add(-24*time.Hour), "", 10); err != nil || len(list) != 0 {
		t.Errorf("the day before: %+v, %v", list, err)
	}
}

func humans(t *testing.T, s *store.Store) {
	t.Helper()
	if err := s.SyncPeople([]workspace.Person{{ID: "ana", Role: workspace.Owner, Name: "Ana"}, {ID: "ben", Role: workspace.Member}}); err != nil {
		t.Fatal(err)
	}
	if err := s.SyncAccounts("mem", "bot", []workspace.Account{{Network: "mem", Account: "bot", User: "7", Person: "ana"}}); err != nil {
		t.Fatal(err)
	}
	ana, err := s.Human("ana")
	if err != nil || !ana.Configured || ana.Name != "Ana" || len(ana.Accounts) != 1 || ana.Accounts[0].User != channels.UserID("7") || ana.Created.IsZero() {
		t.Errorf("%+v, %v", ana, err)
	}
	if list, err := s.Humans("ana", 1); err != nil || len(list) != 1 || list[0].ID != "ben" || len(list[0].Accounts) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
	if _, err := s.Human("nobody"); !errors.Is(err, workspace.ErrNotFound) {
		t.Errorf("nobody: %v", err)
	}
}

// answers: what a client was told is found under the person and key, and only there.
func answers(t *testing.T, s *store.Store) {
	a := store.Answer{Hash: "h", Status: 201, Body: `{"a":1}`}
	if _, err := s.AnswerOf("ana", "k"); !errors.Is(err, workspace.ErrNotFound) {
		t.Fatal(err)
	}
	if err := s.PutAnswer("ana", "k", a); err != nil {
		t.Fatal(err)
	}
	if err := s.PutAnswer("ana", "k", store.Answer{Hash: "other"}); !errors.Is(err, workspace.ErrConflict) {
		t.Errorf("a key was answered twice: %v", err)
	}
	if err := s.PutAnswer("ben", "k", store.Answer{Hash: "his", Status: 204}); err != nil {
		t.Errorf("another person's key: %v", err)
	}
	if got, err := s.AnswerOf("ana", "k"); err != nil || got != a {
		t.Errorf("%+v, %v", got, err)
	}
}
