// Units, and the ways in to the writer.

package engine

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"parley/channels"
)

// ErrClosed is returned for units that come after Close.
var ErrClosed = errors.New("store is closed")

// Unit is one short replayable function with its compare-and-set first. Run must set its results, not add to
// them, and must not change what it was given: when a neighbour in the batch fails, everything is rolled back
// and the others are run again.
type Unit interface {
	Run(t *Tx) error
}

// Func is a Unit.
type Func func(*Tx) error

// Run calls it.
func (f Func) Run(t *Tx) error { return f(t) }

// job is a unit on its way through the writer.
type job struct {
	name    string
	unit    Unit
	done    chan error // nil: nobody waits
	then    func()     // after the commit, where nobody waits; may be nil
	patient bool       // it may wait for one that does not
	refused bool       // may be turned away while the database cannot be written
}

// Do runs a unit and returns after its commit. While nothing can be written it waits; in a damaged database it
// returns ErrDamaged.
func (db *DB) Do(name string, u Unit) error {
	return db.submit(&job{name: name, unit: u, done: make(chan error, 1)})
}

// Offer is Do for what may be refused while nothing can be written: it then returns channels.ErrUnwritable.
func (db *DB) Offer(name string, u Unit) error {
	if !db.health.writable() {
		return channels.ErrUnwritable
	}
	return db.submit(&job{name: name, unit: u, done: make(chan error, 1), refused: true})
}

// DoWithin is Do that does not wait for longer than that, or than ctx. The unit keeps its place and is done all the same.
func (db *DB) DoWithin(ctx context.Context, within time.Duration, name string, u Unit) error {
	if db.closed.Load() {
		return ErrClosed
	}
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer done()
	j := &job{name: name, unit: u, done: make(chan error, 1)}
	select {
	case db.queue <- j:
	case <-db.ended:
		return ErrClosed
	case <-ctx.Done():
		return channels.ErrUnwritable
	}
	select {
	case err := <-j.done:
		return err
	case <-db.ended:
		return ErrClosed
	case <-ctx.Done():
		return channels.ErrUnwritable
	}
}

// Post runs a unit in order but does not wait. A failure is logged: whatever relies on it has its own
// compare-and-set and fails in its turn.
func (db *DB) Post(name string, u Unit) { db.PostThen(name, u, nil) }

// PostThen is Post with a call after the commit, from the writer; nil: none.
func (db *DB) PostThen(name string, u Unit, then func()) {
	_ = db.submit(&job{name: name, unit: u, then: then}) // ErrClosed only: the boot scan finds what is missing
}

// PostNoted is Post for what must be known at the next start though this process be killed before the commit: Boot.Notes
// hands on the lines. The unit may wait a moment for others, so that one sync serves all.
func (db *DB) PostNoted(name, lines string, u Unit) {
	full := db.notes.note(lines)
	_ = db.submit(&job{name: name, unit: u, patient: true}) // as PostThen
	if full != nil {
		db.PostThen("receipts", Func(func(*Tx) error { return nil }), func() { db.notes.emptied(full) })
	}
}

func (db *DB) submit(j *job) error {
	if db.closed.Load() {
		return ErrClosed
	}
	select {
	case db.queue <- j:
	case <-db.ended:
		return ErrClosed
	}
	if j.done == nil {
		return nil
	}
	select {
	case err := <-j.done:
		return err
	case <-db.ended:
	}
	select { // the writer's last batch may have held it
	case err := <-j.done:
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
func (db *DB) Counts() Counts {
	c := &db.counts
	return Counts{c.units.Load(), c.statements.Load(), c.commits.Load(), c.waited.Load(), c.replays.Load()}
}

// QueueLen is how many units wait for the writer.
func (db *DB) QueueLen() int { return len(db.queue) }
