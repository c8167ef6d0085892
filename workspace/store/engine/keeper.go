// The keeper: checkpoints and checks of SQLite.

package engine

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
	walPassive = 16 << 20 // a checkpoint is begun above this
	walStep    = 4 << 20  // … and again after so much more, while one could not finish
	walRestart = 64 << 20 // above this the log is started over, which needs all readers gone for a moment
	walLong    = 96 << 20 // above this the writer waits for them, whatever they read
	walWait    = 5 * time.Second
	checkEvery = 24 * time.Hour
	lookEvery  = 10 * time.Minute // whether a check is due
	checkAfter = time.Second      // of a start: first what was left is answered
	checkWhole = 64 << 20         // up to this size a database is read whole after each start
)

// keep is the keeper goroutine: checkpoints on a connection of their own, and checks. PostgreSQL keeps itself.
func (db *DB) keep(ctx context.Context) {
	lite, ok := db.d.(sqlite)
	if !ok {
		<-ctx.Done()
		return
	}
	checks := make(chan struct{})
	go func() { // ends with ctx, and is waited for
		defer close(checks)
		db.watch(ctx)
	}()
	k := keeper{db: db, wal: lite.path + "-wal", next: walPassive}
	for {
		select {
		case <-ctx.Done():
			<-checks
			return
		case <-db.care:
			k.checkpoint(ctx)
		}
	}
}

// watch looks at the database: soon after a start, whatever the end before it was, and daily.
func (db *DB) watch(ctx context.Context) {
	if db.health.unclean {
		db.tell()
	}
	well := false
	select {
	case <-ctx.Done():
	case <-time.After(checkAfter):
		well = db.found(ctx, behind(func() error { return db.quickCheck(ctx) }))
	}
	if db.health.unclean && ctx.Err() == nil {
		db.health.checking.Store(false)
		db.tell()
	}
	if well {
		db.startCheck(ctx)
	}
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		db.dailyCheck(ctx)
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
	}
}

// startCheck finds what happened to the file while nothing ran, and is hidden from a look at its structure. What is too
// large for it waits for its day.
func (db *DB) startCheck(ctx context.Context) {
	if info, err := os.Stat(db.d.(sqlite).path); err == nil && info.Size() <= checkWhole {
		db.found(ctx, behind(func() error { return db.Verify(ctx) }))
	}
}

// dailyCheck verifies the database when the last time was a day ago. The first day of a database is spared.
func (db *DB) dailyCheck(ctx context.Context) {
	now := db.opt.Now()
	text, err := db.Setting("checked")
	if err != nil {
		return // the next look sees it again
	}
	last, err := strconv.ParseInt(text, 10, 64)
	if err == nil && now.Sub(time.UnixMilli(last)) < checkEvery {
		return
	}
	if err == nil && !db.found(ctx, behind(func() error { return db.Verify(ctx) })) {
		return
	}
	db.Post("checked", Func(func(t *Tx) error { return t.Set("checked", strconv.FormatInt(now.UnixMilli(), 10)) }))
}

// found takes down what a check found, and says whether it was well.
func (db *DB) found(ctx context.Context, err error) bool {
	switch {
	case err == nil:
		return true
	case ctx.Err() != nil: // the store closes
	case errors.Is(db.Seen(err), ErrDamaged): // logged and told by itself
	default:
		db.log.Warn("check of the database was cut short", "err", err)
	}
	return false
}

// quickCheck asks SQLite whether its pages hang together, without the indexes.
func (db *DB) quickCheck(ctx context.Context) error {
	return damage(db.d, pragmaCheck(ctx, db.read, "quick_check(1)"))
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
	db   *DB
	wal  string
	next int64 // size of the log at which a checkpoint is worth its syncs
}

func (k *keeper) checkpoint(ctx context.Context) {
	info, err := os.Stat(k.wal)
	if errors.Is(err, os.ErrNotExist) && ctx.Err() == nil { // it is there from the first commit until the store closes
		_ = k.db.Seen(fmt.Errorf("%s was removed while it is in use: %w", k.wal, ErrDamaged)) // logged and told by itself
	}
	if err != nil {
		return
	}
	if _, damaged := k.db.health.damage(); damaged {
		return // it would write into the damaged file
	}
	size := info.Size()
	if size < k.next {
		if size < walPassive {
			k.next = walPassive // the log was started over
		}
		return
	}
	k.next = size + walStep
	k.run(ctx, "PASSIVE", 0) // what it has done, the writer need not wait for
	if size < walRestart {
		return
	}
	k.db.turn.Lock()
	defer k.db.turn.Unlock()
	wait := 2 * time.Duration(size>>20) * time.Millisecond // the longer the log, the longer the writer may pause
	if size > walLong {
		wait = walWait // no reader that began before it reads for longer
	}
	k.run(ctx, "RESTART", wait)
}

// run waits for readers in its way at most so long: the next step comes soon.
func (k *keeper) run(ctx context.Context, mode string, wait time.Duration) {
	conn, err := k.db.write.Conn(ctx)
	if err != nil {
		return // the store closes
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, fmt.Sprintf("PRAGMA busy_timeout(%d)", wait.Milliseconds())); err != nil {
		return
	}
	defer func() { _, _ = conn.ExecContext(k.db.base, "PRAGMA busy_timeout(5000)") }() // as every connection begins
	var busy, log, done int
	err = conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint("+mode+")").Scan(&busy, &log, &done)
	if err == nil || ctx.Err() != nil {
		return
	}
	if !errors.Is(k.db.Seen(err), ErrDamaged) && k.db.health.writable() {
		k.db.log.Warn("checkpoint failed", "err", err)
	}
}
