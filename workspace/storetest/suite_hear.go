package storetest

import (
	"errors"
	"testing"

	"parley/channels"
	"parley/workspace"
	"parley/workspace/store"
)

func transcriptKept(t *testing.T, s *store.Store) {
	c := NewChat(1)
	a := c.Message(s, "m:1:1", "(voice)")
	a.Input.Data.Attachments = []channels.Attachment{{ID: "f", Kind: "voice"}}
	in := accept(t, s, a).Input
	for _, said := range []string{"hello", "another try"} {
		if got, err := s.Hear(in.ID, 0, said); err != nil || got != "hello" {
			t.Errorf("kept %q, %v", got, err)
		}
	}
	if got, err := s.Hear(in.ID, 3, "and \x00 this"); err != nil || got == "" {
		t.Errorf("kept %q, %v", got, err)
	}
	now, err := s.Input(in.ID)
	if err != nil || now.Data.Heard[0] != "hello" || now.Data.Heard[3] == "" || now.Text != "(voice)" || len(now.Data.Attachments) != 1 {
		t.Errorf("%+v, %v", now.Data, err)
	}
	if _, err := s.EndInputs([]store.Ending{{Seq: in.Seq, From: workspace.InputQueued, To: workspace.InputCancelled}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Hear(in.ID, 4, "too late"); !errors.Is(err, workspace.ErrConflict) {
		t.Errorf("a cancelled input was written to: %v", err)
	}
}

// The caption of a file that waits can be edited, and the file be replaced by another: then nothing was heard of it yet.
func editedFile(t *testing.T, s *store.Store) {
	c := NewChat(1)
	file := func(key, text, id string) store.Arrival {
		a := c.Message(s, key, text)
		a.Input.Data.Attachments = []channels.Attachment{{ID: id, Kind: "voice"}}
		return a
	}
	in := accept(t, s, file("m:1", "one", "f")).Input
	if _, err := s.Hear(in.ID, 0, "hello"); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		key, text, id string
		heard         int
	}{{"e:1:1", "two", "f", 1}, {"e:1:2", "three", "g", 0}} {
		e := file(step.key, step.text, step.id)
		e.Input.Kind, e.Input.TargetKey = channels.KindEdit, "m:1"
		accept(t, s, e)
		now, err := s.Input(in.ID)
		if err != nil || now.Text != step.text || now.Data.Attachments[0].ID != step.id || len(now.Data.Heard) != step.heard {
			t.Errorf("after %s: %q, %+v, %v", step.key, now.Text, now.Data, err)
		}
	}
}
