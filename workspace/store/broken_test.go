package store_test

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/workspace/store"
)

func TestR12_StartOnADamagedFileNamesRestore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	junk := make([]byte, 8192)
	rand.Read(junk)
	if err := os.WriteFile(filepath.Join(dir, "parley.db"), junk, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), store.Options{Dir: dir, BallastBytes: -1})
	if err == nil {
		s.Close()
	}
	if !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), "parley restore") {
		t.Errorf("open: %v", err)
	}
}
