package folder

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"parley/workspace"
)

// watch is told by the kernel what is made in a folder and in all below it (inotify(7)). One watch serves all commands.
// It is used under the lock of its Guard, but for follow.
type watch struct {
	file  *os.File
	paths map[int32]string // by watch: where the folder was last seen
}

// told is what a watch tells of. A folder that is moved keeps its watch, and is looked at where it comes to stand.
const told = unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_MOVED_FROM | unix.IN_DELETE | unix.IN_ONLYDIR | unix.IN_EXCL_UNLINK

// newWatch makes one; nil: the system gives none.
func newWatch() *watch {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil
	}
	return &watch{file: os.NewFile(uintptr(fd), "inotify"), paths: map[int32]string{}}
}

// add watches an open folder.
func (w *watch) add(dir *os.File, p string) error {
	raw, err := w.file.SyscallConn()
	if err != nil {
		return err
	}
	var wd int
	cerr := raw.Control(func(fd uintptr) {
		wd, err = unix.InotifyAddWatch(int(fd), "/proc/self/fd/"+strconv.Itoa(int(dir.Fd())), told)
	})
	if err = errors.Join(cerr, err); err == nil {
		w.paths[int32(wd)] = p
	}
	return err
}

// drain takes all that was told, and says what is to be looked at. lost: some was not told.
func (w *watch) drain(g *Guard) (jobs []job, lost bool) {
	raw, err := w.file.SyscallConn()
	if err != nil {
		return nil, true
	}
	buf := make([]byte, 64<<10)
	for {
		n := 0
		cerr := raw.Control(func(fd uintptr) { n, err = unix.Read(int(fd), buf) })
		if cerr != nil || n <= 0 || err != nil {
			return jobs, lost
		}
		for b := buf[:n]; len(b) >= unix.SizeofInotifyEvent; {
			wd, mask, size := int32(binary.NativeEndian.Uint32(b)), binary.NativeEndian.Uint32(b[4:]), int(binary.NativeEndian.Uint32(b[12:]))
			name, _, _ := bytes.Cut(b[unix.SizeofInotifyEvent:unix.SizeofInotifyEvent+size], []byte{0})
			b = b[unix.SizeofInotifyEvent+size:]
			switch p, ok := w.paths[wd]; {
			case mask&unix.IN_Q_OVERFLOW != 0:
				lost = true
			case mask&unix.IN_IGNORED != 0:
				delete(w.paths, wd)
			case ok:
				for _, j := range g.after(p, string(name), mask) {
					if !slices.Contains(jobs[max(0, len(jobs)-8):], j) {
						jobs = append(jobs, j)
					}
				}
			}
		}
	}
}

// after says what is to be looked at when something has happened to a name in a folder.
func (g *Guard) after(p, name string, mask uint32) (jobs []job) {
	child := path.Join(p, name)
	if mask&(unix.IN_DELETE|unix.IN_MOVED_FROM) != 0 {
		if _, ok := g.known[child]; ok && g.active == 0 {
			g.stale = true
		}
		return nil
	}
	if g.covered(p) {
		return nil // the owner's git at work
	}
	control := g.w.rule.Name(name) || g.extras[child]
	if control || slices.ContainsFunc(workspace.RepositoryParts(), func(part string) bool { return strings.EqualFold(part, name) }) {
		jobs = append(jobs, job{p, false})
	}
	if mask&unix.IN_ISDIR != 0 && !control {
		jobs = append(jobs, job{child, true})
	}
	return jobs
}

// follow calls f whenever something was told, until the watch is closed, and then lets go of it.
func (w *watch) follow(f func()) {
	defer w.file.Close()
	raw, err := w.file.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Read(func(uintptr) bool { // its error is that the watch was closed
		f()
		return false
	})
}

// close ends follow. It does not wait for it, which waits for the caller's lock.
func (w *watch) close() {
	_ = w.file.SetReadDeadline(time.Unix(1, 0)) // inotify knows deadlines
}
