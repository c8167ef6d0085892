package storetest

import (
	"testing"
	"time"

	"parley/workspace"
	"parley/workspace/store"
)

// A mark is each person's own, never goes back, follows a person who is joined with another, and goes with the session.
func readMarks(t *testing.T, s *store.Store) {
	l := linker{t, s}
	ana, ben := l.known("net", "1", workspace.Member), l.known("web", "2", workspace.Member)
	c := NewChat(1)
	say(t, s, c, "1", "hello", "hi")
	unread := func(who workspace.PersonID, want bool, when string) {
		t.Helper()
		ses := newestOf(t, s, c)
		last, err := s.LastEntries(ses.ID, 1)
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.ReadOf(who, c.Key)
		if err != nil || r.Unread(ses.Gen, last[0].N, last[0].At) != want {
			t.Errorf("%s: unread for %s is not %t: %+v, %v", when, who, want, r, err)
		}
	}
	mark := func(who workspace.PersonID, gen int, n int64, moves bool) {
		t.Helper()
		if moved, err := s.MarkRead(who, c.Key, gen, n); err != nil || moved != moves {
			t.Errorf("a mark of %s at %d.%d moved %t, %v", who, gen, n, moved, err)
		}
	}
	unread(ana, false, "before she ever looked")
	for range 2 {
		if err := s.KeepReads(ana); err != nil {
			t.Fatal(err)
		}
	}
	unread(ana, false, "what was there when she first looked")
	other := NewChat(2)
	say(t, s, other, "other", "news", "indeed")
	mark(ana, 1, 1, true)
	unread(ana, true, "read in part")
	unread(ben, false, "who never looked")
	mark(ana, 1, 1<<40, true)
	mark(ana, 1, 2, false)
	unread(ana, false, "read")
	do(t, s, store.NewGeneration{Key: c.Key})
	say(t, s, c, "2", "again", "hi")
	unread(ana, true, "a new generation")
	mark(ana, 2, 1, true)
	mark(ana, 1, 1<<41, false)
	mark(ben, 2, 1<<40, true)
	l.ask(ana, "code")
	if got := l.give(ben, "code", time.Minute); got.Outcome != workspace.Linked {
		t.Fatalf("joined: %+v", got)
	}
	who := l.who("net", "1").ID
	unread(who, false, "what one of the two has read")
	gone := ana
	if who == ana {
		gone = ben
	}
	if r, err := s.ReadOf(gone, c.Key); err != nil || r != (store.Read{}) {
		t.Errorf("of who is joined is left %+v, %v", r, err)
	}
	do(t, s, store.Delete{Key: c.Key, Session: newestOf(t, s, c).ID})
	if r, err := s.ReadOf(who, c.Key); err != nil || r.Gen != 0 || r.Since.IsZero() {
		t.Errorf("of a deleted session is left %+v, %v", r, err)
	}
}
