package storetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"parley/workspace"
	"parley/workspace/store"
)

// say is one whole exchange in a chat.
func say(t *testing.T, s *store.Store, c Chat, key, text, answer string) workspace.Run {
	t.Helper()
	a := accept(t, s, c.Begun(s, key, text))
	if a.Begun == nil {
		t.Fatalf("%s began no run: %+v", key, a)
	}
	finish(t, s, Answer(a.Begun.Run, answer, a.Input))
	return a.Begun.Run
}

func do(t *testing.T, s *store.Store, changes ...store.Change) store.Did {
	t.Helper()
	did, err := s.RunCommand(store.Command{Changes: changes})
	if err != nil {
		t.Fatalf("%+v: %v", changes, err)
	}
	return did
}

func newestOf(t *testing.T, s *store.Store, c Chat) workspace.Session {
	t.Helper()
	ses, err := s.SessionByKey(c.Key)
	if err != nil {
		t.Fatal(err)
	}
	return ses
}

// told is a transcript in one line.
func told(t *testing.T, s *store.Store, id workspace.SessionID) string {
	t.Helper()
	list, err := s.Entries(id, 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for i, e := range list {
		if e.N != int64(i+1) {
			t.Errorf("entry %d has the number %d", i+1, e.N)
		}
		out = append(out, string(e.Role)+":"+e.Body.Type+e.Body.Plain())
	}
	return strings.Join(out, " ")
}

func newKeeps(t *testing.T, s *store.Store) {
	c := NewChat(1)
	say(t, s, c, "m:1:1", "one", "1")
	old := newestOf(t, s, c)
	over := workspace.Overrides{Model: "big", Think: "high"}
	do(t, s, store.Rename{Session: old.ID, Name: "Trip"}, store.SetOverrides{Session: old.ID, Overrides: over, Was: &workspace.Overrides{}})
	if _, err := s.RunCommand(store.Command{Changes: []store.Change{store.SetOverrides{Session: old.ID, Was: &workspace.Overrides{}}}}); !errors.Is(err, workspace.ErrConflict) {
		t.Errorf("overrides changed under us: %v", err)
	}
	do(t, s, store.NewGeneration{Key: c.Key})
	now := newestOf(t, s, c)
	if now.Gen != 2 || now.Name != "Trip" || now.Overrides != over || !now.Ended.IsZero() {
		t.Errorf("the new generation: %+v", now)
	}
	if was, err := s.Session(old.ID); err != nil || was.Ended.IsZero() {
		t.Errorf("the old one: %+v, %v", was, err)
	}
	if _, err := s.RunCommand(store.Command{Changes: []store.Change{store.Rename{Session: old.ID, Name: "late"}}}); !errors.Is(err, workspace.ErrConflict) {
		t.Errorf("an ended generation was renamed: %v", err)
	}
}

func forkCopies(t *testing.T, s *store.Store) {
	c := NewChat(1)
	run := say(t, s, c, "m:1:1", "one", "1")
	say(t, s, c, "m:1:2", "two", "2")
	waiting := accept(t, s, c.Message(s, "m:1:3", "three"))
	old := newestOf(t, s, c)
	before := told(t, s, old.ID)
	f, err := s.Fork(c.Key, old.ID, 6, "") // the second question, behind its turn.started
	if err != nil {
		t.Fatal(err)
	}
	did := do(t, s, *f)
	if got, want := told(t, s, did.Session), "event:turn.started user:one assistant:1 event:turn.ended"; got != want {
		t.Errorf("the copy: %s", got)
	}
	if got := told(t, s, old.ID); got != before {
		t.Errorf("the old generation now says %s", got)
	}
	if ses, err := s.Session(did.Session); err != nil || ses.ForkedFrom != old.ID || ses.ForkedBefore != 6 {
		t.Errorf("it parted from %s before %d, %v", ses.ForkedFrom, ses.ForkedBefore, err)
	}
	if got := input(t, s, waiting.Input.ID); got.SessionID != did.Session {
		t.Errorf("what waited stayed in %s", got.SessionID)
	}
	was, err := s.Entries(old.ID, 0, 2)
	if err != nil {
		t.Fatal(err)
	}
	now, err := s.Entries(did.Session, 0, 2)
	if err != nil || !now[1].At.Equal(was[1].At) || now[1].RunID != run.ID || now[1].InputID != "" || now[1].Body.Name != was[1].Body.Name {
		t.Errorf("%+v became %+v, %v", was[1], now[1], err)
	}
	b, err := s.Begin(store.Begin{Run: c.NewRun(s)}, c.Key, waiting.Input.RoomID, []workspace.Input{input(t, s, waiting.Input.ID)}, nil)
	if err != nil || b.Run.SessionID != did.Session || b.Entries[0].N != 5 {
		t.Errorf("the next turn: %+v, %v", b, err)
	}
	if got, err := s.RunEntries(old.ID, run.ID); err != nil || len(got) != 4 {
		t.Errorf("the first run has %d lines, %v", len(got), err)
	}
}

func forkGoesBack(t *testing.T, s *store.Store) {
	c := NewChat(1)
	say(t, s, c, "m:1:1", "one", "1")
	old := newestOf(t, s, c)
	first, err := s.Fork(c.Key, old.ID, 2, "")
	if err != nil {
		t.Fatal(err)
	}
	newest := do(t, s, *first).Session
	back, err := s.Fork(c.Key, old.ID, 5, "") // the generation that was left
	if err != nil {
		t.Fatal(err)
	}
	back.Session = newest
	did := do(t, s, *back)
	if got, want := told(t, s, did.Session), "event:turn.started user:one assistant:1 event:turn.ended"; got != want {
		t.Errorf("the copy: %s", got)
	}
	if ses, err := s.Session(did.Session); err != nil || ses.ForkedFrom != old.ID || ses.ForkedBefore != 5 || ses.Gen != 3 {
		t.Errorf("%+v, %v", ses, err)
	}
}

func forkCuts(t *testing.T, s *store.Store) {
	c := NewChat(1)
	a := accept(t, s, c.Begun(s, "m:1:1", "one"))
	b := accept(t, s, c.Message(s, "m:1:2", "and this"))
	if _, err := s.Take(a.Begun.Run, []workspace.Input{b.Input}, nil); err != nil {
		t.Fatal(err)
	}
	finish(t, s, Answer(a.Begun.Run, "both", a.Input, b.Input))
	old := newestOf(t, s, c)
	for before, want := range map[int64]string{
		1: "", 2: "",
		3: "event:turn.started user:one event:turn.ended",
		4: "event:turn.started user:one user:and this event:turn.ended",
		6: "event:turn.started user:one user:and this assistant:both event:turn.ended",
	} {
		f, err := s.Fork(c.Key, newestOf(t, s, c).ID, 1, "")
		if err != nil {
			t.Fatal(err)
		}
		g, err := s.Fork(c.Key, old.ID, before, "")
		if err != nil {
			t.Fatal(err)
		}
		g.Session = f.Session // what is copied may be of an older generation
		if got := told(t, s, do(t, s, *g).Session); got != want {
			t.Errorf("before %d: %q, want %q", before, got, want)
		}
	}
	for _, before := range []int64{-1, 0, 7, 1 << 60} {
		if _, err := s.Fork(c.Key, old.ID, before, ""); !errors.Is(err, workspace.ErrNotFound) {
			t.Errorf("before %d: %v", before, err)
		}
	}
}

func forkOnce(t *testing.T, s *store.Store) {
	c := NewChat(1)
	say(t, s, c, "m:1:1", "one", "1")
	f, err := s.Fork(c.Key, newestOf(t, s, c).ID, 2, "fork:p1:k")
	if err != nil {
		t.Fatal(err)
	}
	first := do(t, s, *f)
	a := accept(t, s, c.Begun(s, "m:1:2", "again"))
	stop := store.Stop{Session: first.Session, By: "p1", Before: 1 << 62}
	second := do(t, s, stop, *f)
	if !second.Again || second.Session != first.Session || second.Stopped.Run != "" || newestOf(t, s, c).Gen != 2 {
		t.Errorf("a second time: %+v, generation %d", second, newestOf(t, s, c).Gen)
	}
	if got, err := s.SessionByOrigin("fork:p1:k"); err != nil || got.ID != first.Session {
		t.Errorf("by origin: %+v, %v", got, err)
	}
	finish(t, s, Answer(a.Begun.Run, "done", a.Input))
	f.Origin = ""
	if _, err := s.RunCommand(store.Command{Changes: []store.Change{*f}}); !errors.Is(err, workspace.ErrConflict) {
		t.Errorf("a fork of what is no more the newest: %v", err)
	}
}

func deleteHides(t *testing.T, s *store.Store) {
	c := NewChat(1)
	a := accept(t, s, c.Begun(s, "m:1:1", "one"))
	waits := accept(t, s, c.Message(s, "m:1:2", "two"))
	old := newestOf(t, s, c)
	key := c.Key.String()
	do(t, s, store.SetPlace{Room: a.Input.RoomID, SessionKey: &key})
	did := do(t, s, store.Stop{Session: old.ID, By: "p1", Before: 1 << 62}, store.Delete{Key: c.Key, Session: old.ID})
	if did.Stopped.Run != a.Begun.Run.ID || len(did.Stopped.Queued) != 1 {
		t.Errorf("stopped %+v", did.Stopped)
	}
	if got := input(t, s, waits.Input.ID); got.State != workspace.InputCancelled {
		t.Errorf("what waited is %s", got.State)
	}
	finish(t, s, Answer(a.Begun.Run, "too late", a.Input))
	heads, err := s.Heads()
	if err != nil || len(heads) != 0 {
		t.Errorf("listed: %+v, %v", heads, err)
	}
	if p, err := s.PlaceOf(c.Addr); err != nil || p.SessionKey != "" {
		t.Errorf("the room is at %+v, %v", p, err)
	}
	if _, err := s.RunCommand(store.Command{Changes: []store.Change{store.Delete{Key: c.Key, Session: old.ID}}}); !errors.Is(err, workspace.ErrConflict) {
		t.Errorf("deleted twice: %v", err)
	}
	if got := told(t, s, old.ID); !strings.Contains(got, "user:one") {
		t.Errorf("the record says %q", got)
	}
	say(t, s, c, "m:1:3", "anew", "yes")
	if heads, err = s.Heads(); err != nil || len(heads) != 1 || heads[0].ID == old.ID {
		t.Errorf("after a new message: %+v, %v", heads, err)
	}
}

func createOnce(t *testing.T, s *store.Store) {
	key := workspace.Key{Agent: "assistant", Scope: workspace.ScopeLocal, Local: "p1:trip"}
	first := do(t, s, store.Create{Key: key, Name: "Trip", Origin: "create:p1:a"})
	again := do(t, s, store.Create{Key: key, Name: "Trip", Origin: "create:p1:a"})
	if again.Session != first.Session || !again.Again {
		t.Errorf("made twice: %+v and %+v", first, again)
	}
	if _, err := s.RunCommand(store.Command{Changes: []store.Change{store.Create{Key: key}}}); !errors.Is(err, workspace.ErrConflict) {
		t.Errorf("one that exists: %v", err)
	}
	do(t, s, store.Delete{Key: key, Session: first.Session})
	fresh := do(t, s, store.Create{Key: key, Name: "Anew"})
	ses, err := s.Session(fresh.Session)
	if err != nil || ses.Name != "Anew" || ses.Hidden || ses.Gen != 2 {
		t.Errorf("made again: %+v, %v", ses, err)
	}
	if list, err := s.Generations(key); err != nil || len(list) != 2 || list[0].ID != ses.ID || !list[1].Hidden {
		t.Errorf("generations: %+v, %v", list, err)
	}
}

func headsNewest(t *testing.T, s *store.Store) {
	for i := range 5 {
		c := NewChat(i)
		say(t, s, c, fmt.Sprintf("m:%d:1", i), fmt.Sprint("first of ", i), "1")
	}
	say(t, s, NewChat(2), "m:1:2", "newest", "last word")
	do(t, s, store.NewGeneration{Key: NewChat(4).Key})
	heads, err := s.Heads()
	if err != nil || len(heads) != 5 {
		t.Fatalf("%d heads, %v", len(heads), err)
	}
	for i := 1; i < len(heads); i++ {
		if heads[i-1].Compare(heads[i]) < 0 {
			t.Errorf("%+v before %+v", heads[i-1], heads[i])
		}
	}
	for _, h := range heads {
		first, last, err := s.Glimpse(h.ID)
		if err != nil {
			t.Fatal(err)
		}
		switch h.Key {
		case NewChat(2).Key:
			if first != "first of 2" || last != "last word" || h.Last != 8 {
				t.Errorf("glimpse %q, %q, %d", first, last, h.Last)
			}
		case NewChat(4).Key:
			if first+last != "" || h.Last != 0 {
				t.Errorf("a fresh one: %q, %q, %d", first, last, h.Last)
			}
		}
	}
}

func mentions(t *testing.T, s *store.Store) {
	c := NewChat(1)
	say(t, s, c, "m:1:1", `Größe "50%" <x> under_score`, "Ein Fußbad\nin Zürich & é")
	ses := newestOf(t, s, c)
	for text, want := range map[string]bool{
		"größe": true, "GRÖSSE": false, `"50%"`: true, "<x>": true, "R_SC": true, "r%c": false, "under_": true, "fußbad": true, "zürich &": true, "É": true,
		"text": false, "kind": false, "nothing": false, "!": false,
	} {
		if got, err := s.Mentions(ses.ID, 4, text); err != nil || got != want {
			t.Errorf("%q is mentioned: %v, %v", text, got, err)
		}
	}
}

func sessionUsage(t *testing.T, s *store.Store) {
	c := NewChat(1)
	for i := range 3 {
		a := accept(t, s, c.Begun(s, fmt.Sprint("m:1:", i), "q"))
		f := Answer(a.Begun.Run, "a", a.Input)
		f.Usage = workspace.Usage{InputTokens: 10, OutputTokens: i, Calls: 1}
		finish(t, s, f)
	}
	ses := newestOf(t, s, c)
	sum, last, err := s.SessionUsage(ses.ID, 0)
	if err != nil || sum.InputTokens != 30 || sum.OutputTokens != 3 || sum.Calls != 3 || last != 12 {
		t.Errorf("%+v up to %d, %v", sum, last, err)
	}
	if sum, last, err = s.SessionUsage(ses.ID, 8); err != nil || sum.OutputTokens != 2 || last != 12 {
		t.Errorf("the last: %+v up to %d, %v", sum, last, err)
	}
	cost := workspace.Usage{InputTokens: 100, Calls: 1}
	if err := s.Mark(store.Mark{Session: ses.ID, Body: workspace.EntryBody{Type: workspace.EventCompacted, To: 4, Usage: &cost}}); err != nil {
		t.Fatal(err)
	}
	if sum, last, err = s.SessionUsage(ses.ID, 12); err != nil || sum.InputTokens != 100 || last != 13 {
		t.Errorf("a summary: %+v up to %d, %v", sum, last, err)
	}
	f, err := s.Fork(c.Key, ses.ID, 14, "")
	if err != nil {
		t.Fatal(err)
	}
	if sum, _, err = s.SessionUsage(do(t, s, *f).Session, 0); err != nil || sum.Calls != 0 {
		t.Errorf("a copy has cost %+v, %v", sum, err)
	}
}

func placeKept(t *testing.T, s *store.Store) {
	c := NewChat(1)
	if p, err := s.PlaceOf(c.Addr); err != nil || p != (store.Place{}) {
		t.Errorf("of no room: %+v, %v", p, err)
	}
	room := accept(t, s, c.Message(s, "m:1:1", "x")).Input.RoomID
	key, always, none := "agent:assistant:local:x", "always", ""
	do(t, s, store.SetPlace{Room: room, SessionKey: &key})
	do(t, s, store.SetPlace{Room: room, Activation: &always})
	if p, err := s.PlaceOf(c.Addr); err != nil || p != (store.Place{SessionKey: key, Activation: always}) {
		t.Errorf("%+v, %v", p, err)
	}
	do(t, s, store.SetPlace{Room: room, SessionKey: &none})
	if p, err := s.PlaceOf(c.Addr); err != nil || p != (store.Place{Activation: always}) {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := s.RunCommand(store.Command{Changes: []store.Change{store.SetPlace{Room: "none", SessionKey: &key}}}); !errors.Is(err, workspace.ErrConflict) {
		t.Errorf("of no room: %v", err)
	}
}

func marks(t *testing.T, s *store.Store) {
	c := NewChat(1)
	say(t, s, c, "m:1:1", "one", "1")
	ses := newestOf(t, s, c)
	body := workspace.EntryBody{Type: workspace.EventCompacted, To: 4, Content: []workspace.Content{{Kind: workspace.Text, Text: "a summary"}}}
	if _, err := s.RunCommand(store.Command{Changes: []store.Change{store.Mark{Session: ses.ID, Body: body, Was: 3}}}); !errors.Is(err, workspace.ErrConflict) {
		t.Errorf("behind a summary that is not there: %v", err)
	}
	if err := s.Mark(store.Mark{Session: ses.ID, Body: body}); err != nil {
		t.Fatal(err)
	}
	undone := workspace.EntryBody{Type: workspace.EventUndone, From: 1, To: 4}
	if err := s.Mark(store.Mark{Session: ses.ID, Body: undone, Last: 4}); !errors.Is(err, workspace.ErrConflict) {
		t.Errorf("behind a line that is not the last: %v", err)
	}
	if now := newestOf(t, s, c); now.Compacted != 5 {
		t.Errorf("compacted at %d", now.Compacted)
	}
	do(t, s, store.Mark{Session: ses.ID, Body: undone, Last: 5})
	list, err := s.Entries(ses.ID, 4, 10)
	if err != nil || len(list) != 2 || list[0].Body.To != 4 || list[0].Body.Plain() != "a summary" || list[1].Body.From != 1 || list[1].RunID != "" {
		t.Errorf("%+v, %v", list, err)
	}
	for before, want := range map[int64]int64{7: 5, 5: 0} {
		f, err := s.Fork(c.Key, ses.ID, before, "")
		if err != nil {
			t.Fatal(err)
		}
		f.Session = newestOf(t, s, c).ID
		if made, err := s.Session(do(t, s, *f).Session); err != nil || made.Compacted != want {
			t.Errorf("a fork before %d is compacted at %d, %v", before, made.Compacted, err)
		}
	}
}

func commandAsks(t *testing.T, s *store.Store) {
	c := NewChat(1)
	say(t, s, c, "m:1:1", "one", "1")
	cmd := accept(t, s, c.Message(s, "m:1:2", "/new two"))
	ask := c.Message(s, "ask:"+string(cmd.Input.ID), "two")
	ask.Input.Source = "system"
	run := store.Command{Input: cmd.Input, Changes: []store.Change{store.NewGeneration{Key: c.Key}, ask}}
	did, err := s.RunCommand(run)
	if err != nil || did.Asked == nil || did.Asked.SessionID != did.Session || did.Asked.State != workspace.InputQueued || did.Asked.RoomID != cmd.Input.RoomID {
		t.Fatalf("%+v, %v", did, err)
	}
	if _, err := s.RunCommand(run); !errors.Is(err, workspace.ErrConflict) {
		t.Errorf("a second time: %v", err)
	}
	if q, err := s.Queued(); err != nil || len(q) != 1 || q[0].Text != "two" {
		t.Errorf("queued: %+v, %v", q, err)
	}
}
