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
