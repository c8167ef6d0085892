//go:build unix

// Package tree walks folders that somebody hostile has filled, and may be filling still: counting, removing, saving and
// healing a work folder all walk by it. It goes by open folders, never by paths, so that a walk costs the same at any
// depth and no name leads out of the folder; it follows no link, holds few files open, and keeps no more in memory than
// the names on the way down and of the folders that are still to be seen.
package tree

import (
	"context"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	openMost    = 64   // folders that a walk holds open, beside those that it has not read to their end
	readMost    = 512  // names that are read at once
	pendingMost = 4096 // folders of one folder that wait to be seen
)

// What the owner of a folder may need of it.
const (
	Read  = 0o500
	Write = 0o700
)

// ErrMoved says that a folder was moved while it was walked: what had not been seen of it was left.
var ErrMoved = errors.New("it was moved while it was read")

// ErrSkipFolder is returned by Enter for a folder that is to be left alone.
var ErrSkipFolder = errors.New("skip this folder")

// Entry is what was found. It is valid during the call only.
type Entry struct {
	At    int    // file descriptor of the folder it is in
	Name  string // any bytes but / and NUL
	Depth int    // 1: directly in the folder that is walked; 0: that folder itself
	Stat  unix.Stat_t
	w     *walk
}

// Kind is the type bits of the entry's mode, such as unix.S_IFREG.
func (e *Entry) Kind() uint32 { return uint32(e.Stat.Mode) & unix.S_IFMT }

// Path is the entry's path below the folder that is walked. It costs as much as the entry is deep.
func (e *Entry) Path() string {
	names := make([]string, 0, e.Depth)
	for _, l := range e.w.levels[1:min(len(e.w.levels), max(e.Depth, 1))] {
		names = append(names, l.name)
	}
	return strings.Join(append(names, e.Name), "/")
}

// Beside says whether the entry's folder has such a name.
func (e *Entry) Beside(name string) bool {
	var st unix.Stat_t
	return unix.Fstatat(e.At, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil
}

// Walker says what is done on a walk. Any error that a function returns ends it.
type Walker struct {
	Enter  func(*Entry) error        // before a folder is read; ErrSkipFolder leaves it alone
	Visit  func(*Entry) error        // for what is not a folder
	Leave  func(*Entry) error        // when all in a folder was seen; it is closed
	Failed func(*Entry, error) error // for what could not be looked at or read on; nil: the error ends the walk
	Heal   uint32                    // Read or Write: a folder whose owner lacks these rights is given them back, where we may; 0: none is
	Stay   bool                      // on the file system of the folder that is walked
}

// level is a folder on the way down.
type level struct {
	dir      *os.File // nil: closed, and found again through ".."
	dev, ino uint64
	name     string
	pending  []string
	read     bool // to its end
}

type walk struct {
	Walker
	levels []level
}

// Walk sees everything below an open folder, which stays the caller's.
func (o Walker) Walk(ctx context.Context, dir *os.File) error {
	w := &walk{Walker: o}
	defer func() {
		for _, l := range w.levels {
			l.close()
		}
	}()
	top, err := OpenDir(int(dir.Fd()), ".", o.Heal)
	if err != nil {
		return err
	}
	if err := w.push(top, "."); err != nil {
		return err
	}
	for len(w.levels) > 0 {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		l := w.top()
		switch n := len(l.pending); {
		case n > 0 && (l.read || n >= pendingMost || l.dir == nil):
			name := l.pending[n-1]
			l.pending = l.pending[:n-1]
			err = w.enter(name)
		case !l.read:
			err = w.read()
		default:
			err = w.leave()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) top() *level { return &w.levels[len(w.levels)-1] }

func (l *level) close() {
	if l.dir != nil {
		_ = l.dir.Close() // it was only read
		l.dir = nil
	}
}

// push goes into an open folder, and closes one further up that was read to its end where too many are open.
func (w *walk) push(dir *os.File, name string) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &st); err != nil {
		dir.Close()
		return err
	}
	if w.Stay && len(w.levels) > 0 && uint64(st.Dev) != w.levels[0].dev { //nolint:unconvert // its type differs between systems
		return dir.Close()
	}
	w.levels = append(w.levels, level{dir: dir, dev: uint64(st.Dev), ino: st.Ino, name: name}) //nolint:unconvert // as above
	if n := len(w.levels) - 1 - openMost; n > 0 && w.levels[n].read {
		w.levels[n].close()
	}
	return nil
}

// read takes the next names of the folder at hand: what is not a folder is seen at once.
func (w *walk) read() error {
	l := w.top()
	names, err := l.dir.Readdirnames(readMost)
	for _, name := range names {
		e := Entry{At: int(l.dir.Fd()), Name: name, Depth: len(w.levels), w: w}
		switch err := unix.Fstatat(e.At, name, &e.Stat, unix.AT_SYMLINK_NOFOLLOW); {
		case errors.Is(err, unix.ENOENT): // gone meanwhile
			continue
		case err != nil:
			if err := w.failed(&e, err); err != nil {
				return err
			}
			continue
		}
		if e.Kind() == unix.S_IFDIR {
			l.pending = append(l.pending, name)
		} else if w.Visit != nil {
			if err := w.Visit(&e); err != nil {
				return err
			}
		}
	}
	if err == nil && len(names) > 0 {
		return nil
	}
	l.read = true
	if err == nil || errors.Is(err, io.EOF) {
		return nil
	}
	return w.failed(w.here(), err)
}

// here is the folder at hand as an entry; its stat is not known.
func (w *walk) here() *Entry {
	e := &Entry{At: -1, Name: w.top().name, Depth: len(w.levels) - 1, w: w}
	if n := len(w.levels) - 2; n >= 0 && w.levels[n].dir != nil {
		e.At = int(w.levels[n].dir.Fd())
	}
	return e
}

func (w *walk) failed(e *Entry, err error) error {
	if w.Failed == nil {
		return err
	}
	return w.Failed(e, err)
}

// enter goes into a folder of the one at hand.
func (w *walk) enter(name string) error {
	e := Entry{At: int(w.top().dir.Fd()), Name: name, Depth: len(w.levels), w: w}
	switch err := unix.Fstatat(e.At, name, &e.Stat, unix.AT_SYMLINK_NOFOLLOW); {
	case errors.Is(err, unix.ENOENT):
		return nil
	case err != nil:
		return w.failed(&e, err)
	case e.Kind() != unix.S_IFDIR: // exchanged meanwhile
		if w.Visit == nil {
			return nil
		}
		return w.Visit(&e)
	}
	if w.Enter != nil {
		if err := w.Enter(&e); errors.Is(err, ErrSkipFolder) {
			return nil
		} else if err != nil {
			return err
		}
	}
	dir, err := OpenDir(e.At, name, w.Heal)
	if err == nil {
		err = w.push(dir, name)
	}
	if err != nil {
		return w.failed(&e, err)
	}
	return nil
}

// leave goes back to the folder above.
func (w *walk) leave() error {
	n := len(w.levels) - 1
	here := w.levels[n]
	defer here.close()
	w.levels = w.levels[:n]
	if n == 0 {
		return nil
	}
	up := w.top()
	if up.dir == nil {
		if up.dir = above(here.dir, up); up.dir == nil {
			if err := w.again(); err != nil {
				return err
			}
			if len(w.levels) < n {
				return nil // further up than the folder that was left
			}
			up = w.top()
		}
	}
	here.close()
	if w.Leave == nil {
		return nil
	}
	e := Entry{At: int(up.dir.Fd()), Name: here.name, Depth: n, w: w}
	if err := unix.Fstatat(e.At, e.Name, &e.Stat, unix.AT_SYMLINK_NOFOLLOW); err != nil || e.Stat.Ino != here.ino {
		return nil // it is elsewhere by now
	}
	return w.Leave(&e)
}

// above opens the folder above one; nil: it is not the one that the walk came from.
func above(dir *os.File, want *level) *os.File {
	up, err := OpenDir(int(dir.Fd()), "..", 0)
	if err != nil {
		return nil
	}
	if !want.is(up) {
		up.Close()
		return nil
	}
	return up
}

func (l *level) is(dir *os.File) bool {
	var st unix.Stat_t
	return unix.Fstat(int(dir.Fd()), &st) == nil && uint64(st.Dev) == l.dev && st.Ino == l.ino //nolint:unconvert // its type differs between systems
}

// again goes down from the top to the folder at hand, where the way back up is lost, and gives up what is no longer there.
func (w *walk) again() error {
	for i := 1; i < len(w.levels); i++ {
		l, up := &w.levels[i], &w.levels[i-1]
		if l.dir == nil {
			dir, err := OpenDir(int(up.dir.Fd()), l.name, w.Heal)
			if err == nil && !l.is(dir) {
				dir.Close()
				err = ErrMoved
			}
			if err != nil {
				e := &Entry{At: int(up.dir.Fd()), Name: l.name, Depth: i, w: w}
				for _, lost := range w.levels[i:] {
					lost.close()
				}
				w.levels = w.levels[:i]
				return w.failed(e, ErrMoved)
			}
			l.dir = dir
		}
		if i >= 2 && up.read { // the way down needs the last one only
			up.close()
		}
	}
	return nil
}

// OpenDir opens a folder by its name in an open one, never through a link. Its owner is given back the rights that it lacks of
// want, where we may.
func OpenDir(at int, name string, want uint32) (*os.File, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC | unix.O_NOFOLLOW | unix.O_NONBLOCK
	if want != 0 && name != "." {
		_, _ = Heal(at, name, want) // what may not be healed says so below
	}
	fd, err := unix.Openat(at, name, flags, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// OpenFile opens a regular file for reading by its name in an open folder: no link, and without waiting for anybody's end of
// a FIFO. With heal its owner is given back the rights to it.
func OpenFile(at int, name string, heal bool) (*os.File, error) {
	const flags = unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY
	fd, err := unix.Openat(at, name, flags, 0)
	if errors.Is(err, unix.EACCES) && heal {
		if _, healErr := Heal(at, name, 0o400); healErr != nil {
			return nil, err
		}
		fd, err = unix.Openat(at, name, flags, 0)
	}
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), path.Base(name))
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, f.Close(), unix.EINVAL)
	}
	return f, nil
}

// HealPath is Heal of a folder by its path, whose last name alone may be somebody else's doing.
func HealPath(dir string, want uint32) error {
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil || uint32(st.Mode)&want == want {
		return err
	}
	up, err := os.Open(filepath.Dir(dir))
	if err != nil {
		return err
	}
	defer up.Close()
	_, err = Heal(int(up.Fd()), filepath.Base(dir), want)
	return err
}

// Remove removes an entry of an open folder with all that is in it, whatever its depth, and says how many names are gone. It
// goes on past what it cannot remove, and gives the first reason. keep, where it is not nil, is asked before a name is removed.
func Remove(ctx context.Context, dir *os.File, name string, keep func(*Entry) bool) (removed int64, err error) {
	at := int(dir.Fd())
	first := func(why error) {
		if err == nil && !errors.Is(why, unix.ENOENT) {
			err = why
		}
	}
	unlink := func(e *Entry, flags int) error {
		if keep != nil && keep(e) {
			return nil
		}
		if why := unix.Unlinkat(e.At, e.Name, flags); why != nil {
			first(why)
		} else {
			removed++
		}
		return nil
	}
	e := Entry{At: at, Name: name, Depth: 1, w: &walk{levels: make([]level, 1)}}
	if err := unix.Fstatat(at, name, &e.Stat, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return 0, err
	}
	if e.Kind() != unix.S_IFDIR {
		_ = unlink(&e, 0) // it is noted
		return removed, err
	}
	for range 8 { // somebody may be putting things in
		before := removed
		err = nil
		w := Walker{Heal: Write, Stay: true, Visit: func(e *Entry) error { return unlink(e, 0) }, Leave: func(e *Entry) error { return unlink(e, unix.AT_REMOVEDIR) },
			Failed: func(_ *Entry, why error) error { first(why); return nil }}
		top, why := OpenDir(at, name, Write)
		if why != nil {
			return removed, why
		}
		why = w.Walk(ctx, top)
		top.Close()
		if why != nil {
			return removed, why
		}
		_ = unlink(&e, unix.AT_REMOVEDIR) // it is noted
		if err == nil || removed == before {
			break
		}
	}
	return removed, err
}
