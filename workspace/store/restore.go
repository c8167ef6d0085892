package store

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

var (
	// ErrNotEmpty says that the data directory holds something: perhaps a gateway that runs.
	ErrNotEmpty = errors.New("the data directory is not empty")
	// ErrBackup says that a backup is not what its maker wrote.
	ErrBackup = errors.New("the backup is damaged or not one of ours")
)

// maxManifest bounds what is read into memory.
const maxManifest = 256 << 20

// maxPadding is what an archive may have behind its last file.
const maxPadding = 1 << 20

// Restore puts a backup into place as dataDir, which must not exist or be empty. Everything is verified first, beside
// the target: the manifest with every checksum, the database with its own check and every row's. On any error
// nothing is in place. What was answered after the backup may be answered once more.
func Restore(ctx context.Context, file, dataDir string) (m Manifest, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("restore %s: %w", file, err)
		}
	}()
	dataDir, err = filepath.Abs(dataDir)
	if err != nil {
		return m, err
	}
	if list, err := os.ReadDir(dataDir); len(list) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return m, fmt.Errorf("%s: %w", dataDir, errors.Join(err, ErrNotEmpty))
	}
	if err := os.MkdirAll(filepath.Dir(dataDir), 0o700); err != nil {
		return m, err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dataDir), ".parley-restore-")
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	if m, err = unpack(ctx, file, tmp); err != nil {
		return m, err
	}
	if err := VerifyFile(ctx, filepath.Join(tmp, databaseName)); err != nil {
		return m, fmt.Errorf("verify %s: %w", databaseName, err)
	}
	if err := syncTree(tmp); err != nil {
		return m, err
	}
	if err := os.Remove(dataDir); err != nil && !errors.Is(err, fs.ErrNotExist) { // fails when something has come into it
		return m, errors.Join(err, ErrNotEmpty)
	}
	if err := os.Rename(tmp, dataDir); err != nil {
		return m, err
	}
	return m, syncDir(filepath.Dir(dataDir))
}

// unpack writes the backup's files below dir and holds them against the manifest.
func unpack(ctx context.Context, file, dir string) (m Manifest, err error) {
	in, err := os.Open(file)
	if err != nil {
		return m, err
	}
	defer in.Close()
	packed, err := gzip.NewReader(in)
	if err != nil {
		return m, errors.Join(ErrBackup, err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return m, err
	}
	defer root.Close()
	found := map[string]SavedFile{}
	for list := tar.NewReader(packed); ; {
		h, err := list.Next()
		if err == io.EOF {
			return m, fmt.Errorf("%w: it ends without a manifest", ErrBackup)
		}
		if err != nil || ctx.Err() != nil {
			return m, errors.Join(ErrBackup, err, ctx.Err())
		}
		if h.Name == manifestName {
			if m, err = readManifest(list); err != nil {
				return m, err
			}
			if err := readOut(packed); err != nil {
				return m, err
			}
			return m, compare(m, found)
		}
		if h.Typeflag != tar.TypeReg || !filepath.IsLocal(h.Name) || h.Name != path.Clean(h.Name) {
			return m, fmt.Errorf("%w: it holds %q", ErrBackup, h.Name)
		}
		if found[h.Name], err = unpackFile(root, h.Name, list); err != nil {
			return m, fmt.Errorf("%s: %w", h.Name, err)
		}
	}
}

// readOut reads what stands behind the manifest, padding alone: only then gzip has compared its checksum of it all.
func readOut(packed io.Reader) error {
	n, err := io.Copy(io.Discard, io.LimitReader(packed, maxPadding+1))
	if err != nil || n > maxPadding {
		return fmt.Errorf("%w: its end is not what was written: %v", ErrBackup, err)
	}
	return nil
}

func unpackFile(root *os.Root, name string, from io.Reader) (SavedFile, error) {
	if err := root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return SavedFile{}, err
	}
	f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return SavedFile{}, err
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, sum), from)
	if err != nil {
		err = errors.Join(ErrBackup, err)
	}
	return SavedFile{Name: name, Size: n, SHA256: hex.EncodeToString(sum.Sum(nil))}, errors.Join(err, f.Sync(), f.Close())
}

func readManifest(from io.Reader) (m Manifest, err error) {
	text, err := io.ReadAll(io.LimitReader(from, maxManifest))
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil {
		return m, errors.Join(ErrBackup, err)
	}
	if m.Format != backupFormat {
		return m, fmt.Errorf("%w: format %d, this binary reads %d", ErrBackup, m.Format, backupFormat)
	}
	return m, nil
}

func compare(m Manifest, found map[string]SavedFile) error {
	if _, ok := found[databaseName]; !ok {
		return fmt.Errorf("%w: %s is missing", ErrBackup, databaseName)
	}
	for _, want := range m.Files {
		if got, ok := found[want.Name]; !ok || got != want {
			return fmt.Errorf("%w: %s is not what was saved", ErrBackup, want.Name)
		}
		delete(found, want.Name)
	}
	for name := range found {
		return fmt.Errorf("%w: %s is in no manifest", ErrBackup, name)
	}
	return nil
}

// syncTree makes the names of all files durable; their contents are.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return syncDir(name)
	})
}

func syncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
