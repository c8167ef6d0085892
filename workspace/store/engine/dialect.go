// What differs between SQLite and PostgreSQL.

package engine

import (
	"context"
	"database/sql"
	"time"

	"github.com/pressly/goose/v3"
)

// dialect is what differs between the two databases.
type dialect interface {
	opener
	wording
	faults
	outcome
}

type opener interface {
	name() string
	open(ctx context.Context, looked *sql.DB) (write, read *sql.DB, err error) // looked becomes the reader; nil: one is made
	look(ctx context.Context) (*sql.DB, error)                                 // a reader that changes nothing; nil: there is no database yet
	// claim makes the connection the only writer's until it ends.
	claim(ctx context.Context, conn *sql.Conn) error
	gooseDialect() goose.Dialect
}

type wording interface {
	tables() string            // asks for the names of all tables
	bind(query string) string  // placeholders
	schema(text string) string // types
	begin() string             // opens the writer's transaction
}

type faults interface {
	broken(err error) bool     // not, or no longer, a database that can be read
	unwritable(err error) bool // full, read-only, busy or gone: heals by itself, nothing was stored
	corrupt(err error) bool    // the database says that it is damaged
}

// outcome is how a commit whose answer is lost is found out about.
type outcome interface {
	txTimeout() time.Duration // of a transaction; 0: no limit
	// mark is what the statement that counts a transaction returns to name it; empty where a lost answer cannot happen.
	mark() string
	// commitOutcome says whether a marked transaction was committed; an error while that cannot be known.
	commitOutcome(ctx context.Context, conn *sql.Conn, mark string) (committed bool, err error)
}
