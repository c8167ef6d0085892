package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"parley/channels"
)

// maxBatch bounds a group commit. The writer never waits for a batch to fill.
const maxBatch = 512

// companyWithin is how long units that nobody waits for may wait for one that somebody does: then one sync serves both.
const companyWithin = 10 * time.Millisecond

// ErrClosed is returned for units that come after Close.
var ErrClosed = errors.New("store is closed")

// unit is one short replayable function with its compare-and-set first. run must set its results, not add to
// them, and must not change what it was given: when a neighbour in the batch fails, everything is rolled back
// and the others are run again.
type unit struct {
	name    string
	run     func(*tx) error
	done    chan error // nil: nobody waits
	then    func()     // after the commit, where nobody waits; may be nil
	patient bool       // it may wait for company
	refused bool       // may be turned away while the store cannot write
}

// do runs a unit and returns after its commit. While nothing can be written it waits; in a damaged store it
// returns ErrDamaged.
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

// doWithin is do that does not wait for longer than that, or than ctx. The unit keeps its place and is done all the same.
func (s *Store) doWithin(ctx context.Context, within time.Duration, name string, run func(*tx) error) error {
	if s.closed.Load() {
		return ErrClosed
	}
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer done()
	u := &unit{name: name, run: run, done: make(chan error, 1)}
	select {
	case s.queue <- u:
	case <-s.ended:
		return ErrClosed
	case <-ctx.Done():
		return channels.ErrUnwritable
	}
	select {
	case err := <-u.done:
		return err
	case <-s.ended:
		return ErrClosed
	case <-ctx.Done():
		return channels.ErrUnwritable
	}
}

// post runs a unit in order but does not wait. A failure is logged: whatever relies on it has its own
// compare-and-set and fails in its turn.
func (s *Store) post(name string, run func(*tx) error) {
	_ = s.submit(&unit{name: name, run: run}) // ErrClosed only: the boot scan finds what is missing
}

// postThen is post with a call after the commit, from the writer.
func (s *Store) postThen(name string, run func(*tx) error, then func()) {
	_ = s.submit(&unit{name: name, run: run, then: then}) // as post
}

func (s *Store) submit(u *unit) error {
	if s.closed.Load() {
		return ErrClosed
	}
	select {
	case s.queue <- u:
	case <-s.ended:
		return ErrClosed
	}
	if u.done == nil {
		return nil
	}
	select {
	case err := <-u.done:
		return err
	case <-s.ended:
	}
	select { // the writer's last batch may have held it
	case err := <-u.done:
		return err
	default:
		return ErrClosed
	}
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

// writer is the writer goroutine's own state.
type writer struct {
	s     *Store
	link  link
	held  []*unit // could not be written; tried again, in order, until they can
	doubt string  // mark of a transaction that held exactly the held units and may have been committed
	would count   // what it would have brought the database to
}

// write is the writer goroutine.
func (s *Store) write() {
	defer close(s.ended)
	w := &writer{s: s, link: link{d: s.d, conn: s.own}}
	defer func() { s.own = w.link.conn; w.link.closeStatements() }()
	batch := make([]*unit, 0, maxBatch)
	retry := time.NewTimer(healEvery)
	defer retry.Stop()
	company := time.NewTimer(companyWithin)
	defer company.Stop()
	for {
		batch = batch[:0]
		select {
		case u := <-s.queue:
			batch = append(batch, u)
		case <-retry.C:
		case <-s.quit:
			w.drain(batch)
			return
		}
		batch = s.queued(batch)
		if patient(batch) {
			company.Reset(companyWithin)
			batch = s.company(batch, company.C)
		}
		w.round(batch)
		if len(w.held) > 0 || !s.health.writable() {
			retry.Reset(healEvery)
		}
	}
}

// queued adds what waits in the queue.
func (s *Store) queued(batch []*unit) []*unit {
	for len(batch) < maxBatch {
		select {
		case u := <-s.queue:
			batch = append(batch, u)
		default:
			return batch
		}
	}
	return batch
}

// patient says whether all of a batch may wait.
func patient(batch []*unit) bool {
	return len(batch) > 0 && !slices.ContainsFunc(batch, func(u *unit) bool { return !u.patient })
}

// company waits until a unit comes that does not.
func (s *Store) company(batch []*unit, enough <-chan time.Time) []*unit {
	for len(batch) < maxBatch {
		select {
		case u := <-s.queue:
			batch = append(batch, u)
			if !u.patient {
				return s.queued(batch)
			}
		case <-enough:
			return batch
		case <-s.quit:
			return batch
		}
	}
	return batch
}

// round commits what is held and what is new, in that order, and heals when it can.
func (w *writer) round(batch []*unit) {
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
func (w *writer) drain(batch []*unit) {
	for more := true; more; {
		select {
		case u := <-w.s.queue:
			batch = append(batch, u)
		default:
			more = false
		}
	}
	w.round(batch)
	if len(w.held) == 0 {
		w.commit([]*unit{{name: "clean", run: func(t *tx) error {
			_, err := t.exec(`UPDATE settings SET value = 'yes' WHERE name = 'clean'`)
			return err
		}}})
	}
	for _, u := range w.held {
		w.answer(u, channels.ErrUnwritable)
	}
}

// commit runs the units in as few transactions as it can: one, and where a unit fails what is before it, the
// failure, and what is behind it. What cannot be written is held.
func (w *writer) commit(batch []*unit) {
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
			w.s.fail(err)
			return
		case w.s.unwritable(err):
			freed := w.s.fail(err)
			if batch = w.refuse(batch, err); freed {
				continue // work in flight may finish on the room of the ballast
			}
			w.hold(batch, err)
			return
		case at < 0:
			w.all(batch, err)
			return
		default:
			w.s.counts.replays.Add(1)
			w.commit(batch[:at])
			w.answer(batch[at], err) // it failed behind exactly these
			batch = batch[at+1:]
		}
	}
}

// refuse turns away what may be, and returns the rest.
func (w *writer) refuse(batch []*unit, err error) []*unit {
	var rest []*unit
	for _, u := range batch {
		if u.refused {
			w.answer(u, fmt.Errorf("%w: %w", channels.ErrUnwritable, err))
			continue
		}
		rest = append(rest, u)
	}
	return rest
}

// hold refuses what may be refused and keeps the rest until it can be written.
func (w *writer) hold(batch []*unit, err error) {
	w.held = append(w.held, w.refuse(batch, err)...)
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
	} else if u.then != nil {
		u.then()
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
	committed, err := w.fate()
	if err != nil {
		w.s.fail(err)
		return false
	}
	w.doubt = ""
	if committed {
		w.s.turn.Lock()
		w.s.counted(w.would)
		w.s.turn.Unlock()
		w.all(w.held, nil)
		w.held = nil
	}
	return true
}

func (w *writer) fate() (committed bool, err error) {
	ctx, cancel := w.patience()
	defer cancel()
	if err := w.connect(ctx); err != nil {
		return false, err
	}
	return w.s.d.fate(ctx, w.link.conn, w.doubt)
}

// patience bounds a transaction where the database may be cut off without a word.
func (w *writer) patience() (context.Context, context.CancelFunc) {
	if d := w.s.d.patience(); d > 0 {
		return context.WithTimeout(w.s.base, d)
	}
	return w.s.base, func() {} // a context that can end costs SQLite's driver a goroutine a statement
}

// transaction runs the units in one commit. On error nothing of them is stored, unless the writer is in doubt;
// at is the unit that failed, -1 for the transaction itself. In a damaged store nothing is begun: ErrDamaged.
func (w *writer) transaction(batch []*unit) (at int, err error) {
	w.s.turn.Lock()
	defer w.s.turn.Unlock()
	if why, damaged := w.s.health.damage(); damaged {
		return -1, fmt.Errorf("%w: %s", ErrDamaged, why)
	}
	if at, err = w.attempt(batch); w.doubt == "" {
		err = w.s.seen(err)
	}
	return at, err
}

func (w *writer) attempt(batch []*unit) (at int, err error) {
	ctx, cancel := w.patience()
	defer cancel()
	if err := w.connect(ctx); err != nil {
		return -1, err
	}
	t := &tx{link: &w.link, s: w.s, ctx: ctx, now: w.s.opt.Now().UnixMilli()}
	at = -1
	err = w.link.use(func() (err error) {
		at, err = w.run(t, batch)
		return err
	})
	if err != nil {
		w.s.cache.reset()
		return at, err
	}
	w.s.counted(t.count)
	if t.head != nil {
		w.s.noteHead(*t.head)
	}
	waited := 0
	for _, u := range batch {
		if u.done != nil {
			waited++
		}
	}
	c := &w.s.counts
	c.waited.Add(int64(waited))
	c.units.Add(int64(len(batch)))
	c.statements.Add(int64(t.statements))
	c.commits.Add(1)
	select {
	case w.s.care <- struct{}{}:
	default:
	}
	return -1, nil
}

func (w *writer) run(t *tx, batch []*unit) (at int, err error) {
	if err := t.plain(w.s.d.begin()); err != nil {
		w.link.lost = true
		return -1, fmt.Errorf("begin: %w", err)
	}
	mark, err := t.begun()
	if err != nil {
		w.link.rollback(t)
		return -1, fmt.Errorf("begin: %w", err)
	}
	for i, u := range batch {
		if err := u.run(t); err != nil {
			w.link.rollback(t)
			return i, fmt.Errorf("%s: %w", u.name, err)
		}
	}
	if err := t.ends(); err != nil {
		w.link.rollback(t)
		return -1, fmt.Errorf("count: %w", err)
	}
	w.points("commit ", batch)
	if err := t.plain("COMMIT"); err != nil {
		w.doubt, w.would = mark, t.count
		w.link.rollback(t)
		return -1, fmt.Errorf("commit: %w", err)
	}
	w.points("committed ", batch)
	return -1, nil
}

func (w *writer) points(when string, batch []*unit) {
	if w.s.opt.Point == nil {
		return
	}
	for _, u := range batch {
		w.s.point(when, u.name)
	}
}

// counted notes a commit of ours that is durable, in memory and beside the database.
func (s *Store) counted(c count) {
	s.count = c
	if s.tally == nil {
		return
	}
	if err := s.tally.note(c); err != nil {
		s.tally = nil // of what comes now, a later start knows nothing
		s.log.Error("commits are not counted beside the database any more", "err", err, "hint", "start the gateway again when its disk is well")
	}
}

// connect makes sure that there is a connection, and that the database is still ours on a new one.
func (w *writer) connect(ctx context.Context) error {
	if w.link.conn != nil && !w.link.lost {
		return nil
	}
	w.link.discard()
	conn, err := w.s.db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	if err = w.s.d.claim(ctx, conn); err == nil {
		err = w.s.stillOurs(ctx, conn)
	}
	if err != nil {
		_ = conn.Close() // nothing was done on it
		return fmt.Errorf("connect: %w", err)
	}
	w.link.conn, w.link.lost = conn, false
	return nil
}
