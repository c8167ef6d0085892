package storetest

import (
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/channels"
)

// The migrations that change rows are undone on a database that is filled, and done again by the next start: what they read of
// the rows is as it was written, on both databases.
func TestAFilledDatabaseIsUpgraded(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, p *Place) {
		s := p.Open(t)
		networks := []channels.Network{"discord", "slack", "telegram"} // the first two were backfilled by their names
		for n := range 30 {
			c := NewChat(n)
			c.Addr.Network = networks[n%len(networks)]
			for i := range 4 {
				in := accept(t, s, c.Message(s, fmt.Sprintf("m:%d:%d", n, i), "x")).Input
				if i == 2 {
					if _, err := s.Outbound(Notice("input:"+string(in.ID)+":reply", in.RoomID, "fine"), Notice(fmt.Sprint("room:", n), in.RoomID, "away")); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		undo(t, p, 3)
		again := p.Open(t)
		for i, network := range networks {
			newest, err := again.Newest(network, "42")
			want := 10
			if network == "telegram" {
				want = 0
			}
			if err != nil || len(newest) != want {
				t.Fatalf("%s: %d rooms, %v; want %d", network, len(newest), err, want)
			}
			for n := i; n < 30 && want > 0; n += len(networks) {
				if got := newest[channels.PeerID(fmt.Sprint(1000+n))]; got != channels.MessageID(fmt.Sprintf("m:%d:3", n)) {
					t.Errorf("newest of chat %d is %q", n, got)
				}
			}
		}
		open, err := again.OpenOutbound()
		if err != nil || len(open) != 60 {
			t.Fatalf("%d answers are open, %v", len(open), err)
		}
		for _, o := range open {
			key, answers := strings.CutPrefix(o.Key, "input:")
			if answers && string(o.InputID) != strings.TrimSuffix(key, ":reply") || !answers && o.InputID != "" {
				t.Errorf("%s answers %q", o.Key, o.InputID)
			}
		}
	})
}

// undo takes the migrations behind a version back, the newest first, as their files say it.
func undo(t *testing.T, p *Place, version int) {
	t.Helper()
	driver, dsn := "sqlite", "file:"+(&url.URL{Path: filepath.Join(p.dir, "parley.db")}).EscapedPath()
	if p.OnPostgres() {
		driver, dsn = "pgx", p.direct
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	files, err := filepath.Glob("../store/migrations/*.sql")
	if err != nil || len(files) <= version {
		t.Fatalf("migrations %q, %v", files, err)
	}
	for i := len(files) - 1; i >= version; i-- {
		text, err := os.ReadFile(files[i])
		if err != nil {
			t.Fatal(err)
		}
		_, down, _ := strings.Cut(string(text), "-- +goose Down")
		if _, err := db.ExecContext(t.Context(), down); err != nil {
			t.Fatalf("undo %s: %v", files[i], err)
		}
	}
	if _, err := db.ExecContext(t.Context(), fmt.Sprintf(`DELETE FROM goose_db_version WHERE version_id > %d`, version)); err != nil {
		t.Fatal(err)
	}
}
