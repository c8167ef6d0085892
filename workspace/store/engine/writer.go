// The writer: batches, commits, and what became of one whose answer is lost.

package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"parley/channels"
)

// maxBatch bounds a group commit. The writer never waits for a batch to fill.
const maxBatch = 512

// coalesceWindow is how long units that nobody waits for may wait for one that somebody does: then one sync serves both.
const coalesceWindow = 10 * time.Millisecond

// writer is the writer goroutine's own state.
type writer struct {
	db    *DB
	conn  conn
	held  []*job // could not be written; tried again, in order, until they can
	doubt string // mark of a transaction that held exactly the held units and may have been committed
	would Count  // what it would have brought the database to
}

// runWriter is the writer goroutine.
func (db *DB) runWriter() {
	defer close(db.ended)
	w := &writer{db: db, conn: conn{d: db.d, sql: db.own}}
	defer func() { db.own = w.conn.sql; w.conn.closeStatements() }()
	batch := make([]*job, 0, maxBatch)
	retry := time.NewTimer(healEvery)
	defer retry.Stop()
	window := time.NewTimer(coalesceWindow)
	defer window.Stop()
	for {
		batch = batch[:0]
		select {
		case j := <-db.queue:
			batch = append(batch, j)
		case <-retry.C:
		case <-db.quit:
			w.drain(batch)
			return
		}
		batch = db.queued(batch)
		if patient(batch) {
			window.Reset(coalesceWindow)
			batch = db.coalesce(batch, window.C)
		}
		w.round(batch)
		if len(w.held) > 0 || !db.health.writable() {
			retry.Reset(healEvery)
		}
	}
}

// queued adds what waits in the queue.
func (db *DB) queued(batch []*job) []*job {
	for len(batch) < maxBatch {
		select {
		case j := <-db.queue:
			batch = append(batch, j)
		default:
			return batch
		}
	}
	return batch
}

// patient says whether all of a batch may wait.
func patient(batch []*job) bool {
	return len(batch) > 0 && !slices.ContainsFunc(batch, func(j *job) bool { return !j.patient })
}

// coalesce waits until a unit comes that may not wait.
func (db *DB) coalesce(batch []*job, enough <-chan time.Time) []*job {
	for len(batch) < maxBatch {
		select {
		case j := <-db.queue:
			batch = append(batch, j)
			if !j.patient {
				return db.queued(batch)
			}
		case <-enough:
			return batch
		case <-db.quit:
			return batch
		}
	}
	return batch
}

// round commits what is held and what is new, in that order, and heals when it can.
func (w *writer) round(batch []*job) {
	if !w.settle() {
		w.hold(batch, errUnsettled)
		return
	}
	held := w.held
	w.held = nil
	w.commit(held)
	w.commit(batch)
	if len(w.held) == 0 {
		w.heal()
	}
}

// drain finishes what is queued at Close and marks the end as clean.
func (w *writer) drain(batch []*job) {
	for more := true; more; {
		select {
		case j := <-w.db.queue:
			batch = append(batch, j)
		default:
			more = false
		}
	}
	w.round(batch)
	if len(w.held) == 0 {
		w.commit([]*job{{name: "clean", unit: Func(func(t *Tx) error {
			_, err := t.Exec(`UPDATE settings SET value = 'yes' WHERE name = 'clean'`)
			return err
		})}})
	}
	for _, j := range w.held {
		w.answer(j, channels.ErrUnwritable)
	}
}

// commit runs the units in as few transactions as it can: one, and where a unit fails what is before it, the
// failure, and what is behind it. What cannot be written is held.
func (w *writer) commit(batch []*job) {
	for len(batch) > 0 {
		if len(w.held) > 0 { // nothing overtakes
			w.hold(batch, errUnsettled)
			return
		}
		at, err := w.transaction(batch)
		switch {
		case err == nil:
			w.all(batch, nil)
			return
		case errors.Is(err, ErrDamaged): // nothing is stored, and nothing will be
			w.all(batch, fmt.Errorf("%w: %w", channels.ErrUnwritable, err))
			return
		case w.doubt != "":
			w.held = append(w.held, batch...) // all of it: what was refused might be stored
			w.db.fail(err)
			return
		case w.db.unwritable(err):
			freed := w.db.fail(err)
			if batch = w.refuse(batch, err); freed {
				continue // work in flight may finish on the room of the ballast
			}
			w.hold(batch, err)
			return
		case at < 0:
			w.all(batch, err)
			return
		default:
			w.db.counts.replays.Add(1)
			w.commit(batch[:at])
			w.answer(batch[at], err) // it failed behind exactly these
			batch = batch[at+1:]
		}
	}
}

// refuse turns away what may be, and returns the rest.
func (w *writer) refuse(batch []*job, err error) []*job {
	var rest []*job
	for _, j := range batch {
		if j.refused {
			w.answer(j, fmt.Errorf("%w: %w", channels.ErrUnwritable, err))
			continue
		}
		rest = append(rest, j)
	}
	return rest
}

// hold refuses what may be refused and keeps the rest until it can be written.
func (w *writer) hold(batch []*job, err error) {
	w.held = append(w.held, w.refuse(batch, err)...)
}

func (w *writer) all(batch []*job, err error) {
	for _, j := range batch {
		w.answer(j, err)
	}
}

func (w *writer) answer(j *job, err error) {
	if j.done != nil {
		j.done <- err
		return
	}
	if err != nil {
		w.db.log.Error("store unit failed", "unit", j.name, "err", err)
	} else if j.then != nil {
		j.then()
	}
}

// errUnsettled says that earlier units wait to be written.
var errUnsettled = errors.New("earlier work waits to be written")

// settle finds out what became of a transaction whose COMMIT got no answer. Its units must neither be run again
// nor be lost. It says whether nothing is in doubt any more.
func (w *writer) settle() bool {
	if w.doubt == "" {
		return true
	}
	committed, err := w.commitOutcome()
	if err != nil {
		w.db.fail(err)
		return false
	}
	w.doubt = ""
	if committed {
		w.db.turn.Lock()
		w.db.counted(w.would)
		w.db.turn.Unlock()
		w.all(w.held, nil)
		w.held = nil
	}
	return true
}

func (w *writer) commitOutcome() (committed bool, err error) {
	ctx, cancel := w.txTimeout()
	defer cancel()
	if err := w.connect(ctx); err != nil {
		return false, err
	}
	return w.db.d.commitOutcome(ctx, w.conn.sql, w.doubt)
}

// txTimeout bounds a transaction where the database may be cut off without a word.
func (w *writer) txTimeout() (context.Context, context.CancelFunc) {
	if d := w.db.d.txTimeout(); d > 0 {
		return context.WithTimeout(w.db.base, d)
	}
	return w.db.base, func() {} // a context that can end costs SQLite's driver a goroutine a statement
}

// transaction runs the units in one commit. On error nothing of them is stored, unless the writer is in doubt;
// at is the unit that failed, -1 for the transaction itself. In a damaged database nothing is begun: ErrDamaged.
func (w *writer) transaction(batch []*job) (at int, err error) {
	w.db.turn.Lock()
	defer w.db.turn.Unlock()
	if why, damaged := w.db.health.damage(); damaged {
		return -1, fmt.Errorf("%w: %s", ErrDamaged, why)
	}
	if at, err = w.attempt(batch); w.doubt == "" {
		err = w.db.Seen(err)
	}
	return at, err
}

func (w *writer) attempt(batch []*job) (at int, err error) {
	ctx, cancel := w.txTimeout()
	defer cancel()
	if err := w.connect(ctx); err != nil {
		return -1, err
	}
	t := &Tx{Now: w.db.opt.Now().UnixMilli(), Epoch: w.db.epoch, Count: w.db.count, db: w.db, conn: &w.conn, ctx: ctx}
	t.Owner = w.db.opt.Hooks.Begin(t)
	at = -1
	err = w.conn.use(func() (err error) {
		at, err = w.run(t, batch)
		return err
	})
	if err != nil {
		w.db.opt.Hooks.Reset()
		return at, err
	}
	w.db.counted(t.Count)
	w.db.opt.Hooks.Committed()
	waited := 0
	for _, j := range batch {
		if j.done != nil {
			waited++
		}
	}
	c := &w.db.counts
	c.waited.Add(int64(waited))
	c.units.Add(int64(len(batch)))
	c.statements.Add(int64(t.statements))
	c.commits.Add(1)
	select {
	case w.db.care <- struct{}{}:
	default:
	}
	return -1, nil
}

func (w *writer) run(t *Tx, batch []*job) (at int, err error) {
	if err := t.plain(w.db.d.begin()); err != nil {
		w.conn.lost = true
		return -1, fmt.Errorf("begin: %w", err)
	}
	mark, err := t.begun()
	if err != nil {
		w.conn.rollback(t)
		return -1, fmt.Errorf("begin: %w", err)
	}
	for i, j := range batch {
		if err := j.unit.Run(t); err != nil {
			w.conn.rollback(t)
			return i, fmt.Errorf("%s: %w", j.name, err)
		}
	}
	if err := t.ends(); err != nil {
		w.conn.rollback(t)
		return -1, fmt.Errorf("count: %w", err)
	}
	w.points("commit ", batch)
	if err := t.plain("COMMIT"); err != nil {
		w.doubt, w.would = mark, t.Count
		w.conn.rollback(t)
		return -1, fmt.Errorf("commit: %w", err)
	}
	w.points("committed ", batch)
	return -1, nil
}

func (w *writer) points(when string, batch []*job) {
	if w.db.opt.Point == nil {
		return
	}
	for _, j := range batch {
		w.db.point(when, j.name)
	}
}

// counted notes a commit that is durable, in memory and beside the database.
func (db *DB) counted(c Count) {
	db.count = c
	if db.tally == nil {
		return
	}
	if err := db.tally.note(c); err != nil {
		db.tally = nil // of what comes now, a later start knows nothing
		db.log.Error("commits are not counted beside the database any more", "err", err, "hint", "start the gateway again when its disk is well")
	}
}

// connect makes sure that there is a connection, and on a new one that no other process has taken the database.
func (w *writer) connect(ctx context.Context) error {
	if w.conn.sql != nil && !w.conn.lost {
		return nil
	}
	w.conn.discard()
	fresh, err := w.db.write.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	if err = w.db.d.claim(ctx, fresh); err == nil {
		err = w.db.notTaken(ctx, fresh)
	}
	if err != nil {
		_ = fresh.Close() // nothing was done on it
		return fmt.Errorf("connect: %w", err)
	}
	w.conn.sql, w.conn.lost = fresh, false
	return nil
}
