// Reads of a database as a whole: to examine, verify and list.

package engine

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"

	"parley/workspace"
)

// Reader reads a database that it does not change: of a DB, of one that is about to be opened, or a file.
type Reader struct {
	db *sql.DB // nil: there is none
	d  dialect
}

type check = func(ctx context.Context, r *Reader) error

// Reader reads beside the writer. It is not closed.
func (db *DB) Reader() *Reader { return &Reader{db: db.read, d: db.d} }

// ReadBehind reads at length, behind whoever else wants the processor or the disk, and returns when it has.
func (db *DB) ReadBehind(do func(r *Reader) error) error {
	return db.Seen(behind(func() error { return do(db.Reader()) }))
}

// behind does work behind all else that wants the processor or the disk, and waits for it. Its thread ends with it.
func behind(work func() error) error {
	done := make(chan error)
	go func() {
		standBack()
		done <- work()
	}()
	return <-done
}

// OpenFile reads an SQLite database that no process has open, such as one in a backup.
func OpenFile(name string) (*Reader, error) {
	d := sqlite{path: name}
	db, err := sql.Open("sqlite", d.dsn("ro", ""))
	if err != nil {
		return nil, err
	}
	return &Reader{db: db, d: d}, nil
}

// OpenDir is OpenFile of the database in a data directory; Empty when there is none.
func OpenDir(ctx context.Context, dir string) (*Reader, error) {
	d := sqlite{path: filepath.Join(dir, DatabaseFile)}
	db, err := d.look(ctx)
	if err != nil {
		return nil, err
	}
	return &Reader{db: db, d: d}, nil
}

// Empty says that there is no database.
func (r *Reader) Empty() bool { return r.db == nil }

// Close ends reading; Hooks.Examine closes its Reader only before it moves the file. Twice is fine.
func (r *Reader) Close() error {
	if r.db == nil {
		return nil
	}
	err := r.db.Close()
	r.db = nil
	return err
}

// Row reads one row; workspace.ErrNotFound when there is none.
func (r *Reader) Row(ctx context.Context, q string, args []any, dest ...any) error {
	err := r.db.QueryRowContext(ctx, r.d.bind(q), args...).Scan(dest...)
	if errors.Is(err, sql.ErrNoRows) {
		return workspace.ErrNotFound
	}
	return err
}

// PieceRows are read at a time: a reader that stays holds up checkpoints.
const PieceRows = 1000

// Piece reads all rows of a query.
func (r *Reader) Piece(ctx context.Context, q string, args ...any) (list [][]any, err error) {
	rows, err := r.db.QueryContext(ctx, r.d.bind(q), args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		row, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range row {
			into[i] = &row[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		list = append(list, row)
	}
	return list, rows.Err()
}

// Tables are the tables that the database has.
func (r *Reader) Tables(ctx context.Context) (map[string]bool, error) {
	rows, err := r.db.QueryContext(ctx, r.d.tables())
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	there := map[string]bool{}
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		there[name] = true
	}
	return there, rows.Err()
}

// Damage makes an error that the database itself calls damage ErrDamaged.
func (r *Reader) Damage(err error) error { return damage(r.d, err) }

// Broken says that an error means that the file is not, or no longer, a database that can be read.
func (r *Reader) Broken(err error) bool { return r.d.broken(err) }

// Verify reads the whole database: SQLite's own full check, then the owner's. It returns ErrDamaged with the first that is
// wrong.
func (r *Reader) Verify(ctx context.Context, check check) error {
	if _, lite := r.d.(sqlite); lite {
		if err := pragmaCheck(ctx, r.db, "integrity_check(1)"); err != nil {
			return r.Damage(err)
		}
	}
	return r.Damage(check(ctx, r))
}

// Verify reads in short pieces and may run beside the writer. What it finds marks the database as damaged.
func (db *DB) Verify(ctx context.Context) error {
	return db.Seen(db.Reader().Verify(ctx, db.opt.Hooks.Check))
}

// VerifyFile is Verify of an SQLite database that no process has open.
func VerifyFile(ctx context.Context, name string, check check) (err error) {
	r, err := OpenFile(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return r.Verify(ctx, check)
}
