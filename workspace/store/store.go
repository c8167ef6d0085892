// Package store keeps the line: one concrete Store over SQLite and PostgreSQL. It offers units — short functions
// run by a single writer and batched into one commit with whatever else waits — and readers. It decides nothing:
// what a unit may change is in the state tables of package workspace, and every unit begins with its
// compare-and-set.
//
// Goroutines: the writer, and on SQLite a keeper (checkpoints) with a watcher (checks). All end in Close.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"parley/workspace"
)

// Store is safe for concurrent use. All its times come from Options.Now.
type Store struct {
	opt     Options
	d       dialect
	db      *sql.DB   // the writer's handle
	read    *sql.DB   // readers, read-only on SQLite
	own     *sql.Conn // the writer's connection, from boot on
	lock    *os.File
	epoch   int64
	crashed bool // the last process, set before any goroutine
	ids     *workspace.IDs
	log     *slog.Logger

	base   context.Context // values of Open's context, never cancelled: a commit is not cut short by a caller
	notes  receipts
	queue  chan *unit
	care   chan struct{} // wakes the keeper after a commit
	quit   chan struct{} // closed by Close: the writer finishes what is queued
	ended  chan struct{} // closed when the writer has ended
	rest   func()        // ends the keeper's checks
	wg     sync.WaitGroup
	closed atomic.Bool
	turn   sync.Mutex // held for a transaction, and for a checkpoint that must not race one
	health health
	counts counters
	cache  cache    // owned by the writer goroutine
	texts  sync.Map // query text to the readers' *sql.Stmt

	backing sync.Mutex // held while a backup is made
	looked  *sql.DB    // at the database before it was opened; then it is the reader
	faced   bool       // it was held against what stands beside it
	renew   bool       // its count begins a new line: an old copy of it is another database from now on
	count   count      // commits of the database; under turn
	tally   *tally     // what counts them beside it; under turn, nil: nothing does

	head     workspace.AuditHead // of the audit log's chain; the writer's
	headFile *os.File
}

// Options of a Store.
type Options struct {
	// Dir is the data directory, made 0700. The database is Dir/parley.db unless Postgres is set.
	Dir string
	// Postgres is a connection string; empty means SQLite.
	Postgres string
	Now      func() time.Time
	Log      *slog.Logger
	// OnHealth is told when the store becomes unwritable, damaged, degraded or well again: from the writer, the
	// keeper or a reader's goroutine. It must not block nor call the store.
	OnHealth func(Health)
	// Synchronous overrides SQLite's FULL; for tests that prove that FULL matters.
	Synchronous string
	// Point is told when a unit is about to be committed ("commit finish") and when it is ("committed finish"), for
	// tests that end the process there; nil: nobody. It is called from the writer and, for "boot", from Open.
	Point func(name string)
	// Hide takes secrets out of what the audit log keeps; nil: nothing is hidden. The writer calls it.
	Hide func(string) string
	// OnLoss says what is done about a database that lacks what something beside it proves that it held. By default Open
	// returns a *Loss, which is ErrLost.
	OnLoss OnLoss
	// Keep are names in Dir that BeginFresh leaves in place, such as the configuration's.
	Keep []string
	// BallastBytes kept aside for a full disk; 0 means 16 MiB, negative none.
	BallastBytes int64
}

// Open opens or makes the database, migrates it, takes the directory's lock and counts one boot.
// One data directory belongs to one process: a second Open fails.
func Open(ctx context.Context, opt Options) (*Store, error) {
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.BallastBytes == 0 {
		opt.BallastBytes = 16 << 20
	}
	s := &Store{opt: opt, log: opt.Log, ids: &workspace.IDs{Now: opt.Now},
		base: context.WithoutCancel(ctx), queue: make(chan *unit, 1024), care: make(chan struct{}, 1),
		quit: make(chan struct{}), ended: make(chan struct{})}
	told, err := s.open(ctx)
	if err != nil {
		return nil, errors.Join(err, s.closeFiles())
	}
	keeping, rest := context.WithCancel(s.base)
	s.rest = rest
	s.wg.Go(s.write)
	s.wg.Go(func() { s.keep(keeping) })
	if err := s.beginCount(told); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// beginCount tells the audit log what the start has found, and then counts commits beside the database: until then a
// start that is cut short finds the same again.
func (s *Store) beginCount(told []workspace.AuditRow) error {
	for _, row := range told {
		if !s.health.writable() { // a full disk must not hold up the start: it is told when there is room
			s.post("audit", func(t *tx) error { return t.audit(row) })
			continue
		}
		if err := s.Audit(row); err != nil {
			return fmt.Errorf("tell of a loss: %w", err)
		}
	}
	if s.renew && !s.health.writable() {
		return nil // what proves the loss stays until the log tells of it: the next start asks again
	}
	s.turn.Lock()
	defer s.turn.Unlock()
	t, err := openTally(s.opt.Dir, s.count)
	if err != nil {
		if s.health.writable() {
			return err
		}
		s.log.Warn("commits are not counted beside the database", "err", err) // a full disk: it must not keep us from starting
		return nil
	}
	s.tally = t
	return nil
}

func (s *Store) open(ctx context.Context) (told []workspace.AuditRow, err error) {
	if err := os.MkdirAll(s.opt.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make data directory: %w", err)
	}
	if err := os.Chmod(s.opt.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("protect data directory: %w", err)
	}
	if s.lock, err = lockDir(filepath.Join(s.opt.Dir, "lock")); err != nil {
		return nil, err
	}
	if s.opt.Postgres != "" {
		s.d = postgres{dsn: s.opt.Postgres}
	} else {
		s.d = sqlite{path: filepath.Join(s.opt.Dir, "parley.db"), synchronous: s.opt.Synchronous}
	}
	told, err = s.connect(ctx, nil)
	if err != nil && s.unwritable(err) && s.fail(err) {
		// on the room that the ballast left: the line starts unwritable and heals
		if err = s.closeHandles(); err == nil {
			told, err = s.connect(ctx, told)
		}
	}
	if err == nil && s.health.writable() {
		s.ballast()
	}
	if err != nil && (s.d.broken(err) || s.d.corrupt(err) || errors.Is(err, ErrDamaged)) {
		err = fmt.Errorf("%w; %s: %w", ErrDamaged, whatToDo, err)
	}
	return told, err
}

// connect opens the database when nothing proves that it lacks what it held. told is what an earlier try has found.
func (s *Store) connect(ctx context.Context, told []workspace.AuditRow) (_ []workspace.AuditRow, err error) {
	if !s.faced {
		if told, err = s.face(ctx); err != nil {
			return nil, err
		}
		s.faced = true
	}
	return told, s.openDatabase(ctx)
}

func (s *Store) openDatabase(ctx context.Context) (err error) {
	if s.db, s.read, err = s.d.open(ctx, s.looked); err != nil {
		return fmt.Errorf("open %s: %w", s.d.name(), err)
	}
	s.looked = nil
	if err := errors.Join(s.notes.open(s.opt.Dir), s.openHead()); err != nil {
		return err
	}
	if err := migrate(ctx, s.db, s.d); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	if err := s.boot(ctx); err != nil {
		return fmt.Errorf("count the boot: %w", err)
	}
	return nil
}

// boot raises the epoch, notes whether the last end was clean, and reads the counters, in one commit.
func (s *Store) boot(ctx context.Context) error {
	var err error
	if s.own == nil {
		if s.own, err = s.db.Conn(ctx); err != nil {
			return err
		}
		if err := s.d.claim(ctx, s.own); err != nil {
			return err
		}
	}
	tx, err := s.own.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after Commit it says so, before it nothing was stored
	var was string
	err = tx.QueryRowContext(ctx, `SELECT value FROM settings WHERE name = 'clean'`).Scan(&was)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	unclean := err == nil && was != "yes"
	const bump = `INSERT INTO settings (name, value) VALUES ('epoch', '1')
		ON CONFLICT (name) DO UPDATE SET value = CAST(CAST(settings.value AS INTEGER) + 1 AS TEXT) RETURNING CAST(value AS INTEGER)`
	if err := tx.QueryRowContext(ctx, s.d.bigint(bump)).Scan(&s.epoch); err != nil {
		return err
	}
	const open = `INSERT INTO settings (name, value) VALUES ('clean', 'no') ON CONFLICT (name) DO UPDATE SET value = 'no'`
	if _, err := tx.ExecContext(ctx, open); err != nil {
		return err
	}
	const last = `SELECT (SELECT COALESCE(MAX(seq), 0) FROM inputs), (SELECT COALESCE(MAX(n), 0) FROM outbound)`
	if err := tx.QueryRowContext(ctx, last).Scan(&s.cache.seq, &s.cache.outN); err != nil {
		return err
	}
	if err := s.notes.replay(ctx, s.d, tx, s.epoch); err != nil {
		return err
	}
	if err := s.countBoot(ctx, tx); err != nil {
		return err
	}
	s.point("commit ", "boot")
	if err := tx.Commit(); err != nil {
		return err
	}
	s.point("committed ", "boot")
	s.notes.forget()
	s.crashed = unclean
	_, lite := s.d.(sqlite)
	s.health.unclean = unclean && lite
	s.health.checking.Store(unclean && lite)
	return nil
}

// countBoot counts the boot's own commit. The first one names the database.
func (s *Store) countBoot(ctx context.Context, tx *sql.Tx) error {
	const q = `UPDATE commits SET n = n + 1, line = CASE WHEN line = '' OR ? = 'yes' THEN ? ELSE line END WHERE id = 1 RETURNING line, n, seq, answer`
	renew := "no"
	if s.renew {
		renew = "yes"
	}
	err := tx.QueryRowContext(ctx, s.d.bind(q), renew, s.ids.New()).Scan(&s.count.line, &s.count.n, &s.count.seq, &s.count.answer)
	if errors.Is(err, sql.ErrNoRows) {
		return errNoCount
	}
	s.count.seq, s.count.answer = max(s.count.seq, s.cache.seq), max(s.count.answer, s.cache.outN)
	s.cache.seq, s.cache.outN = s.count.seq, s.count.answer // numbers are given once, whatever was deleted
	return err
}

func (s *Store) point(when, unit string) {
	if s.opt.Point != nil {
		s.opt.Point(when + unit)
	}
}

// Epoch is the boot counter of this process: the owner's mark in every compare-and-set on runs and parts.
func (s *Store) Epoch() int64 { return s.epoch }

// Crashed says that the process before this one did not end by itself.
func (s *Store) Crashed() bool { return s.crashed }

// IDs makes ULIDs from the store's clock.
func (s *Store) IDs() *workspace.IDs { return s.ids }

// Close waits for queued units, marks the end as clean, and closes the files. Twice is fine.
func (s *Store) Close() error {
	if !s.closed.CompareAndSwap(false, true) {
		return nil
	}
	close(s.quit)
	s.rest()
	s.wg.Wait()
	return s.closeFiles()
}

func (s *Store) closeFiles() error {
	err := s.closeHandles()
	if s.lock != nil {
		err = errors.Join(err, unlockDir(s.lock))
	}
	return err
}

func (s *Store) closeHandles() error {
	errs := []error{s.notes.close()}
	if s.own != nil {
		errs = append(errs, s.own.Close())
	}
	if _, damaged := s.health.damage(); damaged {
		errs = append(errs, s.closeUntouched())
	}
	for _, db := range []*sql.DB{s.read, s.db} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	if s.headFile != nil {
		errs = append(errs, s.headFile.Close())
	}
	errs = append(errs, s.closeLooked())
	if s.tally != nil {
		errs = append(errs, s.tally.close())
	}
	s.tally = nil
	s.own, s.db, s.read, s.notes, s.headFile = nil, nil, nil, receipts{}, nil
	return errors.Join(errs...)
}
