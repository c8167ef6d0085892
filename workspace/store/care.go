package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"parley/workspace"
)

// healEvery is how often an unwritable store is tried again.
const healEvery = 500 * time.Millisecond

// Health of a store.
type Health string

const (
	Well       Health = "ok"
	Degraded   Health = "degraded"   // checking after an unclean end
	Unwritable Health = "unwritable" // disk full, read-only or gone: heals by itself
	Damaged    Health = "damaged"    // a check failed: nothing is written any more; restore from a backup
)

// ErrDamaged says that a row's payload does not match its checksum, or that a check of the database failed.
var ErrDamaged = errors.New("the database is damaged")

// whatToDo about a damaged database.
const whatToDo = "put a backup in its place, in an empty data directory, with: parley restore FILE"

// errNoCount says that the one row is missing that counts commits.
var errNoCount = fmt.Errorf("its count of commits is missing: %w", ErrDamaged)

// errTaken says that the database counted a boot that is not ours.
var errTaken = errors.New("another process has taken the database")

type health struct {
	unwritable, damaged atomic.Pointer[string] // why; nil: it is not
	checking            atomic.Bool
	unclean             bool // the last end, set before any goroutine
}

func (h *health) writable() bool { return h.unwritable.Load() == nil && h.damaged.Load() == nil }

func (h *health) damage() (why string, damaged bool) {
	p := h.damaged.Load()
	if p == nil {
		return "", false
	}
	return *p, true
}

// Health is the worst that is known, with its reason.
func (s *Store) Health() (Health, string) {
	if why := s.health.damaged.Load(); why != nil {
		return Damaged, *why
	}
	if why := s.health.unwritable.Load(); why != nil {
		return Unwritable, *why
	}
	if s.health.checking.Load() {
		return Degraded, "checking the database after an unclean end"
	}
	return Well, ""
}

func (s *Store) tell() {
	if s.opt.OnHealth != nil {
		h, _ := s.Health()
		s.opt.OnHealth(h)
	}
}

func (s *Store) unwritable(err error) bool { return errors.Is(err, errTaken) || s.d.unwritable(err) }

// fail notes that nothing can be written, and says whether the ballast was there to be freed: worth one more try.
func (s *Store) fail(err error) (freed bool) {
	why := err.Error()
	if s.health.unwritable.Swap(&why) == nil {
		s.log.Error("store cannot write", "err", err)
		s.tell()
	}
	name := s.ballastName()
	info, statErr := os.Stat(name)
	return statErr == nil && info.Size() > 0 && os.Remove(name) == nil
}

// heal is called when all that waited is written: when a probe can be written too and the ballast is back in its
// place, the store is writable again.
func (w *writer) heal() {
	s := w.s
	if _, damaged := s.health.damage(); damaged || s.health.unwritable.Load() == nil {
		return
	}
	probe := &unit{name: "probe", run: func(t *tx) error {
		_, err := t.exec(`INSERT INTO settings (name, value) VALUES ('probe', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value`, fmt.Sprint(t.now))
		return err
	}}
	if _, err := w.transaction([]*unit{probe}); err != nil || !s.ballast() {
		w.doubt = "" // a probe changes nothing that anybody relies on
		return
	}
	s.health.unwritable.Store(nil)
	s.log.Info("store can write again")
	s.tell()
}

// stillOurs refuses a database that was opened by somebody else while our connection was away.
func (s *Store) stillOurs(ctx context.Context, conn *sql.Conn) error {
	var epoch int64
	err := conn.QueryRowContext(ctx, s.d.bigint(`SELECT CAST(value AS INTEGER) FROM settings WHERE name = 'epoch'`)).Scan(&epoch)
	if err != nil {
		return err
	}
	if epoch != s.epoch {
		return fmt.Errorf("it counts boot %d, this is %d: %w", epoch, s.epoch, errTaken)
	}
	var n int64
	if err := conn.QueryRowContext(ctx, `SELECT n FROM commits WHERE id = 1`).Scan(&n); err != nil {
		return err
	}
	if n < s.count.n { // a server that came back from a copy
		return s.seen(fmt.Errorf("%w: %w: it counts %d commits, this process has made %d", ErrDamaged, ErrLost, n, s.count.n))
	}
	return nil
}

// seen is what every error of the database passes on its way out, of the writer, the readers, checks, checkpoints and
// backups alike. What the database itself, one of our checksums, or a value that cannot be read calls damage becomes
// ErrDamaged, and the store stops writing.
func (s *Store) seen(err error) error {
	if err == nil || s.d == nil {
		return err
	}
	if err = damage(s.d, err); !errors.Is(err, ErrDamaged) {
		return err
	}
	why := err.Error() + "; " + whatToDo
	if s.health.damaged.CompareAndSwap(nil, &why) {
		s.log.Error("store is damaged: nothing is taken or written any more", "err", err, "hint", "stop the gateway and "+whatToDo)
		s.tell()
	}
	return err
}

// closeUntouched closes the writer's connections of a damaged database while a reader is there: the last to leave would
// write the log back into it.
func (s *Store) closeUntouched() error {
	if s.db == nil || s.read == nil {
		return nil
	}
	conn, err := s.read.Conn(s.base)
	if err == nil {
		var n int
		_ = conn.QueryRowContext(s.base, `SELECT 1`).Scan(&n) // only that it is there
		defer conn.Close()
	}
	err = s.db.Close()
	s.db = nil
	return err
}

// decode reads a value that we wrote.
func decode(text string, into any) error {
	if err := json.Unmarshal([]byte(text), into); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return nil
}

// parseKey reads a session's key that we wrote.
func parseKey(text string) (workspace.Key, error) {
	key, err := workspace.ParseKey(text)
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return key, err
}

func (s *Store) ballastName() string { return filepath.Join(s.opt.Dir, "ballast") }

// ballast lays a file aside that is freed when the disk is full. It says whether the file stands.
func (s *Store) ballast() bool {
	size := s.opt.BallastBytes
	if size < 0 || s.opt.Postgres != "" {
		return true
	}
	name := s.ballastName()
	if info, err := os.Stat(name); err == nil && info.Size() == size {
		return true
	}
	if !roomFor(s.opt.Dir, size+ballastMargin) {
		return false
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return false
	}
	if err = errors.Join(reserve(f, size), f.Close()); err != nil {
		_ = os.Remove(name) // half a ballast only takes room
		return false
	}
	return true
}

// ballastMargin must be free besides the ballast before it is laid: otherwise laying it would fill the disk.
const ballastMargin = 1 << 20

// fill writes zeros: a hole would reserve nothing.
func fill(f *os.File, size int64) error {
	block := make([]byte, 1<<20)
	for left := size; left > 0; left -= int64(len(block)) {
		block = block[:min(left, int64(len(block)))]
		if _, err := f.Write(block); err != nil {
			return err
		}
	}
	return nil
}
