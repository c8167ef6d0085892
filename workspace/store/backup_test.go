package store_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"parley/workspace"
	"parley/workspace/archive"
	"parley/workspace/store"
	"parley/workspace/storetest"
	"parley/workspace/tree"
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
	names := names(t, file)
	if want := []string{"agents/assistant/SOUL.md", "audit.head", "blobs/ab/abcd", "manifest.json", "parley.db", "token"}; !slices.Equal(names, want) || m.Files != 5 {
		t.Errorf("saved %d, %v, want %v", m.Files, names, want)
	}
	if want := []archive.LeftOut{{Name: "agents/assistant/link", Reason: "a symbolic link"}}; !slices.Equal(m.Left, want) || m.LeftOut != 1 {
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

// names are those of an archive, sorted.
func names(t *testing.T, file string) (list []string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	packed, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(packed); ; {
		h, err := r.Next()
		if err != nil {
			slices.Sort(list)
			return list
		}
		list = append(list, h.Name)
	}
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
		if bytes.Equal(unpacked(flipped), unpacked(good)) {
			continue // deflate fills up bytes with bits that mean nothing
		}
		refuse(fmt.Sprintf("a backup with bit %d flipped", i), flipped)
	}
	refuse("a path that leads out", packed(t, "../evil", "x"))
	refuse("an absolute path", packed(t, "/tmp/evil", "x"))
	refuse("a file that no manifest names", packed(t, "parley.db", "x"))
}

// unpacked is what an archive was packed from; nil: it is damaged.
func unpacked(archive []byte) []byte {
	r, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil
	}
	text, err := io.ReadAll(r)
	if err != nil {
		return nil
	}
	return text
}

func packed(t *testing.T, name, text string) []byte {
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

// E66: whatever is in a work folder, a backup is made, one at a time, and messages are taken meanwhile.
func TestE66_ABackupStopsNoIntake(t *testing.T) {
	t.Parallel()
	p := storetest.SQLite(t)
	s := p.Open(t)
	work := filepath.Join(p.Dir(), "agents", "assistant", "work", "owner-ana")
	if err := os.MkdirAll(work, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		up, err := os.Open(filepath.Dir(work))
		if err == nil {
			_, err = tree.Remove(context.Background(), up, filepath.Base(work), nil)
			up.Close()
		}
		if err != nil {
			t.Error(err)
		}
	})
	at, err := os.OpenRoot(work)
	for i := 0; err == nil && i < 3000; i++ {
		next := (*os.Root)(nil)
		if err = at.Mkdir("d", 0o700); err == nil {
			next, err = at.OpenRoot("d")
			err = errors.Join(err, at.Close())
			at = next
		}
	}
	if err == nil {
		err = at.Close()
	}
	for i := range 40 {
		name := filepath.Join(work, fmt.Sprint("hole", i))
		err = errors.Join(err, os.WriteFile(name, nil, 0o600), os.Truncate(name, 256<<20))
	}
	shut := filepath.Join(work, "shut")
	if err = errors.Join(err, os.WriteFile(filepath.Join(work, "mute"), []byte("x"), 0), os.Mkdir(shut, 0o700), os.WriteFile(filepath.Join(shut, "file"), nil, 0), os.Chmod(shut, 0)); err != nil {
		t.Fatal(err)
	}

	ended := make(chan error, 1)
	var m store.Manifest
	began := time.Now()
	to := t.TempDir()
	go func() {
		var err error
		m, err = s.Backup(t.Context(), filepath.Join(to, "backup.tar.gz"))
		ended <- err
	}()
	var worst time.Duration
	second := false
	for i := 0; ; i++ {
		select {
		case err := <-ended:
			if err != nil || m.LeftOut != 0 || m.Bytes > 16<<20 || m.Files < 44 {
				t.Errorf("%+v %v", m, err)
			}
			t.Logf("backup took %s; the slowest of %d messages meanwhile %s", time.Since(began), i, worst)
			if !second {
				t.Log("it was over before a second could begin")
			}
			return
		default:
		}
		before := time.Now()
		if _, err := s.Accept(storetest.NewChat(1).Message(s, fmt.Sprintf("m:%d", i), "text")); err != nil {
			t.Fatal(err)
		}
		worst = max(worst, time.Since(before))
		if list, err := os.ReadDir(to); err != nil || len(list) == 0 {
			continue // the first has not begun
		}
		_, err := s.Backup(t.Context(), filepath.Join(t.TempDir(), "second.tar.gz"))
		if second = second || errors.Is(err, store.ErrBackingUp); err != nil && !errors.Is(err, store.ErrBackingUp) {
			t.Error(err)
		}
	}
}
