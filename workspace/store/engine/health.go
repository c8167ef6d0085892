// Health: what cannot be written, what is damaged, and how it heals.

package engine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"
)

// healEvery is how often an unwritable database is tried again.
const healEvery = 500 * time.Millisecond

// Health of a database.
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

// ErrLost says that something beside the database proves that it lacks what it held.
var ErrLost = errors.New("the database lacks what it held")

// errTaken says that the database counted a boot of another process.
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
func (db *DB) Health() (Health, string) {
	if why := db.health.damaged.Load(); why != nil {
		return Damaged, *why
	}
	if why := db.health.unwritable.Load(); why != nil {
		return Unwritable, *why
	}
	if db.health.checking.Load() {
		return Degraded, "checking the database after an unclean end"
	}
	return Well, ""
}

func (db *DB) tell() {
	if db.opt.OnHealth != nil {
		h, _ := db.Health()
		db.opt.OnHealth(h)
	}
}

func (db *DB) unwritable(err error) bool { return errors.Is(err, errTaken) || db.d.unwritable(err) }

// fail notes that nothing can be written, and says whether the ballast was there to be freed: worth one more try.
func (db *DB) fail(err error) (freed bool) {
	why := err.Error()
	if db.health.unwritable.Swap(&why) == nil {
		db.log.Error("store cannot write", "err", err)
		db.tell()
	}
	name := db.ballastName()
	info, statErr := os.Stat(name)
	return statErr == nil && info.Size() > 0 && os.Remove(name) == nil
}

// heal is called when all that waited is written: when a probe can be written too and the ballast is back in its
// place, the database is writable again.
func (w *writer) heal() {
	db := w.db
	if _, damaged := db.health.damage(); damaged || db.health.unwritable.Load() == nil {
		return
	}
	probe := &job{name: "probe", unit: Func(func(t *Tx) error { return t.Set("probe", fmt.Sprint(t.Now)) })}
	if _, err := w.transaction([]*job{probe}); err != nil || !db.ballast() {
		w.doubt = "" // a probe changes nothing that anybody relies on
		return
	}
	db.health.unwritable.Store(nil)
	db.log.Info("store can write again")
	db.tell()
}

// notTaken refuses a database that another process has opened while the connection was away.
func (db *DB) notTaken(ctx context.Context, conn *sql.Conn) error {
	var epoch int64
	err := conn.QueryRowContext(ctx, db.d.bind(`SELECT CAST(value AS INTEGER) FROM settings WHERE name = 'epoch'`)).Scan(&epoch)
	if err != nil {
		return err
	}
	if epoch != db.epoch {
		return fmt.Errorf("it counts boot %d, this is %d: %w", epoch, db.epoch, errTaken)
	}
	var n int64
	if err := conn.QueryRowContext(ctx, `SELECT n FROM commits WHERE id = 1`).Scan(&n); err != nil {
		return err
	}
	if n < db.count.N { // a server that came back from a copy
		return db.Seen(fmt.Errorf("%w: %w: it counts %d commits, this process has made %d", ErrDamaged, ErrLost, n, db.count.N))
	}
	return nil
}

// Seen is what every error of the database passes on its way out, of the writer, the readers, checks, checkpoints and
// backups alike. What the database itself, a checksum, or a value that cannot be read calls damage becomes
// ErrDamaged, and nothing is written any more.
func (db *DB) Seen(err error) error {
	if err == nil || db.d == nil {
		return err
	}
	if err = damage(db.d, err); !errors.Is(err, ErrDamaged) {
		return err
	}
	why := err.Error() + "; " + whatToDo
	if db.health.damaged.CompareAndSwap(nil, &why) {
		db.log.Error("store is damaged: nothing is taken or written any more", "err", err, "hint", "stop the gateway and "+whatToDo)
		db.tell()
	}
	return err
}

// closeUntouched closes the writer's connections of a damaged database while a reader is there: the last to leave would
// write the log back into it.
func (db *DB) closeUntouched() error {
	if db.write == nil || db.read == nil {
		return nil
	}
	conn, err := db.read.Conn(db.base)
	if err == nil {
		var n int
		_ = conn.QueryRowContext(db.base, `SELECT 1`).Scan(&n) // only that it is there
		defer conn.Close()
	}
	err = db.write.Close()
	db.write = nil
	return err
}

// damage makes an error that the database itself calls damage ErrDamaged.
func damage(d dialect, err error) error {
	if err != nil && !errors.Is(err, ErrDamaged) && d.corrupt(err) {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}

// Writable says whether anything can be written at this moment.
func (db *DB) Writable() bool { return db.health.writable() }
