package gateway

import "golang.org/x/sys/unix"

// freeBytes is the room on the disk of a folder for who is not root.
func freeBytes(dir string) (int64, bool) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, false
	}
	return int64(st.Bavail) * st.Bsize, true
}
