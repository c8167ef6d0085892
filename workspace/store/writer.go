package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"parley/channels"
	"parley/workspace"
)

// maxBatch bounds a group commit. The writer never waits for a batch to fill.
const maxBatch = 512

// ErrClosed is returned for units that come after Close.
var ErrClosed = errors.New("store is closed")

// unit is one short replayable function with its compare-and-set first. run must set its results, not add to
// them: when a neighbour in the batch fails, everything is rolled back and each unit is run again by itself.
type unit struct {
	name    string
	run     func(*tx) error
	done    chan error // nil: nobody waits
	refused bool       // may be turned away while the store cannot write
}

// do runs a unit and returns after its commit.
func (s *Store) do(name string, run func(*tx) error) error {
	return s.submit(&unit{name: name, run: run, done: make(chan error, 1)})
}

// offer is do for what may be refused while nothing can be written: it then returns channels.ErrUnwritable.
func (s *Store) offer(name string, run func(*tx) error) error {
	if !s.health.writable() {
		return channels.ErrUnwritable
	}
	return s.submit(&unit{name: name, run: run, done: make(chan error, 1), refused: true})
}

// post runs a unit in order but does not wait. A failure is logged: whatever relies on it has its own
// compare-and-set and fails in its turn.
func (s *Store) post(name string, run func(*tx) error) {
	_ = s.submit(&unit{name: name, run: run}) // ErrClosed only: the boot scan finds what is missing
}

func (s *Store) submit(u *unit) error {
	select {
	case s.queue <- u:
	case <-s.quit:
		return ErrClosed
	}
	if u.done == nil {
		return nil
	}
	return <-u.done
}

// counters of the writer, for benchmarks and /metrics.
type counters struct{ units, statements, commits, waited, replays atomic.Int64 }

// Counts of work since Open.
type Counts struct{ Units, Statements, Commits, Waited, Replays int64 }

// Counts returns how much the writer did since Open.
func (s *Store) Counts() Counts {
	c := &s.counts
	return Counts{c.units.Load(), c.statements.Load(), c.commits.Load(), c.waited.Load(), c.replays.Load()}
}

// QueueLen is how many units wait for the writer.
func (s *Store) QueueLen() int { return len(s.queue) }

// write is the writer goroutine.
func (s *Store) write() {
	w := &writer{s: s}
	defer w.close()
	batch := make([]*unit, 0, maxBatch)
	retry := time.NewTimer(time.Hour)
	defer retry.Stop()
	for {
		batch = append(batch[:0], w.held...)
		w.held = nil
		select {
		case u := <-s.queue:
			batch = append(batch, u)
		case <-retry.C:
		case <-s.quit:
			w.drain(batch)
			return
		}
		for more := true; more && len(batch) < maxBatch; {
			select {
			case u := <-s.queue:
				batch = append(batch, u)
			default:
				more = false
			}
		}
		w.commit(batch)
		if len(w.held) > 0 || !s.health.writable() {
			retry.Reset(healEvery)
		}
	}
}

// writer is the writer goroutine's own state.
type writer struct {
	s     *Store
	conn  *sql.Conn
	stmts map[string]*sql.Stmt
	held  []*unit // could not be written; tried again until they can
}

// drain finishes what is queued at Close and marks the end as clean.
func (w *writer) drain(batch []*unit) {
	for {
		select {
		case u := <-w.s.queue:
			batch = append(batch, u)
			continue
		default:
		}
		break
	}
	batch = append(batch, &unit{name: "clean", run: func(t *tx) error {
		_, err := t.exec(`UPDATE settings SET value = 'yes' WHERE name = 'clean'`)
		return err
	}})
	w.commit(batch)
	for _, u := range w.held {
		w.answer(u, channels.ErrUnwritable)
	}
}

// commit runs the batch as one transaction; when a unit fails, each by itself.
func (w *writer) commit(batch []*unit) {
	if len(batch) == 0 {
		w.heal()
		return
	}
	err := w.transaction(batch)
	if err == nil {
		w.all(batch, nil)
		w.heal()
		return
	}
	if w.s.d.unwritable(err) {
		if w.s.fail(err) { // the ballast was freed: work in flight may finish on it
			if err = w.transaction(batch); err == nil {
				w.all(batch, nil)
				return
			}
		}
	}
	if w.s.d.unwritable(err) {
		w.hold(batch, err)
		return
	}
	if len(batch) == 1 {
		w.answer(batch[0], err)
		return
	}
	w.s.counts.replays.Add(1)
	for _, u := range batch {
		w.commit([]*unit{u})
	}
}

// hold refuses what may be refused and keeps the rest until the disk is well.
func (w *writer) hold(batch []*unit, err error) {
	w.forget()
	for _, u := range batch {
		if u.refused {
			w.answer(u, fmt.Errorf("%w: %w", channels.ErrUnwritable, err))
			continue
		}
		w.held = append(w.held, u)
	}
}

func (w *writer) all(batch []*unit, err error) {
	for _, u := range batch {
		w.answer(u, err)
	}
}

func (w *writer) answer(u *unit, err error) {
	if u.done != nil {
		u.done <- err
		return
	}
	if err != nil {
		w.s.log.Error("unit failed", "unit", u.name, "err", err)
	}
}

// transaction runs the units in one commit. On error nothing of them is stored.
func (w *writer) transaction(batch []*unit) error {
	ctx := context.Background() // a commit is never cut short by a caller
	if err := w.connect(ctx); err != nil {
		return err
	}
	if err := w.plain(ctx, w.s.d.begin()); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	t := &tx{w: w, ctx: ctx, now: w.s.opt.Now().UnixMilli()}
	for _, u := range batch {
		if err := u.run(t); err != nil {
			w.rollback(ctx)
			return fmt.Errorf("%s: %w", u.name, err)
		}
		if u.done != nil {
			w.s.counts.waited.Add(1)
		}
	}
	if err := w.plain(ctx, "COMMIT"); err != nil {
		w.rollback(ctx)
		return fmt.Errorf("commit: %w", err)
	}
	w.s.counts.units.Add(int64(len(batch)))
	w.s.counts.statements.Add(int64(t.statements))
	w.s.counts.commits.Add(1)
	select {
	case w.s.care <- struct{}{}:
	default:
	}
	return nil
}

func (w *writer) rollback(ctx context.Context) {
	if err := w.plain(ctx, "ROLLBACK"); err != nil {
		w.disconnect() // the connection is in doubt: a new one rolls back by itself
	}
	w.s.cache.reset()
}

func (w *writer) plain(ctx context.Context, q string) error {
	st, err := w.stmt(ctx, q)
	if err != nil {
		return err
	}
	_, err = st.ExecContext(ctx)
	return err
}

func (w *writer) connect(ctx context.Context) (err error) {
	if w.conn != nil {
		return nil
	}
	w.stmts = map[string]*sql.Stmt{}
	w.conn, err = w.s.db.Conn(ctx)
	return err
}

func (w *writer) disconnect() {
	for _, st := range w.stmts {
		_ = st.Close() // with its connection
	}
	if w.conn != nil {
		_ = w.conn.Raw(func(any) error { return errDiscard }) // makes the pool drop it
		_ = w.conn.Close()
	}
	w.conn, w.stmts = nil, nil
}

var errDiscard = errors.New("discard this connection")

// forget closes the connection of a database that may have been replaced under us.
func (w *writer) forget() {
	if w.s.d.name() == "postgres" {
		w.disconnect()
	}
}

func (w *writer) close() {
	for _, st := range w.stmts {
		_ = st.Close() // the connection follows
	}
	if w.conn != nil {
		_ = w.conn.Close() // the pool is closed next
	}
}

func (w *writer) stmt(ctx context.Context, q string) (*sql.Stmt, error) {
	if st, ok := w.stmts[q]; ok {
		return st, nil
	}
	st, err := w.conn.PrepareContext(ctx, w.s.d.bind(q))
	if err != nil {
		return nil, fmt.Errorf("prepare %.40q: %w", q, err)
	}
	w.stmts[q] = st
	return st, nil
}

// tx is what a unit sees of the transaction.
type tx struct {
	w          *writer
	ctx        context.Context
	now        int64 // milliseconds
	statements int
}

func (t *tx) cache() *cache { return &t.w.s.cache }

// exec runs a statement and returns how many rows it changed.
func (t *tx) exec(q string, args ...any) (int64, error) {
	st, err := t.w.stmt(t.ctx, q)
	if err != nil {
		return 0, err
	}
	t.statements++
	res, err := st.ExecContext(t.ctx, args...)
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
	st, err := t.w.stmt(t.ctx, q)
	if err != nil {
		return err
	}
	t.statements++
	err = st.QueryRowContext(t.ctx, args...).Scan(dest...)
	if errors.Is(err, sql.ErrNoRows) {
		return workspace.ErrNotFound
	}
	return err
}

// rows calls each for every row; each reads it with the scanner.
func (t *tx) rows(q string, args []any, each func(scan func(...any) error) error) error {
	st, err := t.w.stmt(t.ctx, q)
	if err != nil {
		return err
	}
	t.statements++
	rows, err := st.QueryContext(t.ctx, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}
