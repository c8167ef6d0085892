package engine

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// reserve takes size bytes of the disk for f, without writing them where the file system can.
func reserve(f *os.File, size int64) error {
	err := unix.Fallocate(int(f.Fd()), 0, 0, size)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return fill(f, size)
	}
	return err
}

// roomFor says whether so many bytes are free; where that cannot be known, the try will tell.
func roomFor(dir string, size int64) bool {
	var fs unix.Statfs_t
	if unix.Statfs(dir, &fs) != nil {
		return true
	}
	return int64(fs.Bavail) >= size/fs.Bsize
}
