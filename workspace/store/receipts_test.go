package store_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"parley/channels"
	"parley/workspace"
	"parley/workspace/store"
)

// TestR05_ReceiptOutlivesAKill copies the data directory between the network's answer and the receipt's commit, as a
// kill would leave it, and finds the part sent.
func TestR05_ReceiptOutlivesAKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := store.Open(t.Context(), store.Options{Dir: dir, Now: time.Now, BallastBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	if s.Crashed() {
		t.Error("a first start counts as one after a crash")
	}
	addr := channels.Address{Network: "telegram", Account: "42", Kind: channels.DM, Peer: "7"}
	got, err := s.Accept(store.Arrival{Room: addr, Input: workspace.Input{ID: "i1", Source: "telegram", Account: "42", Key: "m:7:1", Kind: channels.KindMessage,
		Mode: workspace.ModeTurn, State: workspace.InputRefused}, Replies: []store.NewOutbound{{Key: "input:i1:refused", Kind: workspace.OutRefusal, Text: "no",
		Spans: []store.Span{{To: 2}}, Sending: true}}})
	if err != nil {
		t.Fatal(err)
	}
	before := copyDir(t, dir) // the database says: sending
	part := got[0].Replies[0].Parts[0]
	s.Receipt(store.Move{Part: part, To: workspace.PartSent, Remote: "msg 9"})
	for i := range 2 { // the kill: the notes are there, the commit is not
		data, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("receipts.%d", i)))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(before, fmt.Sprintf("receipts.%d", i)), append(data, "torn li"...), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := store.Open(t.Context(), store.Options{Dir: before, Now: time.Now, BallastBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if !again.Crashed() {
		t.Error("a kill does not count as a crash")
	}
	open, err := again.OpenOutbound()
	if err != nil || len(open) != 0 {
		t.Errorf("undelivered after the start: %+v %v", open, err)
	}
	o, err := again.OutboundByKey("input:i1:refused")
	if err != nil || o.Parts[0].State != workspace.PartSent || o.Parts[0].RemoteID != "msg 9" {
		t.Errorf("part: %+v %v", o.Parts, err)
	}
}

func copyDir(t *testing.T, from string) string {
	t.Helper()
	to := t.TempDir()
	files, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(from, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, f.Name()), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return to
}
