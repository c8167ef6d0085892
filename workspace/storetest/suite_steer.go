package storetest

import (
	"testing"

	"parley/workspace"
	"parley/workspace/store"
)

// What was stopped or deleted before a turn could take it is left out; the turn goes on.
func steerGone(t *testing.T, s *store.Store) {
	c := NewChat(1)
	first := accept(t, s, c.Begun(s, "m:1", "work"))
	gone, kept := accept(t, s, c.Message(s, "m:2", "gone")), accept(t, s, c.Message(s, "m:3", "kept"))
	if _, err := s.EndInputs([]store.Ending{{Seq: gone.Input.Seq, From: workspace.InputQueued, To: workspace.InputCancelled, Reason: "deleted"}}); err != nil {
		t.Fatal(err)
	}
	got, err := s.Take(first.Begun.Run, []workspace.Input{gone.Input, kept.Input}, []workspace.EntryBody{{Name: "gone"}, {Name: "kept"}})
	if err != nil || len(got.Gone) != 1 || got.Gone[0].Seq != gone.Input.Seq {
		t.Fatalf("%+v %v", got, err)
	}
	if len(got.Entries) != 1 || got.Entries[0].InputID != kept.Input.ID || got.Entries[0].Body.Name != "kept" {
		t.Errorf("entries %+v", got.Entries)
	}
	if in := input(t, s, gone.Input.ID); in.State != workspace.InputCancelled || in.RunID != "" {
		t.Errorf("what was deleted is %s of %q", in.State, in.RunID)
	}
	finish(t, s, Answer(first.Begun.Run, "done", first.Input, kept.Input))
}
