// Package store keeps the line: one concrete Store over SQLite and PostgreSQL. It offers units — short functions
// run by a single writer and batched into one commit with whatever else waits — and readers. It decides nothing:
// what a unit may change is in the state tables of package workspace, and every unit begins with its
// compare-and-set.
//
// Goroutines: the writer, and on SQLite a keeper (checkpoints, checks). Both end in Close.
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
	opt   Options
	d     dialect
	db    *sql.DB // the writer's handle
	read  *sql.DB // readers, read-only on SQLite
	lock  *os.File
	epoch int64
	ids   *workspace.IDs
	log   *slog.Logger

	queue  chan *unit
	care   chan struct{} // wakes the keeper after a commit
	quit   chan struct{}
	wg     sync.WaitGroup
	closed atomic.Bool
	health health
	counts counters
	cache  cache // owned by the writer goroutine
}

// Options of a Store.
type Options struct {
	// Dir is the data directory, made 0700. The database is Dir/parley.db unless Postgres is set.
	Dir string
	// Postgres is a connection string; empty means SQLite.
	Postgres string
	Now      func() time.Time
	Log      *slog.Logger
	// OnHealth is told, from the writer, when the store becomes unwritable, damaged or well again.
	OnHealth func(Health)
	// Synchronous overrides SQLite's FULL; for tests that prove that FULL matters.
	Synchronous string
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
		queue: make(chan *unit, 1024), care: make(chan struct{}, 1), quit: make(chan struct{})}
	if err := s.open(ctx); err != nil {
		s.closeFiles()
		return nil, err
	}
	s.wg.Go(s.write)
	s.wg.Go(s.keep)
	return s, nil
}

func (s *Store) open(ctx context.Context) error {
	if err := os.MkdirAll(s.opt.Dir, 0o700); err != nil {
		return fmt.Errorf("make data directory: %w", err)
	}
	if err := os.Chmod(s.opt.Dir, 0o700); err != nil {
		return fmt.Errorf("protect data directory: %w", err)
	}
	var err error
	if s.lock, err = lockDir(filepath.Join(s.opt.Dir, "lock")); err != nil {
		return err
	}
	if s.opt.Postgres != "" {
		s.d = postgres{dsn: s.opt.Postgres}
	} else {
		s.d = sqlite{path: filepath.Join(s.opt.Dir, "parley.db"), synchronous: s.opt.Synchronous}
	}
	if s.db, s.read, err = s.d.open(ctx); err != nil {
		return fmt.Errorf("open %s: %w", s.d.name(), err)
	}
	if err := migrate(ctx, s.db, s.d); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	if err := s.boot(ctx); err != nil {
		return fmt.Errorf("count the boot: %w", err)
	}
	s.ballast()
	return nil
}

// boot raises the epoch, notes whether the last end was clean, and reads the counters.
func (s *Store) boot(ctx context.Context) error {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	var was string
	err = conn.QueryRowContext(ctx, `SELECT value FROM settings WHERE name = 'clean'`).Scan(&was)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	s.health.unclean.Store(err == nil && was != "yes")
	const bump = `INSERT INTO settings (name, value) VALUES ('epoch', '1')
		ON CONFLICT (name) DO UPDATE SET value = CAST(CAST(settings.value AS INTEGER) + 1 AS TEXT) RETURNING CAST(value AS INTEGER)`
	if err := conn.QueryRowContext(ctx, bump).Scan(&s.epoch); err != nil {
		return err
	}
	const unclean = `INSERT INTO settings (name, value) VALUES ('clean', 'no') ON CONFLICT (name) DO UPDATE SET value = 'no'`
	if _, err := conn.ExecContext(ctx, unclean); err != nil {
		return err
	}
	return conn.QueryRowContext(ctx, `SELECT COALESCE(MAX(seq), 0) FROM inputs`).Scan(&s.cache.seq)
}

// Epoch is the boot counter of this process: the owner's mark in every compare-and-set on runs and parts.
func (s *Store) Epoch() int64 { return s.epoch }

// IDs makes ULIDs from the store's clock.
func (s *Store) IDs() *workspace.IDs { return s.ids }

// Close waits for queued units, marks the end as clean, and closes the files. Twice is fine.
func (s *Store) Close() error {
	if !s.closed.CompareAndSwap(false, true) {
		return nil
	}
	close(s.quit)
	s.wg.Wait()
	return s.closeFiles()
}

func (s *Store) closeFiles() error {
	var errs []error
	for _, db := range []*sql.DB{s.read, s.db} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Close())
	}
	return errors.Join(errs...)
}
