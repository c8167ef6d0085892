package store_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"parley/workspace"
	"parley/workspace/store"
	"parley/workspace/storetest"
)

// backedUp is a backup that was made while messages came in, with the inputs that had been acknowledged before.
func backedUp(t *testing.T) (file string, acked []workspace.InputID) {
	t.Helper()
	p := storetest.SQLite(t)
	s := p.Open(t)
	for name, text := range map[string]string{"token": "secret", "agents/assistant/SOUL.md": "kind", "blobs/ab/abcd": "blob", "ballast": "x"} {
		name = filepath.Join(p.Dir(), name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(p.Dir(), "agents", "assistant", "link")); err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		got, err := s.Accept(storetest.NewChat(i).Message(s, fmt.Sprintf("m:%d", i), "text"))
		if err != nil {
			t.Fatal(err)
		}
		acked = append(acked, got[0].Input.ID)
	}
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { // the line goes on
		for i := 0; ctx.Err() == nil; i++ {
			if _, err := s.Accept(storetest.NewChat(1).Message(s, fmt.Sprintf("more:%d", i), "text")); err != nil {
				t.Error(err)
				return
			}
		}
	})
	file = filepath.Join(t.TempDir(), "backup.tar.gz")
	m, err := s.Backup(t.Context(), file)
	stop()
	wg.Wait()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range m.Files {
		names = append(names, f.Name)
	}
	slices.Sort(names)
	if want := []string{"agents/assistant/SOUL.md", "audit.head", "blobs/ab/abcd", "parley.db", "token"}; !slices.Equal(names, want) {
		t.Errorf("saved %v, want %v", names, want)
	}
	if !slices.Equal(m.Left, []string{"agents/assistant/link"}) {
		t.Errorf("left out %v", m.Left)
	}
	if _, err := s.Backup(t.Context(), file); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over an older backup: %v", err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v %v", info.Mode(), err)
	}
	return file, acked
}

func TestR12_ABackupMadeUnderLoadIsRestored(t *testing.T) {
	t.Parallel()
	file, acked := backedUp(t)
	dir := filepath.Join(t.TempDir(), "restored", "data")
	if _, err := store.Restore(t.Context(), file, dir); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "agents", "assistant", "SOUL.md")); err != nil || string(text) != "kind" {
		t.Errorf("%q %v", text, err)
	}
	s, err := store.Open(t.Context(), store.Options{Dir: dir, BallastBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range acked {
		if _, err := s.Input(id); err != nil {
			t.Errorf("input %s: %v", id, err)
		}
	}
	if s.Epoch() != 2 {
		t.Errorf("epoch %d", s.Epoch())
	}
	if _, err := store.Restore(t.Context(), file, dir); !errors.Is(err, store.ErrNotEmpty) {
		t.Errorf("over a running gateway: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	left, err := os.ReadDir(filepath.Dir(dir))
	if err != nil || len(left) != 1 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

func TestR12_ADamagedBackupIsNotPutInPlace(t *testing.T) {
	t.Parallel()
	file, _ := backedUp(t)
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	refuse := func(what string, text []byte) {
		t.Helper()
		bad, dir := filepath.Join(t.TempDir(), "bad.tar.gz"), filepath.Join(t.TempDir(), "data")
		if err := os.WriteFile(bad, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := store.Restore(t.Context(), bad, dir); err == nil {
			t.Errorf("%s was restored", what)
		}
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s left something in place", what)
		}
	}
	refuse("an empty file", nil)
	refuse("half a backup", good[:len(good)/2])
	for i := range 20 {
		flipped := slices.Clone(good)
		flipped[len(good)*(i+1)/22] ^= 1 << (i % 8)
		refuse(fmt.Sprintf("a backup with bit %d flipped", i), flipped)
	}
	refuse("a path that leads out", archive(t, "../evil", "x"))
	refuse("an absolute path", archive(t, "/tmp/evil", "x"))
	refuse("a file that no manifest names", archive(t, "parley.db", "x"))
}

func archive(t *testing.T, name, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	packed := gzip.NewWriter(&out)
	list := tar.NewWriter(packed)
	for _, f := range [][2]string{{name, text}, {"manifest.json", `{"format":1}`}} {
		if err := list.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: f[0], Size: int64(len(f[1])), Mode: 0o600}); err != nil {
			t.Fatal(err)
		}
		if _, err := list.Write([]byte(f[1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(list.Close(), packed.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
