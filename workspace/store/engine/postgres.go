// PostgreSQL.

package engine

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
)

type postgres struct{ dsn string }

func (postgres) name() string                { return "postgres" }
func (postgres) begin() string               { return "BEGIN" }
func (postgres) gooseDialect() goose.Dialect { return goose.DialectPostgres }
func (postgres) txTimeout() time.Duration    { return 30 * time.Second }

func (d postgres) open(ctx context.Context, looked *sql.DB) (write, read *sql.DB, err error) {
	config, err := pgx.ParseConfig(d.dsn)
	if err != nil {
		return nil, nil, err // pgx leaves the password out
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = 5 * time.Second
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "parley"
	}
	write = stdlib.OpenDB(*config)
	write.SetMaxOpenConns(2) // the writer's, and one for migrations
	if err = durable(ctx, write); err != nil {
		return write, nil, err
	}
	if read = looked; read == nil {
		read = stdlib.OpenDB(*config)
	}
	read.SetMaxOpenConns(4)
	read.SetMaxIdleConns(4)
	return write, read, nil
}

func (d postgres) look(context.Context) (*sql.DB, error) {
	config, err := pgx.ParseConfig(d.dsn)
	if err != nil {
		return nil, err
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = 5 * time.Second
	}
	db := stdlib.OpenDB(*config)
	db.SetMaxOpenConns(1)
	return db, nil
}

func (postgres) tables() string {
	return `SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()`
}

// durable refuses a server whose COMMIT does not mean what the promises rest on.
func durable(ctx context.Context, db *sql.DB) error {
	var level string
	if err := db.QueryRowContext(ctx, "SHOW synchronous_commit").Scan(&level); err != nil {
		return fmt.Errorf("read back synchronous_commit: %w", err)
	}
	if level == "off" {
		return errors.New("synchronous_commit is off: a commit could be lost; set it to on for this role or database")
	}
	return nil
}

// bind turns each ? into $1, $2 …; queries hold no literal question mark.
func (postgres) bind(q string) string {
	q = strings.ReplaceAll(q, "AS INTEGER", "AS BIGINT")
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

// claim takes a lock that ends with the session: there is one writer, and what an earlier connection of this process
// began has ended by then. (A pooler that hands sessions out by transaction breaks this.)
func (postgres) claim(ctx context.Context, conn *sql.Conn) error {
	const lock = `SELECT pg_advisory_lock(1885434476, hashtext(COALESCE(current_schema(), '')))` // "parl"
	for _, q := range []string{"SET lock_timeout = '5s'", lock, "SET lock_timeout = 0"} {
		if _, err := conn.ExecContext(ctx, q); err != nil {
			return fmt.Errorf("claim the database, which another process may use: %w", err)
		}
	}
	return nil
}

func (postgres) mark() string { return ` RETURNING CAST(pg_current_xact_id() AS TEXT)` }

// commitOutcome asks the commit log (postgresql.org/docs/current/functions-info.html, pg_xact_status).
func (postgres) commitOutcome(ctx context.Context, conn *sql.Conn, mark string) (bool, error) {
	var status sql.NullString
	if err := conn.QueryRowContext(ctx, `SELECT pg_xact_status(CAST($1 AS xid8))`, mark).Scan(&status); err != nil {
		return false, err
	}
	switch status.String {
	case "committed":
		return true, nil
	case "aborted":
		return false, nil
	}
	return false, fmt.Errorf("transaction %s is %q: %w", mark, status.String, errUnsettled)
}

func (postgres) broken(error) bool { return false } // its server says so itself

// unwritable knows SQLSTATE classes (postgresql.org/docs/current/errcodes-appendix.html): connection, resources,
// object in use, operator, system; a standby's read-only transaction; and a connection that went away.
func (postgres) unwritable(err error) bool {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return disconnected(err)
	}
	if e.Code == "58P01" { // a file that is missing does not come back by itself
		return false
	}
	switch e.Code[:2] {
	case "08", "53", "55", "57", "58":
		return true
	}
	return e.Code == "25006" || e.Code == "40001" || e.Code == "40P01"
}

func disconnected(err error) bool {
	var network net.Error
	var connect *pgconn.ConnectError
	if errors.As(err, &network) || errors.As(err, &connect) || pgconn.SafeToRetry(err) || pgconn.Timeout(err) {
		return true
	}
	for _, known := range []error{driver.ErrBadConn, sql.ErrConnDone, io.EOF, io.ErrUnexpectedEOF, context.DeadlineExceeded, net.ErrClosed} {
		if errors.Is(err, known) {
			return true
		}
	}
	return strings.Contains(err.Error(), "conn closed") // pgconn keeps this one to itself
}

// corrupt: data_corrupted, index_corrupted, a file of the server that is not there (undefined_file), and a schema that
// lacks what the statements name.
func (postgres) corrupt(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && slices.Contains([]string{"XX001", "XX002", "58P01", "42P01", "42703"}, e.Code)
}
