package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
