package store_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/workspace"
	"parley/workspace/store"
	"parley/workspace/storetest"
)

// killedDir is the data directory of a process that was killed after n acknowledged messages, all of them in the log.
func killedDir(t *testing.T, n int) string {
	t.Helper()
	p := storetest.SQLite(t)
	s := p.Open(t)
	addRows(t, s, 2)
	for i := range n {
		if _, err := s.Accept(storetest.NewChat(i).Message(s, fmt.Sprintf("m:%d", i), "acknowledged")); err != nil {
			t.Fatal(err)
		}
	}
	p.Crash(t, s)
	return p.Dir()
}

func openDir(t *testing.T, dir string, change ...func(*store.Options)) (*store.Store, error) {
	t.Helper()
	opt := store.Options{Dir: dir, BallastBytes: -1}
	for _, c := range change {
		c(&opt)
	}
	s, err := store.Open(context.WithoutCancel(t.Context()), opt)
	if err == nil {
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
	}
	return s, err
}

func onLoss(how store.OnLoss) func(*store.Options) {
	return func(o *store.Options) { o.OnLoss = how }
}

// refused wants a start to be refused as a loss, twice, and without a change to any file.
func refused(t *testing.T, dir string) *store.Loss {
	t.Helper()
	before := files(t, dir)
	var loss *store.Loss
	for range 2 {
		if _, err := openDir(t, dir); !errors.As(err, &loss) || !errors.Is(err, store.ErrLost) {
			t.Fatalf("open: %v", err)
		}
		for _, way := range []string{"parley restore", "--accept-loss", "--fresh"} {
			if !strings.Contains(loss.Error(), way) {
				t.Errorf("%s is not named: %s", way, loss)
			}
		}
	}
	after := files(t, dir)
	for name, text := range before {
		if !bytes.Equal(text, after[name]) {
			t.Errorf("a refused start changed %s", name)
		}
	}
	return loss
}

// files are the contents of a data directory, without what a start may touch: the lock, and the index of the log.
func files(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if e.IsDir() || e.Name() == "lock" || strings.HasSuffix(e.Name(), "-shm") {
			continue
		}
		if out[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func inputsIn(t *testing.T, s *store.Store) int {
	t.Helper()
	list, err := s.Queued()
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

func edit(t *testing.T, name string, change func([]byte) []byte) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err == nil {
		err = os.WriteFile(name, change(text), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestR19_ALogThatIsDamagedCutOrMissingRefusesTheStart(t *testing.T) {
	t.Parallel()
	const acked = 60
	for name, damage := range map[string]func(t *testing.T, wal string){
		"one byte flipped": func(t *testing.T, wal string) {
			edit(t, wal, func(b []byte) []byte { b[len(b)/2] ^= 4; return b })
		},
		"cut in half":         func(t *testing.T, wal string) { edit(t, wal, func(b []byte) []byte { return b[:len(b)/2] }) },
		"its last commit cut": func(t *testing.T, wal string) { edit(t, wal, func(b []byte) []byte { return b[:len(b)-1] }) },
		"deleted": func(t *testing.T, wal string) {
			if err := os.Remove(wal); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := killedDir(t, acked)
			damage(t, filepath.Join(dir, "parley.db-wal"))
			loss := refused(t, dir)
			if loss.Inputs < 1 || loss.Inputs > acked {
				t.Errorf("missing: %d messages: %v", loss.Inputs, loss)
			}
			s, err := openDir(t, dir, onLoss(store.AcceptLoss))
			if err != nil {
				t.Fatalf("--accept-loss: %v", err)
			}
			if left := inputsIn(t, s); int64(left) != acked-loss.Inputs {
				t.Errorf("%d messages are left of %d, and %d were called missing", left, acked, loss.Inputs)
			}
			audited(t, s, workspace.AuditStoreLoss)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			again(t, dir)
		})
	}
}

// again wants a directory to start as ever, and to have nothing to accept.
func again(t *testing.T, dir string) {
	t.Helper()
	for _, how := range []store.OnLoss{store.AcceptLoss, store.BeginFresh} {
		if _, err := openDir(t, dir, onLoss(how)); !errors.Is(err, store.ErrNoLoss) {
			t.Errorf("%s where nothing is missing: %v", how, err)
		}
	}
	s, err := openDir(t, dir)
	if err != nil {
		t.Fatalf("the next start: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func audited(t *testing.T, s *store.Store, kind string) {
	t.Helper()
	rows, err := s.AuditAfter(-1, 3)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if strings.Contains(string(r.Body), `"kind":"`+kind+`"`) {
			return
		}
	}
	t.Errorf("no row %s in the audit log: %v", kind, rows)
}

func TestR19_AKilledProcessAloneLosesNothing(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "parley.db-shm"} {
		dir := killedDir(t, 60)
		if name != "" {
			_ = os.Remove(filepath.Join(dir, name)) // it is not copied
		}
		s, err := openDir(t, dir)
		if err != nil {
			t.Fatal(err)
		}
		if n := inputsIn(t, s); n != 60 {
			t.Errorf("%d of 60 are there", n)
		}
		if r, err := s.VerifyAudit(t.Context(), nil); err != nil || r.Bad != nil || r.Rows != 2 {
			t.Errorf("audit log: %+v %v", r, err)
		}
	}
}

func TestR19_AMissingDatabaseIsNoFreshStart(t *testing.T) {
	t.Parallel()
	remove := func(names ...string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			for _, name := range names {
				if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	write := func(dir, name, text string) {
		name = filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for name, damage := range map[string]func(t *testing.T, dir string){
		"missing":                remove("parley.db"),
		"missing with its log":   remove("parley.db", "parley.db-wal"),
		"only the head is left":  remove("parley.db", "parley.db-wal", "commits"),
		"only the count is left": remove("parley.db", "parley.db-wal", "audit.head"),
		"only its log is left":   remove("parley.db", "commits", "audit.head"),
		"emptied": func(t *testing.T, dir string) {
			remove("parley.db-wal")(t, dir)
			write(dir, "parley.db", "")
		},
		"another that is empty": func(t *testing.T, dir string) {
			remove("parley.db", "parley.db-wal")(t, dir)
			forge(t, dir, `CREATE TABLE t (a)`)
		},
		"only files and agents are left": func(t *testing.T, dir string) {
			remove("parley.db", "parley.db-wal", "commits", "audit.head")(t, dir)
			write(dir, "token", "secret\n")
			for _, name := range []string{"AGENTS.md", "HEARTBEAT.md", "work/owner/x", "skills/x"} {
				write(dir, "agents/assistant/"+name, "mine")
			}
		},
		"only blobs are left": func(t *testing.T, dir string) {
			remove("parley.db", "parley.db-wal", "commits", "audit.head")(t, dir)
			write(dir, "blobs/ab/abcd", "mine")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := killedDir(t, 10)
			damage(t, dir)
			head, _ := os.ReadFile(filepath.Join(dir, "audit.head"))
			if loss := refused(t, dir); !loss.Gone {
				t.Errorf("%+v", loss)
			}
			keep := func(o *store.Options) { o.Keep = []string{"parley.yaml"} }
			write(dir, "parley.yaml", "kept")
			s, err := openDir(t, dir, onLoss(store.BeginFresh), keep)
			if err != nil {
				t.Fatalf("--fresh: %v", err)
			}
			audited(t, s, workspace.AuditStoreFresh)
			aside, _ := filepath.Glob(filepath.Join(dir, "aside-*"))
			if len(aside) != 1 {
				t.Fatalf("moved aside: %v", aside)
			}
			if kept, _ := os.ReadFile(filepath.Join(aside[0], "audit.head")); !bytes.Equal(kept, head) {
				t.Errorf("the old head: %q, was %q", kept, head)
			}
			if text, err := os.ReadFile(filepath.Join(dir, "parley.yaml")); err != nil || string(text) != "kept" {
				t.Errorf("the configuration: %q %v", text, err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			again(t, dir)
		})
	}
}

// What people lay out before the first start is not a loss, and neither is a first start that was cut short.
func TestR19_AFirstStartAsksNothing(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]map[string]string{
		"an empty folder": {},
		"a configuration": {"parley.yaml": "x", "prices.json": "{}"},
		"a token":         {"token": "x"},
		"an agent":        {"agents/assistant/AGENTS.md": "x", "parley.yaml": "x"},
		"both":            {"token": "x", "agents/assistant/AGENTS.md": "x", "agents/assistant/SOUL.md": "x"},
		"a linked device": {"wa-wa.db": "x", "prices.json": "{}", "token": "x"},
		"a touched file":  {"parley.db": "", "lock": ""},
	} {
		dir := t.TempDir()
		for file, text := range prepare {
			file = filepath.Join(dir, file)
			if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		s, err := openDir(t, dir)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if rows, err := s.AuditAfter(0, 1); err != nil || len(rows) != 0 {
			t.Errorf("%s: %v %v", name, rows, err)
		}
	}
	t.Run("cut short", func(t *testing.T) {
		dir, cut := t.TempDir(), filepath.Join(t.TempDir(), "data")
		if _, err := openDir(t, dir, func(o *store.Options) {
			o.Point = func(name string) {
				if name == "commit boot" { // the database is laid out, and no boot is counted
					if err := os.CopyFS(cut, os.DirFS(dir)); err != nil {
						t.Error(err)
					}
				}
			}
		}); err != nil {
			t.Fatal(err)
		}
		if _, err := openDir(t, cut); err != nil {
			t.Error(err)
		}
	})
}

// What a unit does not store moves no number, so that a start after it finds nothing missing.
func TestR19_WhatIsNotStoredIsNotCounted(t *testing.T) {
	t.Parallel()
	p := storetest.SQLite(t)
	s := p.Open(t)
	c := storetest.NewChat(1)
	got, err := s.Accept(c.Message(s, "m:1", "x"))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := s.Batch(5, map[int]error{1: errors.New("no"), 4: errors.New("no")}); err != nil { // the others are run again
			t.Fatal(err)
		}
		if again, err := s.Accept(c.Message(s, "m:1", "x")); err != nil || !again[0].Duplicate {
			t.Fatalf("%+v %v", again, err)
		}
		if _, err := s.Outbound(store.NewOutbound{Key: "twice", RoomID: got[0].Input.RoomID, Text: "x", Spans: []store.Span{{To: 1}}}); err != nil {
			t.Fatal(err)
		}
	}
	p.Crash(t, s)
	again(t, p.Dir())
}

func TestR19_CopiesStart(t *testing.T) {
	t.Parallel()
	dir := killedDir(t, 10)
	copied := filepath.Join(t.TempDir(), "copied")
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	linked := filepath.Join(t.TempDir(), "linked")
	if err := os.Mkdir(linked, 0o700); err != nil {
		t.Fatal(err)
	}
	for name := range files(t, dir) {
		if err := os.Link(filepath.Join(dir, name), filepath.Join(linked, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []string{linked, copied} {
		s, err := openDir(t, d)
		if err != nil {
			t.Fatal(err)
		}
		if n := inputsIn(t, s); n != 10 {
			t.Errorf("%d of 10", n)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("a newer database beside an older count", func(t *testing.T) { // after a power cut
		old := files(t, copied)
		s, err := openDir(t, copied)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(s.SetSetting("a", "b"), s.Close()); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(copied, "commits"), old["commits"], 0o600); err != nil {
			t.Fatal(err)
		}
		again(t, copied)
		t.Run("and the other way round", func(t *testing.T) {
			if err := os.WriteFile(filepath.Join(copied, "parley.db"), old["parley.db"], 0o600); err != nil {
				t.Fatal(err)
			}
			if loss := refused(t, copied); loss.Commits < 2 || loss.Gone {
				t.Errorf("%+v", loss)
			}
		})
	})
	t.Run("the database of somebody else", func(t *testing.T) {
		other := files(t, killedDir(t, 99))
		for _, name := range []string{"parley.db", "parley.db-wal"} {
			if err := os.WriteFile(filepath.Join(linked, name), other[name], 0o600); err != nil {
				t.Fatal(err)
			}
		}
		refused(t, linked)
	})
}

// A database of before commits were counted starts, and is counted from then on.
func TestR19_AnUpgradeAsksNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := openDir(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	addRows(t, s, 2)
	chat := storetest.NewChat(1)
	chat.Addr.Network = "discord" // one of the two that were backfilled by their names
	var asked workspace.InputID
	for _, key := range []string{"m:1", "m:2"} {
		got, err := s.Accept(chat.Message(s, key, "x"))
		if err == nil {
			in := got[0].Input
			asked = in.ID
			_, err = s.Outbound(storetest.Notice(workspace.InputKey(in.ID, "reply"), in.RoomID, "fine"), storetest.Notice("room:"+key, in.RoomID, "away"))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	forge(t, dir, `ALTER TABLE approvals DROP COLUMN revoked_at`, `ALTER TABLE outbound DROP COLUMN input_id`, `DROP INDEX inputs_newest`, `ALTER TABLE inputs DROP COLUMN backfill`,
		`CREATE INDEX inputs_newest ON inputs (room_id, seq) WHERE source IN ('discord', 'slack') AND kind = 'message'`,
		`DROP TABLE reads`, `DROP TABLE commits`, `DROP INDEX runs_failing`, `ALTER TABLE runs DROP COLUMN deadline`, `ALTER TABLE runs DROP COLUMN held`, `ALTER TABLE runs DROP COLUMN trouble`,
		`DELETE FROM goose_db_version WHERE version_id > 1`)
	counted, err := os.ReadFile(filepath.Join(dir, "commits"))
	if err == nil {
		err = os.Remove(filepath.Join(dir, "commits"))
	}
	if err != nil {
		t.Fatal(err)
	}
	old := files(t, dir)
	if s, err = openDir(t, dir); err != nil {
		t.Fatal(err)
	}
	if r, err := s.VerifyAudit(t.Context(), nil); err != nil || r.Bad != nil || r.Rows != 2 {
		t.Errorf("audit log: %+v %v", r, err)
	}
	if newest, err := s.Newest("discord", chat.Addr.Account); err != nil || newest[chat.Addr.Peer] != "m:2" {
		t.Errorf("newest messages of rooms: %v %v", newest, err)
	}
	if left, err := s.OpenOutbound(); err != nil || len(left) != 4 || left[2].InputID != asked || left[3].InputID != "" {
		t.Errorf("what is not sent yet: %+v %v", left, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again(t, dir)
	for name, text := range map[string][]byte{"parley.db": old["parley.db"], "commits": counted} { // a copy from before beside the count of after
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	refused(t, dir)
}

func TestR19_ARestoreCountsAnew(t *testing.T) {
	t.Parallel()
	dir := killedDir(t, 10)
	s, err := openDir(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	file, back := filepath.Join(t.TempDir(), "backup"), filepath.Join(t.TempDir(), "back")
	if _, err := s.Backup(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Restore(t.Context(), file, back); err != nil {
		t.Fatal(err)
	}
	again(t, back)
	restored := files(t, back)
	for name := range restored { // what it was before is another database
		if strings.HasPrefix(name, "parley.db") {
			if err := os.Remove(filepath.Join(back, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(back, "parley.db"), files(t, dir)["parley.db"], 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, back)
}

// What cannot be read at all is moved aside as well.
func TestR19_FreshAlsoMovesWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	dir := killedDir(t, 3)
	junk := bytes.Repeat([]byte("junk"), 4096)
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "parley.db"), junk, 0o600), os.Remove(filepath.Join(dir, "parley.db-wal"))); err != nil {
		t.Fatal(err)
	}
	if _, err := openDir(t, dir); !errors.Is(err, store.ErrDamaged) {
		t.Fatalf("open: %v", err)
	}
	if _, err := openDir(t, dir, onLoss(store.AcceptLoss)); !errors.Is(err, store.ErrDamaged) {
		t.Fatalf("--accept-loss: %v", err)
	}
	if _, err := openDir(t, dir, onLoss(store.BeginFresh)); err != nil {
		t.Fatalf("--fresh: %v", err)
	}
	aside, _ := filepath.Glob(filepath.Join(dir, "aside-*", "parley.db"))
	if len(aside) != 1 {
		t.Fatal(aside)
	}
	if text, err := os.ReadFile(aside[0]); err != nil || !bytes.Equal(text, junk) {
		t.Errorf("what was moved aside is another: %v", err)
	}
}

func TestR19_PostgresBesideItsDataDirectory(t *testing.T) {
	t.Parallel()
	p := storetest.Postgres(t)
	s := p.Open(t)
	addRows(t, s, 3)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	db := p.DB(t)
	defer db.Close()
	open := func(change ...func(*store.Options)) (err error) {
		opt := p.Options()
		for _, c := range change {
			c(&opt)
		}
		s, err = store.Open(t.Context(), opt)
		return err
	}
	change := func(queries ...string) {
		t.Helper()
		for _, q := range queries {
			if _, err := db.ExecContext(t.Context(), q); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Run("an older dump", func(t *testing.T) {
		change(`UPDATE commits SET n = n - 2`, `DELETE FROM audit WHERE n = 3`)
		var loss *store.Loss
		if err := open(); !errors.As(err, &loss) || loss.Commits != 2 || loss.AuditRows != 1 {
			t.Fatalf("open: %v", err)
		}
		if err := open(onLoss(store.BeginFresh)); err == nil {
			t.Fatal("a database of PostgreSQL was said to be moved aside")
		}
		if err := open(onLoss(store.AcceptLoss)); err != nil {
			t.Fatal(err)
		}
		audited(t, s, workspace.AuditStoreLoss)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("emptied", func(t *testing.T) {
		change(tablesGone(t, db)...)
		var loss *store.Loss
		if err := open(); !errors.As(err, &loss) || !loss.Gone {
			t.Fatalf("open: %v", err)
		}
		if err := open(onLoss(store.BeginFresh)); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

func tablesGone(t *testing.T, db *sql.DB) (list []string) {
	rows, err := db.QueryContext(t.Context(), `SELECT 'DROP TABLE "' || table_name || '" CASCADE' FROM information_schema.tables WHERE table_schema = current_schema()`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var q string
		if err := rows.Scan(&q); err != nil {
			t.Fatal(err)
		}
		list = append(list, q)
	}
	return list
}

// What is taken away while it is in use would be lost at the end: the store stops at the next commit.
func TestR19_ALogThatIsRemovedWhileItIsInUseStopsTheStore(t *testing.T) {
	t.Parallel()
	dir, told := t.TempDir(), make(chan store.Health, 8)
	s, err := openDir(t, dir, func(o *store.Options) { o.OnHealth = func(h store.Health) { told <- h } })
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.SetSetting("a", "b"), os.Remove(filepath.Join(dir, "parley.db-wal"))); err != nil {
		t.Fatal(err)
	}
	if err := s.SetSetting("a", "c"); err != nil && !errors.Is(err, store.ErrDamaged) { // it may be noticed behind the first commit
		t.Fatal(err)
	}
	if h := <-told; h != store.Damaged {
		t.Errorf("told %s", h)
	}
	if err := s.SetSetting("a", "d"); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("written: %v", err)
	}
}
