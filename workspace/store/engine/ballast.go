// The ballast, a file that is freed when the disk is full.

package engine

import (
	"errors"
	"os"
	"path/filepath"
)

func (db *DB) ballastName() string { return filepath.Join(db.opt.Dir, "ballast") }

// ballast lays a file aside that is freed when the disk is full. It says whether the file stands.
func (db *DB) ballast() bool {
	size := db.opt.BallastBytes
	if size < 0 || db.opt.Postgres != "" {
		return true
	}
	name := db.ballastName()
	if info, err := os.Stat(name); err == nil && info.Size() == size {
		return true
	}
	if !roomFor(db.opt.Dir, size+ballastMargin) {
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

// ballastMargin must be free beyond the ballast before it is written: otherwise writing it would fill the disk.
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
