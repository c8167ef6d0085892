// Package storetest is the suite that the store passes on both databases, and the means to end a store as a power
// cut would. It is for tests only.
//
// Goroutines: the proxy in front of PostgreSQL, ended by the test's cleanup.
package storetest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib" // driver "pgx"

	"parley/workspace"
	"parley/workspace/store"
)

// Place is one database that can be opened again and again.
type Place struct {
	dir   string // data directory
	cable *cable // to PostgreSQL; nil on SQLite
	dsn   string
	// direct goes to the same schema beside the cable.
	direct string
}

// SQLite is a fresh place.
func SQLite(t testing.TB) *Place {
	t.Helper()
	return &Place{dir: filepath.Join(t.TempDir(), "data")}
}

// Postgres is a fresh schema of the server that PARLEY_TEST_POSTGRES (a connection string) names. Without one the
// test is skipped, or fails where CI=true.
func Postgres(t testing.TB) *Place {
	t.Helper()
	dsn := os.Getenv("PARLEY_TEST_POSTGRES")
	if dsn == "" && os.Getenv("CI") == "true" {
		t.Fatal("PARLEY_TEST_POSTGRES is not set, and CI must not skip PostgreSQL")
	}
	if dsn == "" {
		t.Skip("SKIPPED: PARLEY_TEST_POSTGRES is not set, so the store is not tried on PostgreSQL")
	}
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	ids := workspace.IDs{Now: time.Now}
	schema := "test_" + strings.ToLower(ids.New())
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(`CREATE SCHEMA "` + schema + `"`); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, err := db.Exec(`DROP SCHEMA "` + schema + `" CASCADE`)
		if err = errors.Join(err, db.Close()); err != nil {
			t.Error(err)
		}
	})
	p := &Place{dir: filepath.Join(t.TempDir(), "data"), cable: newCable(t, config)}
	q := url.Values{"host": {p.cable.dir}, "search_path": {schema}, "sslmode": {"disable"}}
	beside := url.Values{"host": {config.Host}, "port": {fmt.Sprint(config.Port)}, "search_path": {schema}, "sslmode": {"disable"}}
	p.direct = (&url.URL{Scheme: "postgres", User: url.UserPassword(config.User, config.Password), Path: "/" + config.Database, RawQuery: beside.Encode()}).String()
	p.dsn = (&url.URL{Scheme: "postgres", User: url.UserPassword(config.User, config.Password), Path: "/" + config.Database, RawQuery: q.Encode()}).String()
	return p
}

// Dir is where the place's files are now.
func (p *Place) Dir() string { return p.dir }

// OnPostgres says which database it is.
func (p *Place) OnPostgres() bool { return p.cable != nil }

// Options are those of a store in the place.
func (p *Place) Options() store.Options {
	return store.Options{Dir: p.dir, Postgres: p.dsn, Now: time.Now, BallastBytes: -1}
}

// Open opens the store; change may set further options. The test's cleanup closes it.
func (p *Place) Open(t testing.TB, change ...func(*store.Options)) *store.Store {
	t.Helper()
	opt := p.Options()
	for _, c := range change {
		c(&opt)
	}
	s, err := store.Open(context.WithoutCancel(t.Context()), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// DB is a connection of the test's own, to look at what is stored.
func (p *Place) DB(t testing.TB) *sql.DB {
	t.Helper()
	driver, dsn := "sqlite", "file:"+(&url.URL{Path: filepath.Join(p.dir, "parley.db")}).EscapedPath()+"?mode=ro"
	if p.cable != nil {
		driver, dsn = "pgx", p.dsn
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// Crash ends s as a power cut would: what is committed at this moment stays, what is on its way may, and nothing
// is marked as clean. The next Open finds that state.
func (p *Place) Crash(t testing.TB, s *store.Store) {
	t.Helper()
	if p.cable != nil {
		p.cable.Cut()
		_ = s.Close() // it finds no database: that is the point
		p.cable.Mend()
		return
	}
	next := filepath.Join(t.TempDir(), "data")
	if err := copyCrashed(p.dir, next); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil { // of the left one: nobody looks there again
		t.Fatal(err)
	}
	p.dir = next
}

// copyCrashed copies a running SQLite store: the database before its log, so that a log that grows meanwhile is
// only a later crash. (A checkpoint in between would tear it; none comes below 16 MiB.)
func copyCrashed(from, to string) error {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	for _, name := range []string{"commits", "audit.head", "parley.db", "parley.db-wal"} { // the first two may be behind
		if err := copyFile(filepath.Join(from, name), filepath.Join(to, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		return fmt.Errorf("copy %s: %w", from, errors.Join(err, out.Close()))
	}
	return out.Close()
}
