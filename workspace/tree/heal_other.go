//go:build unix && !linux

package tree

import "golang.org/x/sys/unix"

// Heal gives the owner of a file or folder back its rights where one of want is missing, by its name in an open folder and
// through no link: rw to a file, rwx to a folder. It says whether one was.
func Heal(at int, name string, want uint32) (bool, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return false, err
	}
	all := uint32(0o600)
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		all = 0o700
	case unix.S_IFREG:
	default:
		return false, nil
	}
	if uint32(st.Mode)&want == want {
		return false, nil
	}
	return true, unix.Fchmodat(at, name, uint32(st.Mode)&0o7777|all, unix.AT_SYMLINK_NOFOLLOW)
}
