// Package blob keeps files by the hash of what is in them. A file is durable when Put returns and never changes
// afterwards. It starts no goroutine.
package blob

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"parley/workspace"
	"parley/workspace/disk"
)

// Store is a folder of files named by their SHA-256. Safe for concurrent use, also by several processes.
type Store struct {
	dir  string
	rule *disk.Rule // of disk space; nil: none

	mu    sync.Mutex
	sound map[string]stamp // files that were read since and held what they are named by
}

// stamp is a file as it was when it was read.
type stamp struct {
	size int64
	at   time.Time
}

// soundMost bounds what is remembered; a file that is forgotten is read once more.
const soundMost = 10_000

// ErrDamaged says that a file is not what was kept: it was cut, changed or emptied.
var ErrDamaged = errors.New("the file is not what was kept")

// In is the store of a data directory.
func In(dataDir string) *Store { return New(filepath.Join(dataDir, "blobs")) }

// New uses dir, which is made with mode 0700 by the first Put.
func New(dir string) *Store { return &Store{dir: dir, sound: map[string]stamp{}} }

// Under puts the store under the rule of disk space, and returns it. It must be done before the store is shared.
func (s *Store) Under(rule *disk.Rule) *Store {
	s.rule = rule
	return s
}

// Rule is the one that the store is under.
func (s *Store) Rule() *disk.Rule { return s.rule }

// Room asks whether so many bytes could be taken now: for who must put a file somewhere else first.
func (s *Store) Room(n int64) error {
	done, err := s.rule.Admit(filepath.Dir(s.dir), n)
	done()
	return said(err)
}

// said gives a refusal of the rule its sentence.
func said(err error) error {
	var full *disk.Error
	if errors.As(err, &full) {
		return workspace.Say(err, "I cannot keep this file: %s.", full.Error())
	}
	return err
}

var refPattern = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Put keeps data and returns its reference: 64 hex digits.
func (s *Store) Put(data []byte) (ref string, err error) {
	sum := sha256.Sum256(data)
	ref = hex.EncodeToString(sum[:])
	if f, err := s.Open(ref); err == nil { // a damaged one is written again
		return ref, f.Close()
	}
	kept, err := s.Take(bytes.NewReader(data), int64(len(data)))
	return kept.Ref, err
}

// Kept is a file that was taken in.
type Kept struct {
	Ref  string
	Size int64
	Head []byte // its first bytes, at most headSize
}

const headSize = 4096

// ErrTooLarge is returned by Take.
var ErrTooLarge = errors.New("larger than allowed")

// Take reads r to its end and keeps what came. More than limit bytes are ErrTooLarge, and an error of r is returned as
// it is; then nothing is kept. It holds none of the file in memory but its head.
func (s *Store) Take(r io.Reader, limit int64) (k Kept, err error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return Kept{}, fmt.Errorf("make blob folder: %w", err)
	}
	f, err := os.CreateTemp(s.dir, half)
	if err != nil {
		return Kept{}, fmt.Errorf("keep blob: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name()) // half a file under a name that nobody asks for
			err = said(err)
		}
	}()
	hash, head := sha256.New(), &beginning{}
	from := &reader{Reader: io.LimitReader(r, limit+1)}
	k.Size, err = io.Copy(io.MultiWriter(s.rule.Writer(f, s.dir), hash, head), from)
	switch {
	case from.err != nil:
		err = from.err // the file's own errors below are the store's
	case err == nil && k.Size > limit:
		err = ErrTooLarge
	}
	if err != nil {
		return Kept{}, errors.Join(err, f.Close())
	}
	if err = errors.Join(f.Sync(), f.Close()); err != nil {
		return Kept{}, fmt.Errorf("keep blob: %w", err)
	}
	k.Ref, k.Head = hex.EncodeToString(hash.Sum(nil)), head.data
	name := s.path(k.Ref)
	if err = os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return Kept{}, fmt.Errorf("make blob folder: %w", err)
	}
	if err = os.Rename(f.Name(), name); err != nil {
		return Kept{}, fmt.Errorf("keep blob: %w", err)
	}
	if info, err := os.Stat(name); err == nil {
		s.remember(k.Ref, info)
	}
	return k, errors.Join(syncDir(filepath.Dir(name)), syncDir(s.dir))
}

func (s *Store) remember(ref string, info fs.FileInfo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.sound) >= soundMost {
		clear(s.sound)
	}
	s.sound[ref] = stamp{info.Size(), info.ModTime()}
}

// check reads a file that was not read since it changed, and holds it against its reference. It leaves it at its beginning.
func (s *Store) check(ref string, f *os.File, info fs.FileInfo) error {
	s.mu.Lock()
	was, known := s.sound[ref]
	s.mu.Unlock()
	if known && was.size == info.Size() && was.at.Equal(info.ModTime()) {
		return nil
	}
	hash := sha256.New()
	_, err := io.Copy(hash, f)
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return fmt.Errorf("check blob %s: %w", ref, nameless(err))
	}
	if hex.EncodeToString(hash.Sum(nil)) != ref {
		return workspace.Say(fmt.Errorf("blob %s, %d bytes: %w", ref, info.Size(), ErrDamaged), "That file is damaged where it is kept. Send it again.")
	}
	s.remember(ref, info)
	return nil
}

// Tidy removes what a crash left half done. Nothing else may use the folder meanwhile.
func (s *Store) Tidy() error {
	left, err := filepath.Glob(filepath.Join(s.dir, half))
	for _, name := range left {
		err = errors.Join(err, os.Remove(name))
	}
	if err != nil {
		return fmt.Errorf("tidy blobs: %w", err)
	}
	return nil
}

// half is the pattern of files that are being written.
const half = "new-*"

// reader remembers why reading ended early.
type reader struct {
	io.Reader
	err error
}

func (r *reader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}

// beginning keeps what is written first.
type beginning struct{ data []byte }

func (b *beginning) Write(p []byte) (int, error) {
	b.data = append(b.data, p[:min(len(p), headSize-len(b.data))]...)
	return len(p), nil
}

// Open opens the file of a reference, which holds what was kept. It is workspace.ErrInvalid for what is none,
// workspace.ErrNotFound, and ErrDamaged.
func (s *Store) Open(ref string) (*File, error) {
	if !refPattern.MatchString(ref) {
		return nil, fmt.Errorf("blob %.70q: %w", ref, workspace.ErrInvalid)
	}
	f, err := os.Open(s.path(ref))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("blob %s: %w", ref, workspace.ErrNotFound)
	} else if err != nil {
		return nil, fmt.Errorf("open blob %s: %w", ref, nameless(err))
	}
	info, err := f.Stat()
	if err == nil {
		err = s.check(ref, f, info)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &File{file: f, size: info.Size()}, nil
}

// Verify reads the files of references and returns why some cannot be had as they were kept.
func (s *Store) Verify(refs []string) (bad []error) {
	for _, ref := range refs {
		f, err := s.Open(ref)
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			bad = append(bad, err)
		}
	}
	return bad
}

// Missing are those of references that have no file, or an empty one. It reads none.
func (s *Store) Missing(refs []string) (list []string) {
	for _, ref := range refs {
		info, err := os.Stat(s.path(ref))
		if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 && ref != emptyRef {
			list = append(list, ref)
		}
	}
	return list
}

// emptyRef names the file without a byte.
const emptyRef = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// Read returns the data of a reference.
func (s *Store) Read(ref string) ([]byte, error) {
	f, err := s.Open(ref)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data := make([]byte, f.size)
	if _, err := io.ReadFull(f, data); err != nil {
		return nil, fmt.Errorf("read blob %s: %w", ref, err)
	}
	return data, nil
}

func (s *Store) path(ref string) string { return filepath.Join(s.dir, ref[:2], ref) }

func syncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("keep blob: %w", err)
	}
	return errors.Join(d.Sync(), d.Close())
}
