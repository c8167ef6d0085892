// What is given up or replaced is kept in a folder beside.

package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// asideName begins the folders into which goes what is given up or replaced.
const asideName = "aside-"

// CopyAside copies files of a data directory into a new folder in it, which it returns. One that is missing is passed over.
func CopyAside(dir string, now time.Time, names ...string) (string, error) {
	aside, err := newAside(dir, now)
	if err != nil {
		return "", err
	}
	for _, name := range names {
		if err := copyAside(filepath.Join(dir, name), filepath.Join(aside, name)); err != nil {
			return "", fmt.Errorf("keep %s aside: %w", name, err)
		}
	}
	return aside, syncDir(aside)
}

// MoveAside moves all of a data directory that nobody has open, but the names of keep, into a new folder in it, which it
// returns. The names of last go last, in their order: a start that ends in between finds what they prove again.
func MoveAside(dir string, now time.Time, keep, last []string) (string, error) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	aside, err := newAside(dir, now)
	if err != nil {
		return "", err
	}
	names := []string{}
	for _, e := range list {
		if n := e.Name(); n != "lock" && !strings.HasPrefix(n, asideName) && !slices.Contains(keep, n) && !slices.Contains(last, n) {
			names = append(names, n)
		}
	}
	for _, name := range append(names, last...) {
		err := os.Rename(filepath.Join(dir, name), filepath.Join(aside, name))
		if errors.Is(err, unix.EBUSY) {
			continue // something is mounted there
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("move %s aside: %w", name, err)
		}
	}
	return aside, errors.Join(syncDir(aside), syncDir(dir))
}

// newAside makes a folder of this moment.
func newAside(dir string, now time.Time) (string, error) {
	base := filepath.Join(dir, asideName+now.UTC().Format("20060102T150405Z"))
	for i := 0; ; i++ {
		name := base
		if i > 0 {
			name = fmt.Sprintf("%s-%d", base, i)
		}
		err := os.Mkdir(name, 0o700)
		if err == nil {
			return name, syncDir(dir)
		}
		if !errors.Is(err, fs.ErrExist) || i == 99 {
			return "", fmt.Errorf("make a folder for what is moved aside: %w", err)
		}
	}
}

func copyAside(from, to string) error {
	in, err := os.Open(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = in.WriteTo(out)
	return errors.Join(err, out.Sync(), out.Close())
}

func syncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
