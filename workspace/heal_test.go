package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// E66: what a command has shut is open again at the next call of a tool; what it only protected stays so.
func TestE66_AShutWorkFolderIsHealed(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "work")
	r, err := OpenWork(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.MkdirAll(at("a/b"), 0o700), os.WriteFile(at("a/b/f"), []byte("text"), 0o600), os.Mkdir(at(Inbox), 0o700),
		os.WriteFile(at("kept"), []byte("x"), 0o444), os.Mkdir(at("read"), 0o555), os.WriteFile(at("other"), nil, 0)); err != nil {
		t.Fatal(err)
	}
	shut := func(names ...string) {
		t.Helper()
		for _, name := range names {
			if err := os.Chmod(at(name), 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	shut("a/b/f", "a/b", "a", "")
	if text, _, err := r.ReadFile(At("a/b/f"), 100); err != nil || string(text) != "text" {
		t.Errorf("read: %q %v", text, err)
	}
	shut("a/b/f", "a/b", "a", "")
	if _, err := r.WriteFile(At("a/b/f"), []byte("new")); err != nil {
		t.Errorf("write: %v", err)
	}
	shut("a/b", "a", "")
	if list, _, err := r.List(At("a/b"), 10); err != nil || len(list) != 1 {
		t.Errorf("list: %v %v", list, err)
	}
	shut("a", "")
	if _, err := r.Stat(At("a/b")); err != nil {
		t.Errorf("stat: %v", err)
	}
	shut(Inbox, "")
	if p, err := r.Keep(Inbox, "sent.txt", strings.NewReader("sent")); err != nil || p != "inbox/sent.txt" {
		t.Errorf("keep: %q %v", p, err)
	}
	shut("")
	again, err := OpenWork(dir)
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
	for _, name := range []string{"kept", "read"} {
		if _, err := r.Stat(At(name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, want := range map[string]os.FileMode{"": 0o700, "kept": 0o444, "read": 0o555, "other": 0} {
		if info, err := os.Stat(at(name)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%q has mode %o, want %o", name, info.Mode().Perm(), want)
		}
	}
}

// E66: a folder of an owner is theirs to shut.
func TestE66_AFolderOfAnOwnerIsNotHealed(t *testing.T) {
	t.Parallel()
	mine := filepath.Join(t.TempDir(), "mine")
	if err := errors.Join(os.Mkdir(mine, 0o700), os.WriteFile(filepath.Join(mine, "f"), nil, 0)); err != nil {
		t.Fatal(err)
	}
	r, err := OpenWork(filepath.Join(t.TempDir(), "work"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	if err := r.Mount(Folder{Dir: mine, As: "mine", Write: true}); err != nil {
		t.Fatal(err)
	}
	_, _, _ = r.ReadFile(At("mine/f"), 10) // the superuser may
	if info, err := os.Stat(filepath.Join(mine, "f")); err != nil || info.Mode().Perm() != 0 {
		t.Errorf("mode %o %v", info.Mode().Perm(), err)
	}
}
