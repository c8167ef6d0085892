// Package store keeps what happened: one concrete Store over SQLite and PostgreSQL. It offers units — short functions
// run by a single writer and batched into one commit with whatever else waits — and readers, a file a noun. It decides
// nothing: what a unit may change is in the state tables of package workspace, and every unit begins with its
// compare-and-set. How units are run, committed, checked and backed up is package engine's.
//
// Goroutines: the engine's. All end in Close.
package store

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"parley/workspace"
	"parley/workspace/store/engine"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Store is safe for concurrent use. All its times come from Options.Now.
type Store struct {
	opt Options
	db  *engine.DB
	ids *workspace.IDs

	tx    tx    // the writer's transaction; the writer's
	cache cache // the writer's

	told     []workspace.AuditRow // what the start has found, for the audit log
	renew    bool                 // a loss was accepted
	head     workspace.AuditHead  // of the audit log's chain; the writer's
	headFile *os.File
	closing  sync.Once
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

// What the engine says and does is the store's: its callers know no engine.
type (
	Health   = engine.Health
	Counts   = engine.Counts
	Manifest = engine.Manifest
)

const (
	Well       = engine.Well
	Degraded   = engine.Degraded
	Unwritable = engine.Unwritable
	Damaged    = engine.Damaged
)

var (
	ErrDamaged   = engine.ErrDamaged
	ErrLost      = engine.ErrLost
	ErrInUse     = engine.ErrInUse
	ErrClosed    = engine.ErrClosed
	ErrElsewhere = engine.ErrElsewhere
	ErrBackingUp = engine.ErrBackingUp
	ErrNotEmpty  = engine.ErrNotEmpty
	ErrBackup    = engine.ErrBackup
)

// Open opens or makes the database, migrates it, takes the directory's lock and counts one boot.
// One data directory belongs to one process: a second Open fails.
func Open(ctx context.Context, opt Options) (*Store, error) {
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	s := &Store{opt: opt, ids: &workspace.IDs{Now: opt.Now}}
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, err
	}
	s.db, err = engine.Open(ctx, engine.Options{
		Dir: opt.Dir, Postgres: opt.Postgres, Migrations: files, Now: opt.Now, Log: opt.Log, OnHealth: opt.OnHealth,
		Synchronous: opt.Synchronous, Point: opt.Point, BallastBytes: opt.BallastBytes,
		Hooks: engine.Hooks{Examine: s.examine, Boot: s.boot, Begin: s.begin, Committed: s.committed, Reset: s.cache.reset, Check: verifyRows},
	})
	if err != nil {
		return nil, errors.Join(err, s.closeHead())
	}
	if err := s.beginCount(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// boot takes part in the start's commit: newest numbers, and what the network said to a process that was killed.
func (s *Store) boot(ctx context.Context, b *engine.Boot) error {
	if err := s.openHead(); err != nil {
		return err
	}
	const last = `SELECT (SELECT COALESCE(MAX(seq), 0) FROM inputs), (SELECT COALESCE(MAX(n), 0) FROM outbound)`
	if err := b.Row(ctx, last, nil, &b.Count.Seq, &b.Count.Answer); err != nil {
		return err
	}
	return replayReceipts(ctx, b)
}

// beginCount tells the audit log what the start has found, and then counts commits beside the database: until then a
// start that is cut short finds the same again.
func (s *Store) beginCount() error {
	for _, row := range s.told {
		if !s.db.Writable() { // a full disk must not hold up the start: it is told when there is room
			s.post("audit", func(t *tx) error { return t.audit(row) })
			continue
		}
		if err := s.Audit(row); err != nil {
			return fmt.Errorf("tell of a loss: %w", err)
		}
	}
	if s.renew && !s.db.Writable() {
		return nil // what proves the loss stays until the log tells of it: the next start asks again
	}
	return s.db.BeginCount()
}

// tx is a transaction as the store's units see it.
type tx struct {
	*engine.Tx
	s    *Store
	head *workspace.AuditHead // newest row of the audit log that it holds; nil: none
}

// unit is a unit of the store's. It costs the writer no allocation: a transaction's tx is made once.
type unit func(*tx) error

// Run calls it.
func (u unit) Run(t *engine.Tx) error { return u(t.Owner.(*tx)) }

func (s *Store) begin(t *engine.Tx) any {
	s.tx = tx{Tx: t, s: s}
	s.cache.seq, s.cache.outN = max(s.cache.seq, t.Count.Seq), max(s.cache.outN, t.Count.Answer)
	return &s.tx
}

func (s *Store) committed() {
	if s.tx.head != nil {
		s.noteHead(*s.tx.head)
	}
}

func (s *Store) do(name string, u unit) error { return s.db.Do(name, u) }

func (s *Store) post(name string, u unit) { s.db.Post(name, u) }

// Epoch is the boot counter of this process: the owner's mark in every compare-and-set on runs and parts.
func (s *Store) Epoch() int64 { return s.db.Epoch() }

// Crashed says that the process before this one did not end by itself.
func (s *Store) Crashed() bool { return s.db.Crashed() }

// IDs makes ULIDs from the store's clock.
func (s *Store) IDs() *workspace.IDs { return s.ids }

// Health is the worst that is known, with its reason.
func (s *Store) Health() (Health, string) { return s.db.Health() }

// Counts returns how much the writer did since Open.
func (s *Store) Counts() Counts { return s.db.Counts() }

// QueueLen is how many units wait for the writer.
func (s *Store) QueueLen() int { return s.db.QueueLen() }

// Setting reads one named value; empty when it is not set.
func (s *Store) Setting(name string) (string, error) { return s.db.Setting(name) }

// SetSetting stores one named value.
func (s *Store) SetSetting(name, value string) error {
	return s.do("setting", func(t *tx) error { return t.Set(name, value) })
}

// Close waits for queued units, marks the end as clean, and closes the files. Twice is fine.
func (s *Store) Close() (err error) {
	s.closing.Do(func() { err = errors.Join(s.db.Close(), s.closeHead()) })
	return err
}

// decode reads a value that a unit wrote.
func decode(text string, into any) error {
	if err := json.Unmarshal([]byte(text), into); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return nil
}

// parseKey reads a session's key that a unit wrote.
func parseKey(text string) (workspace.Key, error) {
	key, err := workspace.ParseKey(text)
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return key, err
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func fromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func null(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func orConflict(err error) error {
	if errors.Is(err, workspace.ErrNotFound) {
		return workspace.ErrConflict
	}
	return err
}

// What the partial indexes are made of: a query that does not say it word for word reads the whole table, and so does
// one that asks SQLite for the table's own order (hence + before an ordering column).
const (
	openInput    = `state IN ('queued', 'taken', 'stale')`
	openPart     = `state NOT IN ('sent', 'cancelled')`
	liveRun      = `state IN ('running', 'waiting', 'paused')`
	contextInput = `state = 'context'`
	openApproval = `state IN ('pending', 'approved')`
	question     = `kind = 'approval'`
	backfilled   = `backfill = 1`
)

// Backup writes the data directory into a new file, a .tar.gz with mode 0600, while the store runs: engine.DB.Backup.
func (s *Store) Backup(ctx context.Context, file string) (Manifest, error) {
	return s.db.Backup(ctx, file, []string{headName}, hereOnly)
}

// hereOnly names what is where on this machine's disks.
func hereOnly(name string) bool { return strings.HasPrefix(name, "folders/") }

// Restore puts a backup into place as dataDir, which must not exist or be empty: engine.Restore.
func Restore(ctx context.Context, file, dataDir string) (Manifest, error) {
	return engine.Restore(ctx, file, dataDir, verifyRows)
}

// first is the one row that was asked for; workspace.ErrNotFound: there is none.
func first[T any](list []T, err error) (one T, _ error) {
	if err == nil && len(list) == 0 {
		err = workspace.ErrNotFound
	}
	if err != nil {
		return one, err
	}
	return list[0], nil
}
