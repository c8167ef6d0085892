// The first transaction of a start, and named values.

package engine

import (
	"context"
	"database/sql"
	"errors"

	"parley/workspace"
)

// Boot is the first transaction of a start: it raises the epoch, notes whether the last end was clean, and applies what was
// noted beside the database.
type Boot struct {
	// Epoch is the boot counter of the process that starts.
	Epoch int64
	// Count: Hooks.Boot raises Seq and Answer to the newest numbers that rows have.
	Count Count

	db *DB
	tx *sql.Tx
}

// Exec runs a statement.
func (b *Boot) Exec(ctx context.Context, q string, args ...any) error {
	_, err := b.tx.ExecContext(ctx, b.db.d.bind(q), args...)
	return err
}

// Row reads one row; workspace.ErrNotFound when there is none.
func (b *Boot) Row(ctx context.Context, q string, args []any, dest ...any) error {
	err := b.tx.QueryRowContext(ctx, b.db.d.bind(q), args...).Scan(dest...)
	if errors.Is(err, sql.ErrNoRows) {
		return workspace.ErrNotFound
	}
	return err
}

// Notes hands on the lines that earlier processes noted beside the database: PostNoted. The last may be torn.
func (b *Boot) Notes(each func(line string) error) error { return b.db.notes.each(each) }

// boot commits the start, and takes the writer's connection.
func (db *DB) boot(ctx context.Context) error {
	var err error
	if db.own == nil {
		if db.own, err = db.write.Conn(ctx); err != nil {
			return err
		}
		if err := db.d.claim(ctx, db.own); err != nil {
			return err
		}
	}
	tx, err := db.own.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after Commit it says so, before it nothing was stored
	b := &Boot{db: db, tx: tx}
	var was string
	err = b.Row(ctx, `SELECT value FROM settings WHERE name = 'clean'`, nil, &was)
	if err != nil && !errors.Is(err, workspace.ErrNotFound) {
		return err
	}
	unclean := err == nil && was != "yes"
	const bump = `INSERT INTO settings (name, value) VALUES ('epoch', '1')
		ON CONFLICT (name) DO UPDATE SET value = CAST(CAST(settings.value AS INTEGER) + 1 AS TEXT) RETURNING CAST(value AS INTEGER)`
	if err := b.Row(ctx, bump, nil, &b.Epoch); err != nil {
		return err
	}
	const open = `INSERT INTO settings (name, value) VALUES ('clean', 'no') ON CONFLICT (name) DO UPDATE SET value = 'no'`
	if err := b.Exec(ctx, open); err != nil {
		return err
	}
	if err := db.opt.Hooks.Boot(ctx, b); err != nil {
		return err
	}
	if err := b.count(ctx); err != nil {
		return err
	}
	db.point("commit ", "boot")
	if err := tx.Commit(); err != nil {
		return err
	}
	db.point("committed ", "boot")
	db.notes.forget()
	db.epoch, db.count, db.crashed = b.Epoch, b.Count, unclean
	db.health.unclean = unclean && db.SQLite()
	db.health.checking.Store(db.health.unclean)
	return nil
}

// count counts the boot's own commit. The first one names the database.
func (b *Boot) count(ctx context.Context) error {
	const q = `UPDATE commits SET n = n + 1, line = CASE WHEN line = '' OR ? = 'yes' THEN ? ELSE line END WHERE id = 1
		RETURNING line, n, seq, answer`
	renew := "no"
	if b.db.renew {
		renew = "yes"
	}
	var c Count
	err := b.Row(ctx, q, []any{renew, newLine(b.db.opt.Now)}, &c.Line, &c.N, &c.Seq, &c.Answer)
	if errors.Is(err, workspace.ErrNotFound) {
		return errNoCount
	}
	c.Seq, c.Answer = max(c.Seq, b.Count.Seq), max(c.Answer, b.Count.Answer) // numbers are given once, whatever was deleted
	b.Count = c
	return err
}

// BeginCount counts commits beside the database from now on. Until then a start that is cut short finds what stood there
// before.
func (db *DB) BeginCount() error {
	db.turn.Lock()
	defer db.turn.Unlock()
	t, err := openTally(db.opt.Dir, db.count)
	if err != nil {
		if db.health.writable() {
			return err
		}
		db.log.Warn("commits are not counted beside the database", "err", err) // a full disk: it must not keep us from starting
		return nil
	}
	db.tally = t
	return nil
}

func (db *DB) point(when, unit string) {
	if db.opt.Point != nil {
		db.opt.Point(when + unit)
	}
}

// Setting reads one named value; empty when it is not set.
func (db *DB) Setting(name string) (string, error) {
	var v string
	err := db.One(`SELECT value FROM settings WHERE name = ?`, []any{name}, &v)
	if errors.Is(err, workspace.ErrNotFound) {
		return "", nil
	}
	return v, err
}

// Set stores one named value.
func (t *Tx) Set(name, value string) error {
	_, err := t.Exec(`INSERT INTO settings (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value`, name, value)
	return err
}
