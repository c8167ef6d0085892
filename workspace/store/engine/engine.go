// Package engine runs units on one database, SQLite or PostgreSQL: short functions that a single writer batches into one
// commit with whatever else waits. It opens, commits, heals, counts, checks, backs up and restores a database. What its
// tables mean is its owner's, package store, which takes part through Hooks; of the tables it knows two, settings and
// commits.
//
// Goroutines: the writer, and on SQLite a keeper (checkpoints) with a watcher (checks). All end in Close.
package engine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"parley/workspace"
)

// DatabaseFile is the name of an SQLite database in its data directory.
const DatabaseFile = "parley.db"

// DB is a database that is open for one process. It is safe for concurrent use.
type DB struct {
	opt  Options
	d    dialect
	log  *slog.Logger
	base context.Context // values of Open's context, never cancelled: a commit is not cut short by a caller
	lock *os.File
	handles
	start
	progress
	life
	notes   notes
	queue   chan *job
	care    chan struct{} // wakes the keeper after a commit
	turn    sync.Mutex    // held for a transaction, and for a checkpoint that must not race one
	backing sync.Mutex    // held while a backup is made
	health  health
	counts  counters
}

// handles are what the database is reached through.
type handles struct {
	write  *sql.DB   // the writer's
	read   *sql.DB   // readers, read-only on SQLite
	own    *sql.Conn // the writer's connection, from boot on
	looked *sql.DB   // at the database before it was opened; then it is the reader
	texts  sync.Map  // query text to the readers' *sql.Stmt
}

// start is what is known of this process's own start.
type start struct {
	epoch    int64
	crashed  bool // the last process, set before any goroutine
	examined bool
	renew    bool // its count begins a new line: an old copy of it is another database from now on
}

// progress is how far the database is; under turn.
type progress struct {
	count Count
	tally *tally // what counts commits beside it; nil: nothing does
}

// life is of the goroutines.
type life struct {
	quit       chan struct{} // closed by Close: the writer finishes what is queued
	ended      chan struct{} // closed when the writer has ended
	stopChecks func()
	wg         sync.WaitGroup
	closed     atomic.Bool
}

// Options of a DB.
type Options struct {
	// Dir is the data directory, made 0700. The database is Dir/DatabaseFile unless Postgres is set.
	Dir string
	// Postgres is a connection string; empty means SQLite.
	Postgres string
	// Migrations are files NNNN_name.sql, numbered from 1.
	Migrations fs.FS
	Hooks      Hooks
	Now        func() time.Time
	Log        *slog.Logger
	// OnHealth is told when the database becomes unwritable, damaged, degraded or well again: from the writer, the keeper
	// or a reader's goroutine. It must not block nor call the DB.
	OnHealth func(Health)
	// Synchronous overrides SQLite's FULL; for tests that prove that FULL matters.
	Synchronous string
	// Point is told when a unit is about to be committed ("commit finish") and when it is ("committed finish"), for
	// tests that end the process there; nil: nobody. It is called from the writer and, for "boot", from Open.
	Point func(name string)
	// BallastBytes kept aside for a full disk; 0 means 16 MiB, negative none.
	BallastBytes int64
}

// Hooks are how an owner takes part. Open calls the first two, the writer the next three, whoever checks the last; none may
// call the DB. Nil does nothing.
type Hooks struct {
	// Examine holds the database that is there against what its owner knows of it, before anything is written. renew
	// begins a new line of commits.
	Examine func(ctx context.Context, r *Reader) (renew bool, err error)
	// Boot takes part in the start's commit. It is called again when the start is tried again.
	Boot func(ctx context.Context, b *Boot) error
	// Begin makes of a transaction what the owner's units see as Tx.Owner.
	Begin func(t *Tx) any
	// Committed follows each commit, Reset each transaction that was rolled back or may have been.
	Committed, Reset func()
	// Check reads what the owner has sealed: Verify.
	Check func(ctx context.Context, r *Reader) error
}

func (h Hooks) filled() Hooks {
	if h.Examine == nil {
		h.Examine = func(context.Context, *Reader) (bool, error) { return false, nil }
	}
	if h.Boot == nil {
		h.Boot = func(context.Context, *Boot) error { return nil }
	}
	if h.Begin == nil {
		h.Begin = func(*Tx) any { return nil }
	}
	if h.Committed == nil {
		h.Committed = func() {}
	}
	if h.Reset == nil {
		h.Reset = func() {}
	}
	if h.Check == nil {
		h.Check = func(context.Context, *Reader) error { return nil }
	}
	return h
}

// Open opens or makes the database, migrates it, takes the directory's lock and counts one boot. One data directory belongs
// to one process: a second Open fails with ErrInUse. Commits are counted beside the database from BeginCount on.
func Open(ctx context.Context, opt Options) (*DB, error) {
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.BallastBytes == 0 {
		opt.BallastBytes = 16 << 20
	}
	opt.Hooks = opt.Hooks.filled()
	db := &DB{opt: opt, log: opt.Log, base: context.WithoutCancel(ctx), queue: make(chan *job, 1024), care: make(chan struct{}, 1)}
	db.quit, db.ended = make(chan struct{}), make(chan struct{})
	if err := db.open(ctx); err != nil {
		return nil, errors.Join(err, db.closeFiles())
	}
	keeping, stop := context.WithCancel(db.base)
	db.stopChecks = stop
	db.wg.Go(db.runWriter)
	db.wg.Go(func() { db.keep(keeping) })
	return db, nil
}

func (db *DB) open(ctx context.Context) (err error) {
	if err := os.MkdirAll(db.opt.Dir, 0o700); err != nil {
		return fmt.Errorf("make data directory: %w", err)
	}
	if err := os.Chmod(db.opt.Dir, 0o700); err != nil {
		return fmt.Errorf("protect data directory: %w", err)
	}
	if db.lock, err = lockDir(filepath.Join(db.opt.Dir, "lock")); err != nil {
		return err
	}
	if db.opt.Postgres != "" {
		db.d = postgres{dsn: db.opt.Postgres}
	} else {
		db.d = sqlite{path: filepath.Join(db.opt.Dir, DatabaseFile), synchronous: db.opt.Synchronous}
	}
	err = db.connect(ctx)
	if err != nil && db.unwritable(err) && db.fail(err) {
		// on the room that the ballast left: the start is unwritable and heals
		if err = db.closeHandles(); err == nil {
			err = db.connect(ctx)
		}
	}
	if err == nil && db.health.writable() {
		db.ballast()
	}
	if err != nil && (db.d.broken(err) || db.d.corrupt(err) || errors.Is(err, ErrDamaged)) {
		err = fmt.Errorf("%w; %s: %w", ErrDamaged, whatToDo, err)
	}
	return err
}

// connect opens the database when its owner finds that it lacks nothing.
func (db *DB) connect(ctx context.Context) error {
	if !db.examined {
		if err := db.examine(ctx); err != nil {
			return err
		}
		db.examined = true
	}
	return db.openDatabase(ctx)
}

// examine keeps the reader that looked: it has the index of the log and the schema, which need not be made twice.
func (db *DB) examine(ctx context.Context) error {
	looked, err := db.d.look(ctx)
	if err != nil {
		return err
	}
	r := &Reader{db: looked, d: db.d}
	db.renew, err = db.opt.Hooks.Examine(ctx, r)
	db.looked = r.db
	return err
}

func (db *DB) openDatabase(ctx context.Context) (err error) {
	if db.write, db.read, err = db.d.open(ctx, db.looked); err != nil {
		return fmt.Errorf("open %s: %w", db.d.name(), err)
	}
	db.looked = nil
	if err := db.notes.open(db.opt.Dir); err != nil {
		return err
	}
	if err := migrate(ctx, db.write, db.d, db.opt.Migrations); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	if err := db.boot(ctx); err != nil {
		return fmt.Errorf("count the boot: %w", err)
	}
	return nil
}

// Epoch is the boot counter of this process: the owner's mark in every compare-and-set on what a process is at work on.
func (db *DB) Epoch() int64 { return db.epoch }

// Crashed says that the process before this one did not end by itself.
func (db *DB) Crashed() bool { return db.crashed }

// SQLite says which of the two databases it is.
func (db *DB) SQLite() bool {
	_, lite := db.d.(sqlite)
	return lite
}

// Close waits for queued units, marks the end as clean, and closes the files. Twice is fine.
func (db *DB) Close() error {
	if !db.closed.CompareAndSwap(false, true) {
		return nil
	}
	close(db.quit)
	db.stopChecks()
	db.wg.Wait()
	return db.closeFiles()
}

func (db *DB) closeFiles() error {
	err := db.closeHandles()
	if db.lock != nil {
		err = errors.Join(err, unlockDir(db.lock))
	}
	return err
}

func (db *DB) closeHandles() error {
	errs := []error{db.notes.close()}
	if db.own != nil {
		errs = append(errs, db.own.Close())
	}
	if _, damaged := db.health.damage(); damaged {
		errs = append(errs, db.closeUntouched())
	}
	for _, h := range []*sql.DB{db.read, db.write, db.looked} {
		if h != nil {
			errs = append(errs, h.Close())
		}
	}
	if db.tally != nil {
		errs = append(errs, db.tally.close())
	}
	db.own, db.write, db.read, db.looked, db.tally = nil, nil, nil, nil, nil
	db.notes = notes{}
	return errors.Join(errs...)
}

func newLine(now func() time.Time) string { return (&workspace.IDs{Now: now}).New() }
