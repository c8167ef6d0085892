//go:build unix

package whatsapp

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// lock holds a file for this process. Two processes with one device's keys would destroy each other's sessions.
func lock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock: %w", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return f, nil
	}
	f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, errOwned
	}
	return nil, fmt.Errorf("lock %s: %w", path, err)
}

// unlock gives the file back at once: a program that is just being started holds a copy of the descriptor until its exec.
func unlock(f *os.File) error {
	return errors.Join(unix.Flock(int(f.Fd()), unix.LOCK_UN), f.Close())
}
