// SQLite.

package engine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/pressly/goose/v3"
	moderncsqlite "modernc.org/sqlite"
)

type sqlite struct{ path, synchronous string }

func (sqlite) name() string                { return "sqlite" }
func (sqlite) bind(q string) string        { return q }
func (sqlite) schema(t string) string      { return t }
func (sqlite) begin() string               { return "BEGIN IMMEDIATE" }
func (sqlite) gooseDialect() goose.Dialect { return goose.DialectSQLite3 }

func (d sqlite) open(ctx context.Context, looked *sql.DB) (write, read *sql.DB, err error) {
	level := d.synchronous
	if level == "" {
		level = "FULL"
	}
	if write, err = sql.Open("sqlite", d.dsn("rwc", level)); err != nil {
		return nil, nil, err
	}
	write.SetMaxOpenConns(2) // the writer's, and one for checkpoints and migrations
	write.SetMaxIdleConns(2)
	if err := os.Chmod(d.path, 0o600); err != nil && !errors.Is(err, os.ErrNotExist) {
		return write, nil, err
	}
	if err := readBack(ctx, write, level); err != nil {
		return write, nil, err
	}
	if err := os.Chmod(d.path, 0o600); err != nil {
		return write, nil, err
	}
	if read = looked; read == nil {
		if read, err = sql.Open("sqlite", d.dsn("ro", level)); err != nil {
			return write, nil, err
		}
	}
	read.SetMaxOpenConns(4)
	read.SetMaxIdleConns(2)
	return write, read, nil
}

// look makes no database, and a log that is there stays as it is: who only reads never writes it back.
func (d sqlite) look(context.Context) (*sql.DB, error) {
	info, err := os.Stat(d.path)
	switch {
	case errors.Is(err, os.ErrNotExist) || err == nil && info.Size() == 0:
		return nil, nil
	case err != nil:
		return nil, err
	}
	db, err := sql.Open("sqlite", d.dsn("ro", ""))
	if err == nil {
		db.SetMaxOpenConns(1)
	}
	return db, err
}

func (sqlite) tables() string {
	return `SELECT name FROM sqlite_schema WHERE type = 'table'`
}

func (d sqlite) dsn(mode, level string) string {
	q := url.Values{"mode": {mode}, "_txlock": {"immediate"}, "_pragma": {
		"busy_timeout(5000)", "journal_mode(WAL)", "synchronous(" + level + ")", "foreign_keys(1)",
		"wal_autocheckpoint(0)", "journal_size_limit(1048576)", "cache_size(-2048)", "cache_spill(0)", "temp_store(MEMORY)"}}
	if mode == "ro" {
		q["_pragma"] = []string{"busy_timeout(5000)", "query_only(1)", "cache_size(-1024)"}
	}
	return "file:" + (&url.URL{Path: d.path}).EscapedPath() + "?" + q.Encode()
}

// readBack refuses to run on settings that are not what the promises rest on.
func readBack(ctx context.Context, db *sql.DB, level string) error {
	levels := map[string]string{"OFF": "0", "NORMAL": "1", "FULL": "2", "EXTRA": "3"}
	settings := map[string]string{"journal_mode": "wal", "synchronous": levels[level], "foreign_keys": "1", "wal_autocheckpoint": "0"}
	for pragma, want := range settings {
		var got string
		if err := db.QueryRowContext(ctx, "PRAGMA "+pragma).Scan(&got); err != nil {
			return fmt.Errorf("read back pragma %s: %w", pragma, err)
		}
		if got != want {
			return fmt.Errorf("pragma %s is %s, want %s", pragma, got, want)
		}
	}
	return nil
}

// broken says that the file is not, or no longer, a database that can be read.
func (sqlite) broken(err error) bool {
	var e *moderncsqlite.Error
	if !errors.As(err, &e) {
		return false
	}
	code := e.Code() & 0xff
	return code == 11 || code == 26 || // CORRUPT, NOTADB
		code == 1 && strings.Contains(err.Error(), "goose_db_version") // a schema that cannot be read
}

// unwritable knows SQLite's result codes (sqlite.org/rescode.html): busy, locked, out of memory, read-only, I/O
// error, full, cannot open, locking protocol.
func (sqlite) unwritable(err error) bool {
	switch resultCode(err) {
	case 5, 6, 7, 8, 10, 13, 14, 15:
		return true
	}
	return false
}

// corrupt: "database disk image is malformed" and "file is not a database" with all that extends them, checksums and
// file systems that call themselves broken, and a schema that lacks what the statements name: they do not change.
func (sqlite) corrupt(err error) bool {
	var e *moderncsqlite.Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Code() {
	case 8202, 8458: // SQLITE_IOERR_DATA, SQLITE_IOERR_CORRUPTFS
		return true
	}
	switch e.Code() & 0xff {
	case 11, 26: // SQLITE_CORRUPT, SQLITE_NOTADB
		return true
	case 1: // SQLITE_ERROR
		return strings.Contains(e.Error(), "no such table") || strings.Contains(e.Error(), "no such column") ||
			strings.Contains(e.Error(), "has no column named")
	}
	return false
}

func resultCode(err error) int {
	var e *moderncsqlite.Error
	if !errors.As(err, &e) {
		return 0
	}
	return e.Code() & 0xff
}

func (sqlite) txTimeout() time.Duration               { return 0 }
func (sqlite) claim(context.Context, *sql.Conn) error { return nil } // the directory's lock has done it
func (sqlite) mark() string                           { return "" }  // a COMMIT in the same process has an answer
func (sqlite) commitOutcome(context.Context, *sql.Conn, string) (bool, error) {
	return false, nil
}
