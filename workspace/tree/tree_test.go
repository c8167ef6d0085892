//go:build unix

package tree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// deep makes folders inside one another, each with a file.
func deep(t testing.TB, dir string, depth int) {
	t.Helper()
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	for range depth {
		if err == nil {
			err = unix.Mkdirat(fd, "d", 0o700)
		}
		if err != nil {
			t.Fatal(err)
		}
		next, nerr := unix.Openat(fd, "d", unix.O_RDONLY|unix.O_DIRECTORY, 0)
		unix.Close(fd)
		if fd, err = next, nerr; err != nil {
			t.Fatal(err)
		}
		f, ferr := unix.Openat(fd, "f", unix.O_CREAT|unix.O_WRONLY, 0o600)
		if err = ferr; err == nil {
			unix.Close(f)
		}
	}
	unix.Close(fd)
}

func open(t testing.TB, dir string) *os.File {
	t.Helper()
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// removed clears a folder that t.TempDir could not, or only in minutes.
func removed(t testing.TB, dir string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	for _, e := range list {
		if _, rerr := Remove(context.Background(), open(t, dir), e.Name(), nil); rerr != nil {
			err = errors.Join(err, rerr)
		}
	}
	if err != nil {
		t.Error(err)
	}
}

// scratch is a folder in memory where there is such a file system: a disk takes seconds for so many folders.
func scratch(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "tree-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		removed(t, dir)
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func files() int {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(list)
}

// E66: a walk costs the same at any depth, and holds few files open.
func TestE66_DeepFoldersAreWalkedAndRemoved(t *testing.T) {
	dir := scratch(t)
	const depth = 10_000
	deep(t, dir, depth)
	seen, deepest, most, before := 0, 0, 0, files()
	began := time.Now()
	left := 0
	err := Walker{
		Visit: func(e *Entry) error {
			if seen++; seen%500 == 0 {
				most = max(most, files()-before)
			}
			deepest = max(deepest, e.Depth)
			return nil
		},
		Leave: func(*Entry) error { left++; return nil },
	}.Walk(t.Context(), open(t, dir))
	if err != nil || seen != depth || deepest != depth+1 || left != depth {
		t.Errorf("%d files down to %d, left %d folders: %v", seen, deepest, left, err)
	}
	if most > openMost+8 {
		t.Errorf("%d files were open", most)
	}
	walked := time.Since(began)
	n, err := Remove(t.Context(), open(t, dir), "d", nil)
	if err != nil || n != 2*depth {
		t.Errorf("%d names removed: %v", n, err)
	}
	t.Logf("walked in %s, removed in %s", walked, time.Since(began)-walked)
	if list, err := os.ReadDir(dir); err != nil || len(list) != 0 {
		t.Errorf("left %v %v", list, err)
	}
}

// E66: no name, kind or number of entries ends a walk; no link is followed.
func TestE66_WhatACommandMayLeaveIsSeen(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	want := []string{"\xff\xfe", "a\nb", "-rf", "*", "back\\slash", strings.Repeat("é", 127), "sub/x"}
	for _, name := range want {
		full := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(full), 0o700), os.WriteFile(full, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600), os.Symlink(outside, filepath.Join(dir, "link")), os.WriteFile(filepath.Join(outside, "y"), nil, 0o600),
		os.Symlink("loop", filepath.Join(dir, "loop"))); err != nil {
		t.Fatal(err)
	}
	for i := range pendingMost + 700 {
		if err := os.Mkdir(filepath.Join(dir, "sub", fmt.Sprint(i)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	want = append(want, "fifo", "link", "loop")
	var got []string
	folders := 0
	see := Walker{Visit: func(e *Entry) error { got = append(got, e.Path()); return nil }, Enter: func(*Entry) error { folders++; return nil }}
	if err := see.Walk(t.Context(), open(t, dir)); err != nil {
		t.Fatal(err)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) || folders != pendingMost+701 {
		t.Errorf("%d folders, %q, want %q", folders, got, want)
	}
	if _, err := Remove(t.Context(), open(t, dir), "sub", nil); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(outside, "y")); err != nil {
		t.Errorf("a link was followed: %v", err)
	}
	if _, err := OpenFile(int(open(t, dir).Fd()), "fifo", true); err == nil {
		t.Error("a FIFO was opened")
	}
	if _, err := OpenFile(int(open(t, dir).Fd()), "link", true); err == nil {
		t.Error("a link was opened")
	}
}

// E66: what an owner may not read is healed through the open folder above it, and nothing through a link.
func TestE66_WhatMayNotBeReadIsHealed(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	secret := filepath.Join(outside, "secret")
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "a", "b"), 0o700), os.WriteFile(filepath.Join(dir, "a", "b", "f"), []byte("text"), 0o600),
		os.WriteFile(secret, nil, 0o600), os.Chmod(secret, 0o040), os.Symlink(secret, filepath.Join(dir, "link")),
		os.Chmod(filepath.Join(dir, "a", "b", "f"), 0), os.Chmod(filepath.Join(dir, "a", "b"), 0), os.Chmod(filepath.Join(dir, "a"), 0)); err != nil {
		t.Fatal(err)
	}
	read := 0
	w := Walker{Heal: Read, Visit: func(e *Entry) error {
		f, err := OpenFile(e.At, e.Name, true)
		if e.Name == "link" {
			if err == nil {
				t.Error("a link was opened")
			}
			_, err := Heal(e.At, e.Name, Write)
			return err
		}
		if err != nil {
			return err
		}
		read++
		return f.Close()
	}}
	if err := w.Walk(t.Context(), open(t, dir)); err != nil || read != 1 {
		t.Errorf("%d files: %v", read, err)
	}
	if info, err := os.Stat(secret); err != nil || info.Mode().Perm() != 0o040 {
		t.Errorf("what a link names was changed: %v %v", info.Mode(), err)
	}
	if err := os.Chmod(filepath.Join(dir, "a"), 0); err != nil {
		t.Fatal(err)
	}
	if n, err := Remove(t.Context(), open(t, dir), "a", nil); err != nil || n != 3 {
		t.Errorf("%d names removed: %v", n, err)
	}
}

// E66: a folder that is moved away under a walk costs what was in it, and never leads the walk out.
func TestE66_AFolderThatIsMovedEndsNoWalk(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	deep(t, dir, 200)
	for _, name := range []string{"z1", "z2"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(outside, "secret"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	moved, failed := false, 0
	var got []string
	w := Walker{
		Enter: func(e *Entry) error {
			if e.Depth == 150 && !moved {
				moved = true
				return errors.Join(os.Rename(filepath.Join(dir, strings.Repeat("d/", 19)+"d"), filepath.Join(outside, "stolen")),
					os.Rename(filepath.Join(dir, strings.Repeat("d/", 9)+"d"), filepath.Join(outside, "stolen too")))
			}
			return nil
		},
		Visit:  func(e *Entry) error { got = append(got, e.Name); return nil },
		Failed: func(*Entry, error) error { failed++; return nil },
	}
	if err := w.Walk(t.Context(), open(t, dir)); err != nil || failed != 1 {
		t.Errorf("%d folders were given up: %v", failed, err)
	}
	if slices.Contains(got, "secret") || !slices.Contains(got, "z1") || !slices.Contains(got, "z2") {
		t.Errorf("saw %d files", len(got))
	}
	removed(t, outside)
	removed(t, dir)
}

func TestAWalkEndsWithItsContext(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	deep(t, dir, 50)
	ctx, cancel := context.WithCancel(t.Context())
	seen := 0
	err := Walker{Visit: func(*Entry) error {
		if seen++; seen == 10 {
			cancel()
		}
		return nil
	}}.Walk(ctx, open(t, dir))
	if !errors.Is(err, context.Canceled) || seen > 12 {
		t.Errorf("%d files, %v", seen, err)
	}
}
