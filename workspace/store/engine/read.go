// Reads through the readers' pool.

package engine

import (
	"database/sql"
	"errors"
	"fmt"

	"parley/workspace"
)

// One reads one row through the readers' pool.
func (db *DB) One(q string, args []any, dest ...any) error {
	st, err := db.prepared(q)
	if err != nil {
		return db.Seen(err)
	}
	for i := range args {
		args[i] = storable(args[i])
	}
	row := st.QueryRowContext(db.base, args...) // local and short
	err = row.Scan(dest...)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return workspace.ErrNotFound
	case err != nil && row.Err() == nil:
		err = db.unreadable(err)
	}
	return db.Seen(err)
}

// unreadable is a value in a row that is not what a unit stores there.
func (db *DB) unreadable(err error) error {
	if db.closed.Load() || errors.Is(err, ErrDamaged) { // rows of a database that closes are closed
		return err
	}
	return fmt.Errorf("%w: %w", ErrDamaged, err)
}

// Many reads all rows before it returns: no cursor stays open while something else happens.
func (db *DB) Many(q string, args []any, each func(scan func(...any) error) error) error {
	return db.Seen(db.each(q, args, each))
}

func (db *DB) each(q string, args []any, each func(scan func(...any) error) error) error {
	st, err := db.prepared(q)
	if err != nil {
		return err
	}
	for i := range args {
		args[i] = storable(args[i])
	}
	rows, err := st.QueryContext(db.base, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	scan := func(dest ...any) error {
		err := rows.Scan(dest...)
		if err != nil {
			err = db.unreadable(err)
		}
		return err
	}
	for rows.Next() {
		if err := each(scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// prepared keeps one statement a query text; their number is that of the readers.
func (db *DB) prepared(q string) (*sql.Stmt, error) {
	if st, ok := db.texts.Load(q); ok {
		return st.(*sql.Stmt), nil
	}
	st, err := db.read.PrepareContext(db.base, db.d.bind(q))
	if err != nil {
		return nil, fmt.Errorf("prepare %.40q: %w", q, err)
	}
	if first, raced := db.texts.LoadOrStore(q, st); raced {
		return first.(*sql.Stmt), st.Close()
	}
	return st, nil
}

// Queries are the texts of all statements that the writer and the readers have prepared, for tests that hold them against
// the indexes.
func (db *DB) Queries() (list []string, err error) {
	err = db.Do("queries", Func(func(t *Tx) error {
		list = nil
		for q := range t.conn.stmts {
			list = append(list, q)
		}
		return nil
	}))
	db.texts.Range(func(q, _ any) bool {
		list = append(list, q.(string))
		return true
	})
	return list, err
}
