// Backup: the data directory as one file, while the DB is open.

package engine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"parley/workspace/archive"
)

// Manifest says what a backup holds.
type Manifest = archive.Manifest

var (
	// ErrElsewhere says that the database is not in the data directory.
	ErrElsewhere = errors.New("the database is in PostgreSQL: back it up with pg_dump, and the data directory by itself")
	// ErrBackingUp says that a backup is being made already.
	ErrBackingUp = errors.New("a backup is being made already")
)

// backupTold is how often the log is told that a backup goes on.
const backupTold = 15 * time.Second

// Backup writes the data directory into a new file, a .tar.gz with mode 0600, while the store runs: the databases
// as of one moment each, then all other files. What cannot be read is left out and listed. The copy of the database is
// verified before it is taken, so a damaged one makes no backup. A file that exists is not overwritten. One backup is made
// at a time, at a low priority, and it holds no connection of the DB's. first are names in the data directory that are
// copied before any database: what they say must not be ahead of its copy. skip leaves out what means something to this
// machine only.
func (db *DB) Backup(ctx context.Context, file string, first []string, skip func(name string) bool) (m Manifest, err error) {
	if db.opt.Postgres != "" {
		return m, ErrElsewhere
	}
	if !db.backing.TryLock() {
		return m, ErrBackingUp
	}
	defer db.backing.Unlock()
	b := backup{dir: db.opt.Dir, first: first, check: db.opt.Hooks.Check, opt: archive.Options{Epoch: db.epoch, Created: db.opt.Now()}}
	b.opt.Skip = func(name string) bool { return passing(name) || skip(name) }
	began := db.opt.Now()
	told := began
	b.opt.Grown = func(files, bytes int64) error {
		if now := db.opt.Now(); now.Sub(told) >= backupTold {
			told = now
			db.log.Info("backup is being made", "files", files, "bytes", bytes, "took", now.Sub(began))
		}
		return nil
	}
	err = behind(func() (err error) {
		m, err = b.write(ctx, file)
		return err
	})
	if err != nil {
		return Manifest{}, fmt.Errorf("back up to %s: %w", file, db.Seen(err))
	}
	db.log.Info("backup made", "files", m.Files, "bytes", m.Bytes, "left_out", m.LeftOut, "took", db.opt.Now().Sub(began))
	return m, nil
}

// backup is one backup in the making.
type backup struct {
	dir   string // data directory
	tmp   string // copies of databases, and of what comes before them
	first []string
	check check
	opt   archive.Options
}

func (b *backup) write(ctx context.Context, file string) (m Manifest, err error) {
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		return m, errors.Join(err, fs.ErrExist)
	}
	if b.tmp, err = os.MkdirTemp(filepath.Dir(file), ".parley-backup-"); err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.tmp)) }()
	partial := filepath.Join(b.tmp, "backup")
	out, err := os.OpenFile(partial, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return m, err
	}
	b.opt.Scratch = b.tmp
	for _, name := range b.first {
		if err := copyAside(filepath.Join(b.dir, name), filepath.Join(b.tmp, name)); err != nil {
			return m, errors.Join(fmt.Errorf("copy %s: %w", name, err), out.Close())
		}
	}
	b.opt.Instead = func(name string) func() (*os.File, error) {
		switch {
		case filepath.Ext(name) == ".db":
			return func() (*os.File, error) { return b.database(ctx, name) }
		case slices.Contains(b.first, name):
			return func() (*os.File, error) { return os.Open(filepath.Join(b.tmp, name)) }
		}
		return nil
	}
	m, err = archive.Write(ctx, out, b.dir, b.opt)
	if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
		return m, err
	}
	return m, os.Rename(partial, file)
}

// passing names, directly in the data directory, mean something to a running process only. Logs of a database are in its copy.
func passing(name string) bool {
	switch {
	case name == "lock", name == "ballast", name == CountFile, strings.HasPrefix(name, "receipts."):
		return true
	case strings.HasPrefix(name, asideName): // what an operator has given up
		return true
	case strings.HasPrefix(name, ".parley-"): // what is in the making, this very backup perhaps
		return true
	}
	return strings.HasSuffix(name, ".db-wal") || strings.HasSuffix(name, ".db-shm") || strings.HasSuffix(name, ".db-journal")
}

// database makes a consistent copy of one that is open, this one or an adapter's.
func (b *backup) database(ctx context.Context, name string) (*os.File, error) {
	to := filepath.Join(b.tmp, name)
	if err := copyDatabase(ctx, filepath.Join(b.dir, name), to); err != nil {
		if name != DatabaseFile { // damage in an adapter's is not this one's
			return nil, fmt.Errorf("copy %s: %v", name, err)
		}
		return nil, fmt.Errorf("copy %s: %w", name, err)
	}
	if name == DatabaseFile {
		if err := VerifyFile(ctx, to, b.check); err != nil {
			return nil, fmt.Errorf("verify the copy of %s: %w", name, err)
		}
	}
	f, err := os.Open(to)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(to); err != nil { // what is open stays
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func copyDatabase(ctx context.Context, from, to string) (err error) {
	q := url.Values{"mode": {"ro"}, "_pragma": {"busy_timeout(5000)"}}
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: from}).EscapedPath()+"?"+q.Encode())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	_, err = db.ExecContext(ctx, "VACUUM INTO ?", to)
	return err
}
