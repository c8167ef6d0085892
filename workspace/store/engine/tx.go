// The transaction as units see it.

package engine

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"reflect"

	"parley/workspace"
)

// Tx is what a unit sees of the transaction.
type Tx struct {
	// Owner is what Hooks.Begin made of it.
	Owner any
	// Now is the transaction's time in milliseconds, Epoch that of this process.
	Now, Epoch int64
	// Count is what its commit brings the database to. A unit that stores a row with a greater Seq or Answer raises it.
	Count Count

	db         *DB
	conn       *conn
	ctx        context.Context
	statements int
}

// plain runs a statement that is not a unit's.
func (t *Tx) plain(q string) error {
	st, err := t.conn.stmt(t.ctx, q)
	if err != nil {
		return err
	}
	_, err = st.(driver.StmtExecContext).ExecContext(t.ctx, nil)
	return err
}

const countCommit = `UPDATE commits SET n = ?, seq = ?, answer = ? WHERE id = 1`

// begun names the transaction where its outcome can be asked for later; the statement that does counts it as well.
func (t *Tx) begun() (mark string, err error) {
	if t.db.d.mark() == "" {
		return "", nil
	}
	t.Count.N++
	err = t.Row(countCommit+t.db.d.mark(), []any{t.Count.N, t.Count.Seq, t.Count.Answer}, &mark)
	t.statements--
	if errors.Is(err, workspace.ErrNotFound) {
		err = errNoCount
	}
	return mark, err
}

// ends counts a transaction that no row of its own does. It is not a unit's statement.
func (t *Tx) ends() error {
	was := t.db.count
	if was.Behind(t.Count) {
		return nil
	}
	t.Count.N = was.N + 1
	n, err := t.Exec(countCommit, t.Count.N, t.Count.Seq, t.Count.Answer)
	t.statements--
	if err == nil && n != 1 {
		err = errNoCount
	}
	return err
}

// Exec runs a statement and returns how many rows it changed.
func (t *Tx) Exec(q string, args ...any) (int64, error) {
	st, err := t.conn.stmt(t.ctx, q)
	if err != nil {
		return 0, err
	}
	t.statements++
	res, err := st.(driver.StmtExecContext).ExecContext(t.ctx, t.conn.values(args))
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// One runs a statement that must change exactly one row: the compare-and-set of a unit.
func (t *Tx) One(what, q string, args ...any) error {
	n, err := t.Exec(q, args...)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if n != 1 {
		return fmt.Errorf("%s: %w", what, workspace.ErrConflict)
	}
	return nil
}

// Row reads one row; workspace.ErrNotFound when there is none.
func (t *Tx) Row(q string, args []any, dest ...any) error {
	found := false
	err := t.Rows(q, args, func(scan func(...any) error) error {
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

// Rows calls each for every row; each reads it with the scanner.
func (t *Tx) Rows(q string, args []any, each func(scan func(...any) error) error) (err error) {
	st, err := t.conn.stmt(t.ctx, q)
	if err != nil {
		return err
	}
	t.statements++
	rows, err := st.(driver.StmtQueryContext).QueryContext(t.ctx, t.conn.values(args))
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
	case *any:
		*d = v
		return nil
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
