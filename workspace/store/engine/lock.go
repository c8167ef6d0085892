// The data directory belongs to one process.

package engine

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// lockDir takes the data directory for this process; the lock goes with it.
func lockDir(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock file: %w", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) && gone(holder(f)) {
		err = outlast(f)
	}
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		who := "another process"
		if pid := holder(f); pid > 0 {
			who = fmt.Sprintf("process %d", pid)
		}
		f.Close()
		return nil, fmt.Errorf("%w by %s: stop that one, or use another data directory", ErrInUse, who)
	case err != nil:
		f.Close()
		return nil, fmt.Errorf("lock data directory: %w", err)
	}
	if err := f.Truncate(0); err == nil { // who holds it is only said to people: a full disk must not keep us from starting
		_, _ = fmt.Fprintln(f, os.Getpid())
	}
	return f, nil
}

// holder is the process that a lock file names; 0: none.
func holder(f *os.File) int {
	data, err := io.ReadAll(io.NewSectionReader(f, 0, 32))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		return 0
	}
	return pid
}

func gone(pid int) bool { return pid > 0 && errors.Is(unix.Kill(pid, 0), unix.ESRCH) }

// outlast takes a lock whose process was killed: a program that it was just starting holds a copy until its exec, which
// takes moments, or a second on a busy machine.
func outlast(f *os.File) (err error) {
	tick, end := time.NewTicker(10*time.Millisecond), time.NewTimer(5*time.Second)
	defer tick.Stop()
	defer end.Stop()
	for {
		if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); !errors.Is(err, unix.EWOULDBLOCK) || !gone(holder(f)) {
			return err
		}
		select {
		case <-end.C:
			return err
		case <-tick.C:
		}
	}
}

// unlockDir gives the data directory back at once: a program that is just being started somewhere else in this process
// holds a copy of the descriptor until its exec, and would keep the lock that long.
func unlockDir(f *os.File) error {
	return errors.Join(unix.Flock(int(f.Fd()), unix.LOCK_UN), f.Close())
}

// ErrInUse says that another process has the data directory.
var ErrInUse = errors.New("the data directory is in use")
