package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"parley/workspace"
)

// Verify reads the whole database: SQLite's own full check, then the checksum of every payload row and every
// state. It returns ErrDamaged with the first that is wrong. It reads in short pieces and may run while the line
// does. It does not change the store's health.
func (s *Store) Verify(ctx context.Context) error { return verify(ctx, s.read, s.d) }

// VerifyFile is Verify of an SQLite database that no process has open, such as one in a backup.
func VerifyFile(ctx context.Context, name string) (err error) {
	d := sqlite{path: name}
	db, err := sql.Open("sqlite", d.dsn("ro", ""))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return verify(ctx, db, d)
}

func verify(ctx context.Context, db *sql.DB, d dialect) error {
	if _, lite := d.(sqlite); lite {
		if err := pragmaCheck(ctx, db, "integrity_check(1)"); err != nil {
			return damage(d, err)
		}
	}
	return damage(d, verifyPayloads(ctx, db, d))
}

// damage makes an error that the database itself calls damage ErrDamaged.
func damage(d dialect, err error) error {
	if d.corrupt(err) {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}

// verifyChunk rows are read at a time: a reader that stays holds up checkpoints.
const verifyChunk = 1000

func verifyPayloads(ctx context.Context, db *sql.DB, d dialect) error {
	inputs := walk{db: db, q: d.bind(`SELECT seq, text, data, sum, state FROM inputs WHERE seq > ? ORDER BY seq LIMIT ?`), keys: []any{int64(0)}}
	err := inputs.all(ctx, func(rows *sql.Rows) ([]any, error) {
		var seq, check int64
		var text, data string
		var state workspace.InputState
		if err := rows.Scan(&seq, &text, &data, &check, &state); err != nil {
			return nil, err
		}
		return []any{seq}, sound(sumInput(text, data) == check, known(workspace.Inputs, state), "input %d", seq)
	})
	if err != nil {
		return err
	}
	entries := walk{db: db, q: d.bind(`SELECT session_id, n, body, sum FROM entries WHERE (session_id, n) > (?, ?) ORDER BY session_id, n LIMIT ?`), keys: []any{"", int64(0)}}
	err = entries.all(ctx, func(rows *sql.Rows) ([]any, error) {
		var session, body string
		var n, check int64
		if err := rows.Scan(&session, &n, &body, &check); err != nil {
			return nil, err
		}
		return []any{session, n}, sound(sum(body) == check, true, "entry %d of session %s", n, session)
	})
	if err != nil {
		return err
	}
	steps := walk{db: db, q: d.bind(`SELECT run_id, n, body, sum, state FROM steps WHERE (run_id, n) > (?, ?) ORDER BY run_id, n LIMIT ?`), keys: []any{"", int64(0)}}
	err = steps.all(ctx, func(rows *sql.Rows) ([]any, error) {
		var run, body string
		var n, check int64
		var state workspace.StepState
		if err := rows.Scan(&run, &n, &body, &check, &state); err != nil {
			return nil, err
		}
		return []any{run, n}, sound(sum(body) == check, known(workspace.Steps, state), "step %d of run %s", n, run)
	})
	if err != nil {
		return err
	}
	return verifyOutbound(ctx, db, d)
}

func verifyOutbound(ctx context.Context, db *sql.DB, d dialect) error {
	outbound := walk{db: db, q: d.bind(`SELECT id, body, sum, state FROM outbound WHERE id > ? ORDER BY id LIMIT ?`), keys: []any{""}}
	err := outbound.all(ctx, func(rows *sql.Rows) ([]any, error) {
		var id, body string
		var check int64
		var state workspace.OutboundState
		if err := rows.Scan(&id, &body, &check, &state); err != nil {
			return nil, err
		}
		good := state == workspace.OutOpen || state == workspace.OutFinal || state == workspace.OutCancelled
		return []any{id}, sound(sum(body) == check, good, "outbound %s", id)
	})
	if err != nil {
		return err
	}
	runs := walk{db: db, q: d.bind(`SELECT id, state FROM runs WHERE id > ? ORDER BY id LIMIT ?`), keys: []any{""}}
	err = runs.all(ctx, func(rows *sql.Rows) ([]any, error) {
		var id string
		var state workspace.RunState
		if err := rows.Scan(&id, &state); err != nil {
			return nil, err
		}
		return []any{id}, sound(true, known(workspace.Runs, state), "run %s", id)
	})
	if err != nil {
		return err
	}
	parts := walk{db: db, q: d.bind(`SELECT outbound_id, n, state FROM parts WHERE (outbound_id, n) > (?, ?) ORDER BY outbound_id, n LIMIT ?`), keys: []any{"", int64(-1)}}
	return parts.all(ctx, func(rows *sql.Rows) ([]any, error) {
		var id string
		var n int64
		var state workspace.PartState
		if err := rows.Scan(&id, &n, &state); err != nil {
			return nil, err
		}
		return []any{id, n}, sound(true, known(workspace.Parts, state), "part %d of outbound %s", n, id)
	})
}

// sound is ErrDamaged with what it is about, unless the row's checksum and state are right.
func sound(sum, state bool, what string, args ...any) error {
	what = fmt.Sprintf(what, args...)
	switch {
	case !sum:
		return fmt.Errorf("%s: checksum: %w", what, ErrDamaged)
	case !state:
		return fmt.Errorf("%s: state: %w", what, ErrDamaged)
	}
	return nil
}

// known says whether a table of states draws an edge to s.
func known[S ~string](t workspace.Table[S], s S) bool {
	for from := range t {
		if s != "" && t.Can(from, s) {
			return true
		}
	}
	return false
}

// walk reads a table in pieces, in the order of its key.
type walk struct {
	db   *sql.DB
	q    string // … WHERE key > ? ORDER BY key LIMIT ?
	keys []any  // where the next piece begins
}

func (w *walk) all(ctx context.Context, each func(*sql.Rows) (keys []any, err error)) error {
	for {
		n, err := w.piece(ctx, each)
		if err != nil || n < verifyChunk {
			return err
		}
	}
}

func (w *walk) piece(ctx context.Context, each func(*sql.Rows) ([]any, error)) (n int, err error) {
	rows, err := w.db.QueryContext(ctx, w.q, append(append([]any(nil), w.keys...), verifyChunk)...)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for ; rows.Next(); n++ {
		keys, err := each(rows)
		if err != nil {
			return n, err
		}
		w.keys = keys
	}
	return n, rows.Err()
}
