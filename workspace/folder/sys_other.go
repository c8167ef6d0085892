//go:build !linux

package folder

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// No command runs on these systems, so that nobody exchanges names while they are looked at.

func openBelow(root *os.File, p string) (*os.File, error) {
	return os.OpenFile(filepath.Join(root.Name(), p), os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
}

func makeReadable(*os.File, string) error { return errors.ErrUnsupported }

type inode struct {
	id    ident
	mode  uint32
	links uint64
	uid   uint32
}

func lstatIn(dir *os.File, name string) (inode, error) {
	fi, err := os.Lstat(filepath.Join(dir.Name(), name))
	if err != nil {
		return inode{}, err
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return inode{}, errors.ErrUnsupported
	}
	id, _ := identIn(fi)
	return inode{id, uint32(st.Mode), uint64(st.Nlink), st.Uid}, nil //nolint:unconvert // the widths differ between systems
}

func renameIn(dir *os.File, from, to string) error {
	if _, err := os.Lstat(filepath.Join(dir.Name(), to)); err == nil {
		return os.ErrExist
	}
	return os.Rename(filepath.Join(dir.Name(), from), filepath.Join(dir.Name(), to))
}

// watch does not exist here.
type watch struct{}

func newWatch() *watch                           { return nil }
func (*watch) add(*os.File, string) error        { return nil }
func (*watch) drain(*Guard) (jobs []job, _ bool) { return nil, false }
func (*watch) follow(func())                     {}
func (*watch) close()                            {}
