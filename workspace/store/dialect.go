package store

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"time"

	"github.com/pressly/goose/v3"
	"golang.org/x/sys/unix"
)

// dialect is what differs between the two databases.
type dialect interface {
	name() string
	open(ctx context.Context) (write, read *sql.DB, err error)
	bind(query string) string   // placeholders
	schema(text string) string  // types
	begin() string              // opens the writer's transaction
	bigint(query string) string // casts to 64 bits
	broken(err error) bool      // not, or no longer, a database that can be read
	unwritable(err error) bool  // full, read-only, busy or gone: heals by itself, nothing was stored
	corrupt(err error) bool     // the database says that it is damaged
	gooseDialect() goose.Dialect
	patience() time.Duration // of a transaction; 0: no limit
	// claim makes the connection the only writer's until it ends.
	claim(ctx context.Context, conn *sql.Conn) error
	// mark is the query that names the running transaction; empty where a lost answer cannot happen.
	mark() string
	// fate says whether a marked transaction was committed; an error while that cannot be known.
	fate(ctx context.Context, conn *sql.Conn, mark string) (committed bool, err error)
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
