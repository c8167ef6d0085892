package disk

import (
	"os"

	"golang.org/x/sys/unix"
)

// roomAt asks the file system of a folder what it has.
func roomAt(dir string) (room, bool) {
	var st unix.Stat_t
	var fs unix.Statfs_t
	if unix.Stat(dir, &st) != nil || unix.Statfs(dir, &fs) != nil {
		return room{}, false
	}
	return roomFrom(&st, &fs), true
}

func roomOf(dir *os.File) (room, bool) {
	var st unix.Stat_t
	var fs unix.Statfs_t
	if fd := int(dir.Fd()); unix.Fstat(fd, &st) != nil || unix.Fstatfs(fd, &fs) != nil {
		return room{}, false
	}
	return roomFrom(&st, &fs), true
}

func roomFrom(st *unix.Stat_t, fs *unix.Statfs_t) room {
	return room{dev: st.Dev, total: int64(fs.Blocks) * fs.Bsize, free: int64(fs.Bavail) * fs.Bsize, entries: int64(fs.Files), spare: int64(fs.Ffree)}
}
