package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"unicode/utf8"

	"parley/workspace"
)

// link is the writer's connection with its prepared statements. It speaks to the driver directly: nine small
// statements a message make what database/sql does around each of them count.
type link struct {
	d     dialect
	conn  *sql.Conn
	raw   driver.ConnPrepareContext // valid inside use only
	stmts map[string]driver.Stmt
	args  []driver.NamedValue
	lost  bool // a statement could not be undone: the connection must not be used again
}

// use runs do with the driver's connection. A connection that was lost is not used again.
func (l *link) use(do func() error) error {
	var err error
	rawErr := l.conn.Raw(func(dc any) error {
		raw, ok := dc.(driver.ConnPrepareContext)
		if !ok {
			err = fmt.Errorf("driver %T prepares nothing", dc)
			return nil
		}
		l.raw = raw
		err = do()
		l.raw = nil
		return nil
	})
	if err == nil && rawErr != nil {
		l.lost = true
		err = rawErr
	}
	return err
}

func (l *link) rollback(t *tx) {
	if err := t.plain("ROLLBACK"); err != nil {
		l.lost = true // in doubt: a new connection rolls back by itself
	}
}

func (l *link) closeStatements() {
	if l.conn == nil || len(l.stmts) == 0 {
		return
	}
	_ = l.conn.Raw(func(any) error { // a closed connection has closed them
		for _, st := range l.stmts {
			_ = st.Close() // nothing is lost with a statement
		}
		return nil
	})
	l.stmts = nil
}

// discard drops the connection: the pool must not hand it out again.
func (l *link) discard() {
	if l.conn == nil {
		return
	}
	l.closeStatements()
	_ = l.conn.Raw(func(any) error { return driver.ErrBadConn }) // what makes the pool close it
	_ = l.conn.Close()                                           // is closed
	l.conn, l.stmts = nil, nil
}

func (l *link) stmt(ctx context.Context, q string) (driver.Stmt, error) {
	if st, ok := l.stmts[q]; ok {
		return st, nil
	}
	st, err := l.raw.PrepareContext(ctx, l.d.bind(q))
	if err != nil {
		return nil, fmt.Errorf("prepare %.40q: %w", q, err)
	}
	if l.stmts == nil {
		l.stmts = map[string]driver.Stmt{}
	}
	l.stmts[q] = st
	return st, nil
}

// values are the arguments as drivers take them. The slice is used again by the next statement.
func (l *link) values(args []any) []driver.NamedValue {
	l.args = l.args[:0]
	for i, a := range args {
		l.args = append(l.args, driver.NamedValue{Ordinal: i + 1, Value: storable(a)})
	}
	return l.args
}

// storable makes an argument what both databases can keep.
func storable(a any) any {
	switch v := a.(type) {
	case string:
		return clean(v)
	case int:
		return int64(v)
	case *float64:
		if v == nil {
			return nil
		}
		return *v
	}
	return a
}

// clean drops what PostgreSQL cannot keep in text: NUL; and repairs invalid UTF-8.
func clean(s string) string {
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", "\uFFFD")
	}
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// tx is what a unit sees of the transaction.
type tx struct {
	link       *link
	s          *Store
	ctx        context.Context
	now        int64 // milliseconds
	statements int
	head       *workspace.AuditHead // newest row of the audit log that it holds; nil: none
	count      count                // what its commit brings the database to
	counts     bool                 // it counts itself, whatever rows it makes
}

func (t *tx) cache() *cache { return &t.s.cache }

// plain runs a statement that is not a unit's.
func (t *tx) plain(q string) error {
	st, err := t.link.stmt(t.ctx, q)
	if err != nil {
		return err
	}
	_, err = st.(driver.StmtExecContext).ExecContext(t.ctx, nil)
	return err
}

const countCommit = `UPDATE commits SET n = ?, seq = ?, answer = ? WHERE id = 1`

// begun names the transaction where its fate can be asked for later; the statement that does counts it as well.
func (t *tx) begun() (mark string, err error) {
	t.count = t.s.count
	if t.s.d.mark() == "" {
		return "", nil
	}
	t.count.n++
	err = t.row(countCommit+t.s.d.mark(), []any{t.count.n, t.count.seq, t.count.answer}, &mark)
	t.statements--
	if errors.Is(err, workspace.ErrNotFound) {
		err = errNoCount
	}
	return mark, err
}

// ends counts a transaction that no row of its own does. It is not a unit's statement.
func (t *tx) ends() error {
	was := t.s.count
	if !t.counts && (t.count.n > was.n || t.count.seq > was.seq || t.count.answer > was.answer) {
		return nil
	}
	t.count.n = was.n + 1
	n, err := t.exec(countCommit, t.count.n, t.count.seq, t.count.answer)
	t.statements--
	if err == nil && n != 1 {
		err = errNoCount
	}
	return err
}

// exec runs a statement and returns how many rows it changed.
func (t *tx) exec(q string, args ...any) (int64, error) {
	st, err := t.link.stmt(t.ctx, q)
	if err != nil {
		return 0, err
	}
	t.statements++
	res, err := st.(driver.StmtExecContext).ExecContext(t.ctx, t.link.values(args))
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// one runs a statement that must change exactly one row: the compare-and-set of a unit.
func (t *tx) one(what, q string, args ...any) error {
	n, err := t.exec(q, args...)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if n != 1 {
		return fmt.Errorf("%s: %w", what, workspace.ErrConflict)
	}
	return nil
}

// row reads one row; workspace.ErrNotFound when there is none.
func (t *tx) row(q string, args []any, dest ...any) error {
	found := false
	err := t.rows(q, args, func(scan func(...any) error) error {
		if found {
			return nil
		}
		found = true
		return scan(dest...)
	})
	if err == nil && !found {
		return workspace.ErrNotFound
	}
	return err
}

// rows calls each for every row; each reads it with the scanner.
func (t *tx) rows(q string, args []any, each func(scan func(...any) error) error) (err error) {
	st, err := t.link.stmt(t.ctx, q)
	if err != nil {
		return err
	}
	t.statements++
	rows, err := st.(driver.StmtQueryContext).QueryContext(t.ctx, t.link.values(args))
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := rows.Close(); err == nil {
			err = closeErr
		}
	}()
	values := make([]driver.Value, len(rows.Columns()))
	scan := func(dest ...any) error {
		for i := range dest {
			if err := assign(dest[i], values[i]); err != nil {
				return fmt.Errorf("column %s: %w: %w", rows.Columns()[i], ErrDamaged, err)
			}
		}
		return nil
	}
	for {
		if err := rows.Next(values); err != nil {
			if err == io.EOF {
				return nil
			}
			return err
		}
		if err := each(scan); err != nil {
			return err
		}
	}
}

// assign puts a driver's value where a unit wants it.
func assign(dest any, v driver.Value) error {
	switch d := dest.(type) {
	case *string:
		if s, ok := v.(string); ok {
			*d = s
			return nil
		}
	case *int64:
		if n, ok := v.(int64); ok {
			*d = n
			return nil
		}
	}
	to := reflect.ValueOf(dest).Elem()
	switch x := v.(type) {
	case string:
		if to.Kind() == reflect.String {
			to.SetString(x)
			return nil
		}
	case int64:
		if to.CanInt() {
			to.SetInt(x)
			return nil
		}
	case float64:
		if to.CanFloat() {
			to.SetFloat(x)
			return nil
		}
	}
	return fmt.Errorf("%T does not fit %T", v, dest)
}
