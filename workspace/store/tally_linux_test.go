package store_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestR19_TheCountCostsNoSystemCall: the file moves with each commit, while no descriptor of this process is open on it,
// so that nothing but the mapped page can have moved it.
func TestR19_TheCountCostsNoSystemCall(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := openDir(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "commits")
	for range 5 {
		before, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.SetSetting("a", "b"); err != nil {
			t.Fatal(err)
		}
		if after, err := os.ReadFile(name); err != nil || string(after) == string(before) {
			t.Fatalf("the count did not move: %v", err)
		}
	}
	open, err := filepath.Glob("/proc/self/fd/*")
	if err != nil || len(open) == 0 {
		t.Fatal(open, err)
	}
	for _, fd := range open {
		if to, _ := os.Readlink(fd); strings.HasPrefix(to, name) {
			t.Errorf("%s is open on %s", fd, to)
		}
	}
}

// A page that is gone ends the counting, not the gateway.
func TestR19_ACountThatWasCutEndsNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := openDir(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, "commits"), 0); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := s.SetSetting("a", "b"); err != nil {
			t.Error(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = openDir(t, dir); err != nil {
		t.Fatal(err)
	}
	audited(t, s, "store.unwitnessed")
}
