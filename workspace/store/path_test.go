package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/channels"
	"parley/workspace"
	"parley/workspace/store"
	"parley/workspace/storetest"
)

// TestR18_DamageOnAnyPathStopsTheStore destroys one table of a database that ended well, and goes to it by every way
// there is.
func TestR18_DamageOnAnyPathStopsTheStore(t *testing.T) {
	t.Parallel()
	good := manyRows(t)
	ignore := func(_ any, err error) error { return err }
	for name, c := range map[string]struct {
		table string
		path  func(t *testing.T, s *store.Store) error
	}{
		"a list of sessions": {"sessions", func(_ *testing.T, s *store.Store) error { return ignore(s.Heads()) }},
		"a transcript":       {"entries", func(_ *testing.T, s *store.Store) error { return ignore(s.Mentions(firstSession(s), 10, "x")) }},
		"a run":              {"runs", func(_ *testing.T, s *store.Store) error { return ignore(s.RunsBefore("", 500)) }},
		"live runs":          {"runs", func(_ *testing.T, s *store.Store) error { return ignore(s.LiveRuns()) }},
		"steps":              {"steps", func(_ *testing.T, s *store.Store) error { return ignore(s.Steps("any")) }},
		"parts":              {"parts", func(_ *testing.T, s *store.Store) error { return ignore(s.OpenOutbound()) }},
		"an approval":        {"approvals", func(_ *testing.T, s *store.Store) error { return ignore(s.Approval("any")) }},
		"a room":             {"rooms", func(_ *testing.T, s *store.Store) error { return ignore(s.Room("any")) }},
		"people": {"people", func(_ *testing.T, s *store.Store) error {
			_, _, err := s.People()
			return err
		}},
		"a person":  {"accounts", func(_ *testing.T, s *store.Store) error { return ignore(s.Person("telegram", "42", "7")) }},
		"pairings":  {"pairings", func(_ *testing.T, s *store.Store) error { return ignore(s.Pairings(5)) }},
		"an upload": {"uploads", func(_ *testing.T, s *store.Store) error { return ignore(s.Upload("any", "any")) }},
		"an answer": {"answers", func(_ *testing.T, s *store.Store) error { return ignore(s.AnswerOf("any", "any")) }},
		"moves":     {"moves", func(_ *testing.T, s *store.Store) error { return ignore(s.Moves()) }},
		"files":     {"uploads", func(t *testing.T, s *store.Store) error { return ignore(s.BlobRefs(t.Context())) }},
		"the check": {"tasks", func(t *testing.T, s *store.Store) error { return s.Verify(t.Context()) }},
		"the writer": {"rooms", func(_ *testing.T, s *store.Store) error {
			return ignore(s.Accept(storetest.NewChat(999).Message(s, "m:new", "x")))
		}},
		"the begin of a run": {"runs", func(_ *testing.T, s *store.Store) error {
			return ignore(s.Accept(storetest.NewChat(1).Begun(s, "m:new", "x")))
		}},
		"a backup": {"leases", func(t *testing.T, s *store.Store) error {
			return ignore(s.Backup(t.Context(), filepath.Join(t.TempDir(), "b")))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "data")
			if err := os.CopyFS(dir, os.DirFS(good)); err != nil {
				t.Fatal(err)
			}
			destroy(t, filepath.Join(dir, "parley.db"), c.table)
			log := &countedLog{}
			s, err := openDir(t, dir, func(o *store.Options) { o.Log = slog.New(log) })
			if err != nil {
				t.Fatalf("open: %v", err)
			}
			if err := c.path(t, s); !errors.Is(err, store.ErrDamaged) {
				t.Errorf("%v", err)
			}
			stopped(t, s, dir)
			if n := log.said.Load(); n != 1 {
				t.Errorf("the operator is told %d times", n)
			}
		})
	}
}

// stopped wants a store to take and write nothing.
func stopped(t *testing.T, s *store.Store, dir string) {
	t.Helper()
	if h, why := s.Health(); h != store.Damaged || !strings.Contains(why, "parley restore") {
		t.Fatalf("health: %s %s", h, why)
	}
	before := files(t, dir)
	if _, err := s.Accept(storetest.NewChat(2).Message(s, "m:late", "x")); !errors.Is(err, channels.ErrUnwritable) {
		t.Errorf("accepted: %v", err)
	}
	if err := s.Audit(workspace.AuditRow{Kind: "any"}); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("written: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	for name, text := range files(t, dir) {
		if string(before[name]) != string(text) {
			t.Errorf("%s was written to", name)
		}
	}
}

// countedLog counts the lines that tell an operator what to do.
type countedLog struct{ said atomic.Int64 }

func (*countedLog) Enabled(context.Context, slog.Level) bool { return true }
func (l *countedLog) WithAttrs([]slog.Attr) slog.Handler     { return l }
func (l *countedLog) WithGroup(string) slog.Handler          { return l }

func (l *countedLog) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "hint" && strings.Contains(a.Value.String(), "parley restore") {
			l.said.Add(1)
		}
		return true
	})
	return nil
}

func firstSession(s *store.Store) workspace.SessionID {
	list, err := s.Heads()
	if err != nil || len(list) == 0 {
		return ""
	}
	return list[0].ID
}

// manyRows is a closed database in which each table has pages of its own.
func manyRows(t *testing.T) string {
	p := storetest.SQLite(t)
	s := p.Open(t)
	for n := range 60 {
		fillOne(t, s, n)
	}
	addRows(t, s, 2)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return p.Dir()
}

// destroy overwrites the first page of a table and of its indexes, all of which have one, however few their rows are.
func destroy(t *testing.T, name, table string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+name+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.QueryContext(t.Context(), `SELECT rootpage FROM sqlite_schema WHERE tbl_name = ? AND rootpage > 0`, table)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for rows.Next() {
		var page int64
		if err := rows.Scan(&page); err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt(make([]byte, 4096), (page-1)*4096); err != nil {
			t.Fatal(err)
		}
	}
	if rows.Err() != nil {
		t.Fatal(rows.Err())
	}
}

// The check that follows every start finds what nobody asks for.
func TestR18_DamageIsFoundSoonAfterACleanEnd(t *testing.T) {
	t.Parallel()
	dir := manyRows(t)
	destroy(t, filepath.Join(dir, "parley.db"), "holds")
	told := make(chan store.Health, 8)
	began := time.Now()
	s, err := openDir(t, dir, func(o *store.Options) { o.OnHealth = func(h store.Health) { told <- h } })
	if err != nil {
		t.Fatal(err)
	}
	if h := <-told; h != store.Damaged {
		t.Errorf("told %s", h)
	}
	t.Log("found after ", time.Since(began))
	stopped(t, s, dir)
}

// A value of a kind that we never store there is damage as well.
func TestR18_AValueThatCannotBeReadIsDamage(t *testing.T) {
	t.Parallel()
	good := manyRows(t)
	for i, c := range []struct {
		change string
		path   func(s *store.Store) error
	}{
		{`UPDATE sessions SET overrides = '{'`, func(s *store.Store) error {
			_, err := s.Session(firstSession(s))
			return err
		}},
		{`UPDATE sessions SET gen = 'x'`, func(s *store.Store) error {
			_, err := s.Session(firstSession(s))
			return err
		}},
		{`UPDATE sessions SET key = 'nobody' WHERE id = (SELECT MIN(id) FROM sessions)`, func(s *store.Store) error {
			_, err := s.Heads()
			return err
		}},
		{`UPDATE runs SET usage = '['`, func(s *store.Store) error {
			_, err := s.RunsBefore("", 5)
			return err
		}},
		{`DELETE FROM commits`, func(s *store.Store) error { return s.SetSetting("a", "b") }},
	} {
		dir := filepath.Join(t.TempDir(), fmt.Sprint(i))
		if err := os.CopyFS(dir, os.DirFS(good)); err != nil {
			t.Fatal(err)
		}
		s, err := openDir(t, dir)
		if err != nil {
			t.Fatal(err)
		}
		forge(t, dir, c.change)
		if err := c.path(s); !errors.Is(err, store.ErrDamaged) {
			t.Errorf("%s: %v", c.change, err)
		}
		if h, _ := s.Health(); h != store.Damaged {
			t.Errorf("%s: health %s", c.change, h)
		}
	}
}
