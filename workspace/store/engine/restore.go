// Restore: a backup becomes a data directory.

package engine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"parley/workspace/archive"
	"parley/workspace/tree"
)

var (
	// ErrNotEmpty says that the data directory holds something: perhaps a gateway that runs.
	ErrNotEmpty = errors.New("the data directory is not empty")
	// ErrBackup says that a backup is not what its maker wrote.
	ErrBackup = archive.ErrDamaged
)

// Restore puts a backup into place as dataDir, which must not exist or be empty. Everything is verified first, beside
// the target: the manifest with every checksum, the database with its own check and every row's. On any error
// nothing is in place. What was answered after the backup may be answered once more. check is Hooks.Check.
func Restore(ctx context.Context, file, dataDir string, check check) (m Manifest, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("restore %s: %w", file, err)
		}
	}()
	dataDir, err = filepath.Abs(dataDir)
	if err != nil {
		return m, err
	}
	if list, err := os.ReadDir(dataDir); len(list) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return m, fmt.Errorf("%s: %w", dataDir, errors.Join(err, ErrNotEmpty))
	}
	if err := os.MkdirAll(filepath.Dir(dataDir), 0o700); err != nil {
		return m, err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dataDir), ".parley-restore-")
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, removeAll(tmp)) }()
	in, err := os.Open(file)
	if err != nil {
		return m, err
	}
	defer in.Close()
	if m, err = archive.Read(ctx, in, tmp, DatabaseFile); err != nil {
		return m, err
	}
	if err := VerifyFile(ctx, filepath.Join(tmp, DatabaseFile), check); err != nil {
		return m, fmt.Errorf("verify %s: %w", DatabaseFile, err)
	}
	if err := countRestored(ctx, tmp); err != nil {
		return m, fmt.Errorf("count the commits of %s: %w", DatabaseFile, err)
	}
	if err := os.Remove(dataDir); err != nil && !errors.Is(err, fs.ErrNotExist) { // fails when something has come into it
		return m, errors.Join(err, ErrNotEmpty)
	}
	if err := os.Rename(tmp, dataDir); err != nil {
		return m, err
	}
	return m, syncDir(filepath.Dir(dataDir))
}

// countRestored begins a new line of commits: what the database was before is another one from now on, and must not be
// mistaken for it. A backup of before commits were counted gets its count at the first start.
func countRestored(ctx context.Context, dir string) (err error) {
	d := sqlite{path: filepath.Join(dir, DatabaseFile)}
	db, err := sql.Open("sqlite", d.dsn("rw", "FULL"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if there, err := (&Reader{db: db, d: d}).Tables(ctx); err != nil || !there["commits"] {
		return err
	}
	c := Count{Line: newLine(time.Now)}
	const q = `UPDATE commits SET line = ?, n = n + 1 WHERE id = 1 RETURNING n, seq, answer`
	if err := db.QueryRowContext(ctx, q, c.Line).Scan(&c.N, &c.Seq, &c.Answer); err != nil {
		return err
	}
	return writeCount(dir, c)
}

// removeAll removes a folder of any depth, also when what ctx was for has ended.
func removeAll(dir string) error {
	up, err := os.Open(filepath.Dir(dir))
	if err != nil {
		return err
	}
	defer up.Close()
	if _, err := tree.Remove(context.Background(), up, filepath.Base(dir), nil); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
