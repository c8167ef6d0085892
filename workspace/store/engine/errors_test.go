package engine

import (
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"parley/workspace"
)

// Which errors heal by themselves, which are damage, and which are a unit's own fault.
func TestR09_ErrorsOfSQLiteAreToldApart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	try := func(name, dsn, q string) error {
		db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, name)+dsn)
		if err != nil {
			t.Fatal(err)
		}
		_, err = db.Exec(q)
		return errors.Join(err, db.Close())
	}
	if err := try("good.db", "", "CREATE TABLE t (a UNIQUE); INSERT INTO t VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "bad.db"), make([]byte, 8192), 0o600); err != nil {
		t.Fatal(err)
	}
	text := "this is not a database, whatever its name says, and it is long enough to be looked at as if it were one, header and all"
	if err := os.WriteFile(filepath.Join(dir, "text.db"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what                string
		err                 error
		unwritable, corrupt bool
	}{
		{"a read-only database", try("good.db", "?mode=ro", "INSERT INTO t VALUES (2)"), true, false},
		{"query_only", try("good.db", "?_pragma=query_only(1)", "INSERT INTO t VALUES (2)"), true, false},
		{"no such file", try("none.db", "?mode=ro", "SELECT 1 FROM t"), true, false},
		{"not a database", try("text.db", "", "SELECT 1 FROM t"), false, true},
		{"a broken unique key", try("good.db", "", "INSERT INTO t VALUES (1)"), false, false},
		{"a missing table", try("good.db", "", "INSERT INTO u VALUES (1)"), false, true},
		{"a refused edge", fmt.Errorf("x: %w", workspace.ErrConflict), false, false},
	} {
		if c.err == nil {
			t.Errorf("%s: no error", c.what)
		}
		if d := (sqlite{}); d.unwritable(c.err) != c.unwritable || d.corrupt(c.err) != c.corrupt {
			t.Errorf("%s: unwritable %v, corrupt %v: %v", c.what, d.unwritable(c.err), d.corrupt(c.err), c.err)
		}
	}
}

func TestR09_ErrorsOfPostgresAreToldApart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err                 error
		unwritable, corrupt bool
	}{
		{&pgconn.PgError{Code: "53100"}, true, false}, // disk_full
		{&pgconn.PgError{Code: "25006"}, true, false}, // read_only_sql_transaction: a standby
		{&pgconn.PgError{Code: "57P01"}, true, false}, // admin_shutdown
		{&pgconn.PgError{Code: "55P03"}, true, false}, // lock_not_available
		{&pgconn.PgError{Code: "08006"}, true, false},
		{fmt.Errorf("commit: %w", io.ErrUnexpectedEOF), true, false},
		{&pgconn.PgError{Code: "XX001"}, false, true},  // data_corrupted
		{&pgconn.PgError{Code: "XX002"}, false, true},  // index_corrupted
		{&pgconn.PgError{Code: "58P01"}, false, true},  // undefined_file: of the server
		{&pgconn.PgError{Code: "42P01"}, false, true},  // undefined_table
		{&pgconn.PgError{Code: "23505"}, false, false}, // unique_violation
		{&pgconn.PgError{Code: "25P02"}, false, false}, // in_failed_sql_transaction: ours to mend
		{&pgconn.PgError{Code: "22021"}, false, false},
		{workspace.ErrConflict, false, false},
	} {
		if d := (postgres{}); d.unwritable(c.err) != c.unwritable || d.corrupt(c.err) != c.corrupt {
			t.Errorf("%v: unwritable %v, corrupt %v", c.err, d.unwritable(c.err), d.corrupt(c.err))
		}
	}
}
