package store

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
)

// healEvery is how often an unwritable store is tried again.
const healEvery = 500 * time.Millisecond

// Health of a store.
type Health string

const (
	Well       Health = "ok"
	Degraded   Health = "degraded"   // checking after an unclean end
	Unwritable Health = "unwritable" // disk full, read-only or gone: heals by itself
	Damaged    Health = "damaged"    // a check failed: restore from a backup
)

type health struct {
	unwritableNow, checking, damagedNow, unclean atomic.Bool
	reason                                       atomic.Value // string
}

func (h *health) writable() bool { return !h.unwritableNow.Load() && !h.damagedNow.Load() }

// Health is the worst that is known, with its reason.
func (s *Store) Health() (Health, string) {
	reason, _ := s.health.reason.Load().(string)
	switch {
	case s.health.damagedNow.Load():
		return Damaged, reason
	case s.health.unwritableNow.Load():
		return Unwritable, reason
	case s.health.checking.Load():
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

// fail notes that nothing can be written, and says whether freeing the ballast is worth one more try.
func (s *Store) fail(err error) (freed bool) {
	s.health.reason.Store(err.Error())
	if s.health.unwritableNow.CompareAndSwap(false, true) {
		s.log.Error("store cannot write", "err", err)
		s.tell()
	}
	name := filepath.Join(s.opt.Dir, "ballast")
	info, statErr := os.Stat(name)
	if statErr != nil || info.Size() == 0 {
		return false
	}
	return os.Remove(name) == nil
}

// heal is called after a commit went well: with the ballast back in place the store is writable again.
func (w *writer) heal() {
	s := w.s
	if !s.health.unwritableNow.Load() {
		return
	}
	if err := w.transaction([]*unit{{name: "probe", run: func(t *tx) error {
		_, err := t.exec(`INSERT INTO settings (name, value) VALUES ('probe', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value`, fmt.Sprint(t.now))
		return err
	}}}); err != nil {
		w.forget()
		return
	}
	if !s.ballast() {
		return
	}
	s.health.unwritableNow.Store(false)
	s.log.Info("store can write again")
	s.tell()
}

// ballast lays a file aside that is freed when the disk is full. It says whether the file stands.
func (s *Store) ballast() bool {
	size := s.opt.BallastBytes
	if size < 0 || s.opt.Postgres != "" {
		return true
	}
	name := filepath.Join(s.opt.Dir, "ballast")
	if info, err := os.Stat(name); err == nil && info.Size() == size {
		return true
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return false
	}
	block := make([]byte, 1<<20)
	for left := size; left > 0 && err == nil; left -= int64(len(block)) {
		if int64(len(block)) > left {
			block = block[:left]
		}
		_, err = f.Write(block)
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		_ = os.Remove(name) // half a ballast only takes room
		return false
	}
	return true
}

// damaged notes that a stored row or page is not what was written: the store stops writing.
func (s *Store) damaged(err error) error {
	s.health.reason.Store(err.Error())
	if s.health.damagedNow.CompareAndSwap(false, true) {
		s.log.Error("store is damaged", "err", err)
		s.tell()
	}
	return err
}

const (
	walPassive = 16 << 20 // a checkpoint is begun above this
	walRestart = 64 << 20 // … and waits for readers above this
	checkEvery = 24 * time.Hour
)

// keep is the keeper goroutine: checkpoints on a connection of their own, and checks.
func (s *Store) keep() {
	lite, ok := s.d.(sqlite)
	if !ok {
		<-s.quit
		return
	}
	if s.health.unclean.Load() {
		s.health.checking.Store(true)
		s.tell()
		s.check("quick_check")
		s.health.checking.Store(false)
		s.tell()
	}
	daily := time.NewTicker(checkEvery)
	defer daily.Stop()
	for {
		select {
		case <-s.quit:
			return
		case <-daily.C:
			s.check("integrity_check")
		case <-s.care:
			s.checkpoint(lite.path + "-wal")
		}
	}
}

func (s *Store) checkpoint(wal string) {
	info, err := os.Stat(wal)
	if err != nil || info.Size() < walPassive {
		return
	}
	mode := "PASSIVE"
	if info.Size() > walRestart {
		mode = "RESTART"
	}
	if _, err := s.db.ExecContext(context.Background(), "PRAGMA wal_checkpoint("+mode+")"); err != nil && s.health.writable() {
		s.log.Warn("checkpoint failed", "err", err)
	}
}

// check asks SQLite whether its pages hang together. It stops when the store closes.
func (s *Store) check(how string) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stop := context.AfterFunc(ctx, func() {})
	defer stop()
	go func() { // ends with ctx, which ends with this function
		select {
		case <-s.quit:
			cancel()
		case <-ctx.Done():
		}
	}()
	var said string
	err := s.read.QueryRowContext(ctx, "PRAGMA "+how+"(1)").Scan(&said)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		_ = s.damaged(fmt.Errorf("%s: %w", how, err)) // logged and told by damaged itself
	case said != "ok":
		_ = s.damaged(fmt.Errorf("%s: %s", how, said))
	}
}
