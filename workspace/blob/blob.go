// Package blob keeps files by the hash of what is in them. A file is durable when Put returns and never changes
// afterwards. It starts no goroutine.
package blob

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"parley/workspace"
)

// Store is a folder of files named by their SHA-256. Safe for concurrent use, also by several processes.
type Store struct{ dir string }

// New uses dir, which is made with mode 0700 by the first Put.
func New(dir string) *Store { return &Store{dir: dir} }

var refPattern = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Put keeps data and returns its reference: 64 hex digits.
func (s *Store) Put(data []byte) (ref string, err error) {
	sum := sha256.Sum256(data)
	ref = hex.EncodeToString(sum[:])
	name := s.path(ref)
	if _, err := os.Stat(name); err == nil {
		return ref, nil
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return "", fmt.Errorf("make blob folder: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(name), "new-*")
	if err != nil {
		return "", fmt.Errorf("keep blob: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name()) // half a file under a name that nobody asks for
		}
	}()
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return "", fmt.Errorf("keep blob: %w", err)
	}
	if err = os.Rename(f.Name(), name); err != nil {
		return "", fmt.Errorf("keep blob: %w", err)
	}
	return ref, syncDir(filepath.Dir(name))
}

// Path is the file of a reference. It is workspace.ErrInvalid for what is none, and workspace.ErrNotFound.
func (s *Store) Path(ref string) (string, error) {
	if !refPattern.MatchString(ref) {
		return "", fmt.Errorf("blob %.70q: %w", ref, workspace.ErrInvalid)
	}
	name := s.path(ref)
	if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("blob %s: %w", ref, workspace.ErrNotFound)
	} else if err != nil {
		return "", fmt.Errorf("find blob: %w", err)
	}
	return name, nil
}

// Read returns the data of a reference.
func (s *Store) Read(ref string) ([]byte, error) {
	name, err := s.Path(ref)
	if err != nil {
		return nil, err
	}
	return os.ReadFile(name)
}

func (s *Store) path(ref string) string { return filepath.Join(s.dir, ref[:2], ref) }

func syncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("keep blob: %w", err)
	}
	return errors.Join(d.Sync(), d.Close())
}
