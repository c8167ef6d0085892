package folder

import (
	"errors"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// maxStep is how much of a path one system call takes.
const maxStep = 4000

// openat opens a relative path below an open folder. It follows no link, wherever in the path, and leads out of nothing.
func openat(dir int, p string, flags uint64) (int, error) {
	how := unix.OpenHow{Flags: flags | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_BENEATH}
	for {
		fd, err := unix.Openat2(dir, p, &how)
		if !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.EAGAIN) { // the latter: something was renamed meanwhile
			return fd, err
		}
	}
}

// reach opens a relative path of any length.
func reach(root *os.File, p string, flags uint64) (int, error) {
	dir, own := int(root.Fd()), false
	defer func() {
		if own {
			unix.Close(dir)
		}
	}()
	for len(p) > maxStep {
		i := strings.LastIndexByte(p[:maxStep], '/')
		if i < 0 {
			return -1, unix.ENAMETOOLONG
		}
		next, err := openat(dir, p[:i], unix.O_PATH|unix.O_DIRECTORY)
		if err != nil {
			return -1, err
		}
		if own {
			unix.Close(dir)
		}
		dir, own, p = next, true, p[i+1:]
	}
	return openat(dir, p, flags)
}

// openBelow opens a folder.
func openBelow(root *os.File, p string) (*os.File, error) {
	fd, err := reach(root, p, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "folder"), nil
}

// makeReadable lets us into a folder of Parley's.
func makeReadable(root *os.File, p string) error {
	fd, err := reach(root, p, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&0o700 == 0o700 {
		return err
	}
	return unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), st.Mode&0o7777|0o700)
}

// inode is what lstatIn tells.
type inode struct {
	id    ident
	mode  uint32
	links uint64
	uid   uint32
}

func lstatIn(dir *os.File, name string) (inode, error) {
	var st unix.Stat_t
	err := unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW)
	return inode{ident{uint64(st.Dev), st.Ino}, st.Mode, uint64(st.Nlink), st.Uid}, err //nolint:unconvert // the widths differ between processors
}

// renameIn gives a name in a folder another one that nothing has.
func renameIn(dir *os.File, from, to string) error {
	return unix.Renameat2(int(dir.Fd()), from, int(dir.Fd()), to, unix.RENAME_NOREPLACE)
}
