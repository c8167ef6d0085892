package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"
)

const (
	walPassive  = 16 << 20 // a checkpoint is begun above this
	walStep     = 4 << 20  // … and again after so much more, while one could not finish
	walRestart  = 64 << 20 // above this the log is begun anew, which needs all readers gone for a moment
	walLong     = 96 << 20 // above this the line waits for them, whatever they read
	walPatience = 5 * time.Second
	checkEvery  = 24 * time.Hour
	lookEvery   = 10 * time.Minute // whether a check is due
	checkAfter  = time.Second      // of a start: first what was left is answered
	checkWhole  = 64 << 20         // up to this size a database is read whole after each start
)

// keep is the keeper goroutine: checkpoints on a connection of their own, and checks. PostgreSQL keeps itself.
func (s *Store) keep(ctx context.Context) {
	lite, ok := s.d.(sqlite)
	if !ok {
		<-ctx.Done()
		return
	}
	checks := make(chan struct{})
	go func() { // ends with ctx, and is waited for
		defer close(checks)
		standBack()
		s.watch(ctx)
	}()
	k := keeper{s: s, wal: lite.path + "-wal", next: walPassive}
	for {
		select {
		case <-ctx.Done():
			<-checks
			return
		case <-s.care:
			k.checkpoint(ctx)
		}
	}
}

// watch looks at the database: soon after a start, whatever the end before it was, and daily.
func (s *Store) watch(ctx context.Context) {
	if s.health.unclean {
		s.tell()
	}
	well := false
	select {
	case <-ctx.Done():
	case <-time.After(checkAfter):
		well = s.note(ctx, s.quickCheck(ctx))
	}
	if s.health.unclean && ctx.Err() == nil {
		s.health.checking.Store(false)
		s.tell()
	}
	if well {
		s.startCheck(ctx)
	}
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		s.dailyCheck(ctx)
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
	}
}

// startCheck finds what happened to the file while nothing ran, and is hidden from a look at its structure. What is too
// large for it waits for its day.
func (s *Store) startCheck(ctx context.Context) {
	if info, err := os.Stat(s.d.(sqlite).path); err == nil && info.Size() <= checkWhole {
		s.note(ctx, s.Verify(ctx))
	}
}

// dailyCheck verifies the database when the last time was a day ago. The first day of a database is spared.
func (s *Store) dailyCheck(ctx context.Context) {
	now := s.opt.Now()
	text, err := s.Setting("checked")
	if err != nil {
		return // the next look sees it again
	}
	last, err := strconv.ParseInt(text, 10, 64)
	if err == nil && now.Sub(time.UnixMilli(last)) < checkEvery {
		return
	}
	if err == nil && !s.note(ctx, s.Verify(ctx)) {
		return
	}
	s.post("checked", setting("checked", strconv.FormatInt(now.UnixMilli(), 10)))
}

// note takes down what a check found, and says whether it was well.
func (s *Store) note(ctx context.Context, err error) bool {
	switch {
	case err == nil:
		return true
	case ctx.Err() != nil: // the store closes
	case errors.Is(s.seen(err), ErrDamaged): // logged and told by itself
	default:
		s.log.Warn("check of the database was cut short", "err", err)
	}
	return false
}

// quickCheck asks SQLite whether its pages hang together, without the indexes.
func (s *Store) quickCheck(ctx context.Context) error {
	return damage(s.d, pragmaCheck(ctx, s.read, "quick_check(1)"))
}

func pragmaCheck(ctx context.Context, db *sql.DB, how string) error {
	var said string
	if err := db.QueryRowContext(ctx, "PRAGMA "+how).Scan(&said); err != nil {
		return fmt.Errorf("%s: %w", how, err)
	}
	if said != "ok" {
		return fmt.Errorf("%s: %w: %s", how, ErrDamaged, said)
	}
	return nil
}

// keeper is the keeper goroutine's own state.
type keeper struct {
	s    *Store
	wal  string
	next int64 // size of the log at which a checkpoint is worth its syncs
}

func (k *keeper) checkpoint(ctx context.Context) {
	info, err := os.Stat(k.wal)
	if errors.Is(err, os.ErrNotExist) && ctx.Err() == nil { // it is there from the first commit until the store closes
		_ = k.s.seen(fmt.Errorf("%s was removed while it is in use: %w", k.wal, ErrDamaged)) // logged and told by itself
	}
	if err != nil {
		return
	}
	if _, damaged := k.s.health.damage(); damaged {
		return // it would write into the damaged file
	}
	size := info.Size()
	if size < k.next {
		if size < walPassive {
			k.next = walPassive // the log was begun anew
		}
		return
	}
	k.next = size + walStep
	k.run(ctx, "PASSIVE", 0) // what it has done, the writer need not wait for
	if size < walRestart {
		return
	}
	k.s.turn.Lock()
	defer k.s.turn.Unlock()
	patience := 2 * time.Duration(size>>20) * time.Millisecond // the longer the log, the longer the line may pause
	if size > walLong {
		patience = walPatience // no reader that began before it reads for longer
	}
	k.run(ctx, "RESTART", patience)
}

// run waits for readers in its way at most so long: the next step comes soon.
func (k *keeper) run(ctx context.Context, mode string, patience time.Duration) {
	conn, err := k.s.db.Conn(ctx)
	if err != nil {
		return // the store closes
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, fmt.Sprintf("PRAGMA busy_timeout(%d)", patience.Milliseconds())); err != nil {
		return
	}
	defer func() { _, _ = conn.ExecContext(k.s.base, "PRAGMA busy_timeout(5000)") }() // as every connection begins
	var busy, log, done int
	if err := conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint("+mode+")").Scan(&busy, &log, &done); err != nil && ctx.Err() == nil && !errors.Is(k.s.seen(err), ErrDamaged) && k.s.health.writable() {
		k.s.log.Warn("checkpoint failed", "err", err)
	}
}
