package blob

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
)

func files(t *testing.T, dir string) (n int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			n++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestTakeKeepsWhatPutKeeps(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := New(dir)
	data := bytes.Repeat([]byte("0123456789"), 1000)
	k, err := s.Take(iotest.OneByteReader(bytes.NewReader(data)), int64(len(data)))
	if err != nil || k.Size != int64(len(data)) || !bytes.Equal(k.Head, data[:headSize]) {
		t.Fatalf("%d bytes, head of %d, %v", k.Size, len(k.Head), err)
	}
	ref, err := s.Put(data)
	if err != nil || ref != k.Ref || files(t, dir) != 1 {
		t.Errorf("%s, want %s: %v, %d files", ref, k.Ref, err, files(t, dir))
	}
	if got, err := s.Read(k.Ref); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestT18_TakeStopsAtItsLimitAndKeepsNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := New(dir)
	endless := io.MultiReader(strings.NewReader("x"), neverEnding{})
	if _, err := s.Take(endless, 100_000); !errors.Is(err, ErrTooLarge) {
		t.Errorf("endless: %v", err)
	}
	broken := errors.New("cut")
	if _, err := s.Take(io.MultiReader(strings.NewReader("half"), iotest.ErrReader(broken)), 100); !errors.Is(err, broken) {
		t.Errorf("cut: %v", err)
	}
	if n := files(t, dir); n != 0 {
		t.Errorf("%d files are left", n)
	}
}

func TestTidyRemovesHalfFilesOnly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := New(dir)
	if err := New(filepath.Join(dir, "absent")).Tidy(); err != nil {
		t.Error(err)
	}
	ref, err := s.Put([]byte("whole"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "new-123"), []byte("ha"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Tidy(); err != nil || files(t, dir) != 1 {
		t.Errorf("%v, %d files", err, files(t, dir))
	}
	if data, err := s.Read(ref); err != nil || string(data) != "whole" {
		t.Errorf("%q, %v", data, err)
	}
}

type neverEnding struct{}

func (neverEnding) Read(p []byte) (int, error) { return len(p), nil }
