package blob_test

import (
	"errors"
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

func TestE49_PathTakesNothingButReferences(t *testing.T) {
	t.Parallel()
	s := blob.New(t.TempDir())
	for _, ref := range []string{"", "../../etc/passwd", "file:///etc/passwd", strings.Repeat("A", 64), strings.Repeat("a", 63) + "/"} {
		if _, err := s.Path(ref); !errors.Is(err, workspace.ErrInvalid) {
			t.Errorf("%q: %v", ref, err)
		}
	}
	if _, err := s.Path(strings.Repeat("a", 64)); !errors.Is(err, workspace.ErrNotFound) {
		t.Errorf("absent: %v", err)
	}
}
