// The writer's connection.

package engine

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
)

// conn is the writer's connection with its prepared statements. It speaks to the driver directly: with small statements,
// nine a message, what database/sql does around each of them counts.
type conn struct {
	d     dialect
	sql   *sql.Conn
	raw   driver.ConnPrepareContext // valid inside use only
	stmts map[string]driver.Stmt
	args  []driver.NamedValue
	lost  bool // a statement could not be undone: the connection must not be used again
}

// use runs do with the driver's connection. A connection that was lost is not used again.
func (c *conn) use(do func() error) error {
	var err error
	rawErr := c.sql.Raw(func(dc any) error {
		raw, ok := dc.(driver.ConnPrepareContext)
		if !ok {
			err = fmt.Errorf("driver %T prepares nothing", dc)
			return nil
		}
		c.raw = raw
		err = do()
		c.raw = nil
		return nil
	})
	if err == nil && rawErr != nil {
		c.lost = true
		err = rawErr
	}
	return err
}

func (c *conn) rollback(t *Tx) {
	if err := t.plain("ROLLBACK"); err != nil {
		c.lost = true // in doubt: a new connection rolls back by itself
	}
}

func (c *conn) closeStatements() {
	if c.sql == nil || len(c.stmts) == 0 {
		return
	}
	_ = c.sql.Raw(func(any) error { // a closed connection has closed them
		for _, st := range c.stmts {
			_ = st.Close() // nothing is lost with a statement
		}
		return nil
	})
	c.stmts = nil
}

// discard drops the connection: the pool must not hand it out again.
func (c *conn) discard() {
	if c.sql == nil {
		return
	}
	c.closeStatements()
	_ = c.sql.Raw(func(any) error { return driver.ErrBadConn }) // what makes the pool close it
	_ = c.sql.Close()                                           // is closed
	c.sql, c.stmts = nil, nil
}

func (c *conn) stmt(ctx context.Context, q string) (driver.Stmt, error) {
	if st, ok := c.stmts[q]; ok {
		return st, nil
	}
	st, err := c.raw.PrepareContext(ctx, c.d.bind(q))
	if err != nil {
		return nil, fmt.Errorf("prepare %.40q: %w", q, err)
	}
	if c.stmts == nil {
		c.stmts = map[string]driver.Stmt{}
	}
	c.stmts[q] = st
	return st, nil
}

// values are the arguments as drivers take them. The slice is used again by the next statement.
func (c *conn) values(args []any) []driver.NamedValue {
	c.args = c.args[:0]
	for i, a := range args {
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: storable(a)})
	}
	return c.args
}
