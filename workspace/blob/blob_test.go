package blob_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/workspace"
	"parley/workspace/blob"
)

func TestPutKeepsAndNamesByContent(t *testing.T) {
	t.Parallel()
	s := blob.New(t.TempDir())
	a, err := s.Put([]byte("one"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.Put([]byte("one"))
	if err != nil || a != b {
		t.Fatalf("second put: %s %v, want %s", b, err, a)
	}
	got, err := s.Read(a)
	if err != nil || string(got) != "one" {
		t.Fatalf("read: %q %v", got, err)
	}
}

func TestE49_OpenTakesNothingButReferences(t *testing.T) {
	t.Parallel()
	s := blob.New(t.TempDir())
	for _, ref := range []string{"", "../../etc/passwd", "file:///etc/passwd", strings.Repeat("A", 64), strings.Repeat("a", 63) + "/"} {
		if _, err := s.Open(ref); !errors.Is(err, workspace.ErrInvalid) {
			t.Errorf("%q: %v", ref, err)
		}
	}
	if _, err := s.Open(strings.Repeat("a", 64)); !errors.Is(err, workspace.ErrNotFound) {
		t.Errorf("absent: %v", err)
	}
}

// A kept file is read from anywhere, by several at once, and nothing of it tells where it is kept.
func TestAnOpenFileHasNoName(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := blob.New(dir)
	ref, err := s.Put([]byte("one two"))
	if err != nil {
		t.Fatal(err)
	}
	f, err := s.Open(ref)
	if err != nil {
		t.Fatal(err)
	}
	again, err := s.Open(ref)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	head, err := f.Head()
	if err != nil || string(head) != "one two" || f.Size() != 7 {
		t.Errorf("begins with %q of %d bytes, %v", head, f.Size(), err)
	}
	if _, err := f.Seek(4, io.SeekStart); err != nil {
		t.Error(err)
	}
	for want, r := range map[string]io.Reader{"two": f, "one two": again} {
		if got, err := io.ReadAll(r); err != nil || string(got) != want {
			t.Errorf("read %q, %v; want %q", got, err, want)
		}
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	_, read := f.Read(make([]byte, 1))
	_, seek := f.Seek(0, io.SeekStart)
	if err := os.Chmod(filepath.Join(dir, ref[:2]), 0); err != nil {
		t.Fatal(err)
	}
	_, open := s.Open(ref) // root may all the same
	if err := os.Chmod(filepath.Join(dir, ref[:2]), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{read, seek, f.Close(), open} {
		if err != nil && strings.Contains(err.Error(), dir) {
			t.Errorf("it tells its path: %v", err)
		}
	}
	if read == nil || seek == nil {
		t.Error("a closed file is read")
	}
}
