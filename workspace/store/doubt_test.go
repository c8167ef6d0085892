package store_test

import (
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"parley/channels"
	"parley/workspace"
	"parley/workspace/store"
)

// What stands in the column error since the first version decides whether a message goes twice: databases of before are read
// by it, and those of now hold the same bytes.
var oldDoubts = map[string]workspace.Doubt{
	"sent once more, marked":                      workspace.DoubtMarked,
	"may have been sent; dropped as configured":   workspace.DoubtDropped,
	"twice without an answer from the network":    workspace.DoubtTwice,
	"the gateway ended while it was being sent":   workspace.DoubtEnded,
	"telegram: sendMessage: unexpected EOF":       workspace.DoubtUnanswered, // of a part that is unknown
	"telegram: sendMessage: sent once more, mark": workspace.DoubtUnanswered,
}

func TestR05_DoubtsOfOlderDatabasesAreReadAndWrittenTheSame(t *testing.T) {
	t.Parallel()
	for text, doubt := range oldDoubts {
		dir := t.TempDir()
		s, err := store.Open(t.Context(), store.Options{Dir: dir, Now: time.Now, BallastBytes: -1})
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Accept(store.Arrival{Room: channels.Address{Network: "n", Account: "42", Kind: channels.DM, Peer: "7"},
			Input: workspace.Input{ID: "i1", Source: "n", Account: "42", Key: "m:7:1", Kind: channels.KindMessage, Mode: workspace.ModeTurn,
				State: workspace.InputRefused},
			Replies: []store.NewOutbound{{Key: "old", Kind: workspace.OutRefusal, Text: "no", Spans: []store.Span{{To: 2}}, Sending: true},
				{Key: "new", Kind: workspace.OutRefusal, Text: "no", Spans: []store.Span{{To: 2}}, Sending: true}}})
		if err != nil {
			t.Fatal(err)
		}
		words := ""
		if doubt == workspace.DoubtUnanswered {
			words = text
		}
		if err := s.MovePart(store.Move{Part: got[0].Replies[1].Parts[0], To: workspace.PartUnknown, Doubt: doubt, Error: words}); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "parley.db"))
		if err != nil {
			t.Fatal(err)
		}
		before, now := string(got[0].Replies[0].ID), string(got[0].Replies[1].ID)
		if _, err := db.ExecContext(t.Context(), `UPDATE parts SET state = 'unknown', error = ? WHERE outbound_id = ?`, text, before); err != nil {
			t.Fatal(err)
		}
		var stored string
		err = db.QueryRowContext(t.Context(), `SELECT error FROM parts WHERE outbound_id = ?`, now).Scan(&stored)
		if err != nil || stored != text {
			t.Errorf("%s is stored as %q, %v; it was %q", doubt, stored, err, text)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		again, err := store.Open(t.Context(), store.Options{Dir: dir, Now: time.Now, BallastBytes: -1})
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"old", "new"} {
			o, err := again.OutboundByKey(key)
			if err != nil || o.Parts[0].Doubt != doubt || o.Parts[0].Error != words {
				t.Errorf("%s: %q is read as %q, %q, %v", key, text, o.Parts[0].Doubt, o.Parts[0].Error, err)
			}
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
