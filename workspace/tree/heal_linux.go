package tree

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Heal gives the owner of a file or folder back its rights where one of want is missing, by its name in an open folder and
// through no link: rw to a file, rwx to a folder. It says whether one was.
func Heal(at int, name string, want uint32) (bool, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return false, err
	}
	if st.Mode&want == want || owners(&st) == st.Mode {
		return false, nil
	}
	fd, err := unix.Openat(at, name, unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return false, err
	}
	defer unix.Close(fd)
	if err := unix.Fstat(fd, &st); err != nil {
		return false, err
	}
	mode := owners(&st)
	if st.Mode&want == want || mode == st.Mode {
		return false, nil
	}
	if uid := os.Geteuid(); uid != 0 && int(st.Uid) != uid {
		return false, unix.EPERM
	}
	return true, unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), mode&0o7777) // of what is open: nobody can exchange it
}

// owners is a mode with its owner's rights; that of a link or a special file stays.
func owners(st *unix.Stat_t) uint32 {
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return st.Mode | 0o700
	case unix.S_IFREG:
		return st.Mode | 0o600
	}
	return st.Mode
}
