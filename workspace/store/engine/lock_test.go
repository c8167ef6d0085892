package engine

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestLockSaysWhoHoldsTheDirectory(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "lock")
	if err := os.WriteFile(name, []byte("1234567890\n"), 0o600); err != nil { // left by a process that died
		t.Fatal(err)
	}
	held, err := lockDir(name)
	if err != nil {
		t.Fatal(err)
	}
	_, err = lockDir(name)
	if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), fmt.Sprintf("by process %d:", os.Getpid())) {
		t.Errorf("a second one hears: %v", err)
	}
	forked, err := unix.Dup(int(held.Fd())) // as in a child between its fork and its exec
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(forked) }()
	if err := unlockDir(held); err != nil {
		t.Fatal(err)
	}
	again, err := lockDir(name)
	if err != nil {
		t.Fatalf("after the first ended: %v", err)
	}
	again.Close()
}

// A process that was killed while it started a program leaves a copy of its lock in that one until its exec: who starts
// next waits for it, and not where the holder lives.
func TestLockOutlastsAProgramThatADeadProcessWasStarting(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "lock")
	dead := exec.Command("/bin/sh", "-c", "exit 0")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	held, err := lockDir(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, fmt.Appendln(nil, dead.Process.Pid), 0o600); err != nil {
		t.Fatal(err)
	}
	let := time.AfterFunc(50*time.Millisecond, func() { held.Close() })
	defer let.Stop()
	next, err := lockDir(name)
	if err != nil {
		t.Fatalf("after the copy was closed: %v", err)
	}
	if pid := holder(next); pid != os.Getpid() {
		t.Errorf("the lock names process %d", pid)
	}
	next.Close()
}
