package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib" // driver "pgx"
	"github.com/pressly/goose/v3"
	"golang.org/x/sys/unix"
	moderncsqlite "modernc.org/sqlite"
)

//go:embed migrations/*.sql
var migrations embed.FS

// dialect is what differs between the two databases.
type dialect interface {
	name() string
	open(ctx context.Context) (write, read *sql.DB, err error)
	bind(query string) string   // placeholders
	schema(text string) string  // types
	begin() string              // opens the writer's transaction
	bigint(query string) string // casts to 64 bits
	unwritable(err error) bool  // full, read-only or gone: heals by itself, nothing was stored
	gooseDialect() goose.Dialect
}

type sqlite struct{ path, synchronous string }

func (sqlite) name() string                { return "sqlite" }
func (sqlite) bind(q string) string        { return q }
func (sqlite) schema(t string) string      { return t }
func (sqlite) begin() string               { return "BEGIN IMMEDIATE" }
func (sqlite) bigint(q string) string      { return q }
func (sqlite) gooseDialect() goose.Dialect { return goose.DialectSQLite3 }

func (d sqlite) open(ctx context.Context) (write, read *sql.DB, err error) {
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
	if read, err = sql.Open("sqlite", d.dsn("ro", level)); err != nil {
		return write, nil, err
	}
	read.SetMaxOpenConns(4)
	read.SetMaxIdleConns(2)
	return write, read, nil
}

func (d sqlite) dsn(mode, level string) string {
	q := url.Values{"mode": {mode}, "_txlock": {"immediate"}, "_pragma": {
		"busy_timeout(5000)", "journal_mode(WAL)", "synchronous(" + level + ")", "foreign_keys(1)",
		"wal_autocheckpoint(0)", "journal_size_limit(1048576)", "cache_size(-2048)", "temp_store(MEMORY)"}}
	if mode == "ro" {
		q["_pragma"] = []string{"busy_timeout(5000)", "query_only(1)", "cache_size(-1024)"}
	}
	return "file:" + (&url.URL{Path: d.path}).EscapedPath() + "?" + q.Encode()
}

// readBack refuses to run on settings that are not what the promises rest on.
func readBack(ctx context.Context, db *sql.DB, level string) error {
	levels := map[string]string{"OFF": "0", "NORMAL": "1", "FULL": "2", "EXTRA": "3"}
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": levels[level], "foreign_keys": "1", "wal_autocheckpoint": "0"} {
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

func (sqlite) unwritable(err error) bool {
	var e *moderncsqlite.Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Code() & 0xff {
	case 8, 10, 13, 14: // READONLY, IOERR, FULL, CANTOPEN
		return true
	}
	return false
}

type postgres struct{ dsn string }

func (postgres) name() string                { return "postgres" }
func (postgres) begin() string               { return "BEGIN" }
func (postgres) bigint(q string) string      { return strings.ReplaceAll(q, "AS INTEGER", "AS BIGINT") }
func (postgres) gooseDialect() goose.Dialect { return goose.DialectPostgres }

func (d postgres) open(ctx context.Context) (write, read *sql.DB, err error) {
	if write, err = sql.Open("pgx", d.dsn); err != nil {
		return nil, nil, err
	}
	write.SetMaxOpenConns(2)
	if err = write.PingContext(ctx); err != nil {
		return write, nil, err
	}
	if read, err = sql.Open("pgx", d.dsn); err != nil {
		return write, nil, err
	}
	read.SetMaxOpenConns(4)
	return write, read, nil
}

// bind turns each ? into $1, $2 …; our queries hold no literal question mark.
func (postgres) bind(q string) string {
	var b strings.Builder
	n := 0
	for _, c := range []byte(q) {
		if c == '?' {
			n++
			b.WriteString("$" + strconv.Itoa(n))
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}

func (postgres) schema(t string) string {
	return strings.NewReplacer(" INTEGER", " BIGINT", " WITHOUT ROWID", "").Replace(t)
}

func (postgres) unwritable(err error) bool {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return errors.Is(err, sql.ErrConnDone) || pgconn.SafeToRetry(err) || strings.Contains(err.Error(), "bad connection") ||
			strings.Contains(err.Error(), "conn closed") || strings.Contains(err.Error(), "connect")
	}
	switch e.Code[:2] {
	case "53", "57", "58", "08", "25": // resources, operator intervention, system, connection, read-only
		return true
	}
	return false
}

// migrate brings the schema up to date. Two processes that start together on one PostgreSQL wait for each other.
func migrate(ctx context.Context, db *sql.DB, d dialect) error {
	files, err := migrations.ReadDir("migrations")
	if err != nil {
		return err
	}
	var list []*goose.Migration
	for _, f := range files {
		text, err := migrations.ReadFile(path.Join("migrations", f.Name()))
		if err != nil {
			return err
		}
		version, err := strconv.ParseInt(f.Name()[:4], 10, 64)
		if err != nil {
			return fmt.Errorf("name of %s: %w", f.Name(), err)
		}
		up, down, _ := strings.Cut(d.schema(string(text)), "-- +goose Down")
		list = append(list, goose.NewGoMigration(version, step(up), step(down)))
	}
	if newest, err := newestVersion(ctx, db); err == nil && newest == int64(len(list)) {
		return nil // the usual start: nothing to do, and no need to ask goose
	}
	provider, err := goose.NewProvider(d.gooseDialect(), db, nil, goose.WithGoMigrations(list...), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	_, err = provider.Up(ctx)
	return err
}

func step(text string) *goose.GoFunc {
	return &goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, text)
		return err
	}}
}

func newestVersion(ctx context.Context, db *sql.DB) (v int64, err error) {
	err = db.QueryRowContext(ctx, `SELECT MAX(version_id) FROM goose_db_version WHERE is_applied`).Scan(&v)
	return v, err
}

// lockDir takes the data directory for this process; the lock goes with it.
func lockDir(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock file: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("data directory is in use by another process: %w", err)
	}
	return f, nil
}
