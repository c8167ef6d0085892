package workspace

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"parley/workspace/tree"
)

// Inbox is the folder inside a work folder into which files that people send are put.
const Inbox = "inbox"

// maxSame is how many files of one name are kept apart.
const maxSame = 1000

// Keep puts a copy of src into the folder dir of r under name, or under name-2, name-3 … where that is another file, and
// returns its path in r. A file that is there already with the same bytes is left as it is, so that doing it again after
// a crash changes nothing. The file is durable and whole when Keep returns. name and dir come from us, never from a
// sender. Calls for one folder must not overlap.
func (r *Root) Keep(dir, name string, src io.ReadSeeker) (string, error) {
	r.heal(dir, tree.Write)
	if _, err := makeDir(r.root, dir); err != nil {
		return "", fmt.Errorf("keep a file in %s: %w", dir, err)
	}
	// A link could be put in its place by what runs in this folder; it would still not lead out of it.
	for i := 1; i <= maxSame; i++ {
		p := path.Join(dir, numbered(name, i))
		if err := r.unhalf(p); err != nil {
			return "", err
		}
		same, err := r.same(p, src)
		if err == nil && same {
			return p, nil
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = r.putNew(p, src)
			if errors.Is(err, fs.ErrExist) {
				continue // somebody was quicker
			}
			return p, err
		}
	}
	return "", fmt.Errorf("keep %s: too many files of this name: %w", name, ErrConflict)
}

func numbered(name string, i int) string {
	if i == 1 {
		return name
	}
	ext := path.Ext(name)
	return fmt.Sprintf("%s-%d%s", strings.TrimSuffix(name, ext), i, ext)
}

// same says whether p is a plain file with the bytes of src. The error is fs.ErrNotExist where there is nothing.
func (r *Root) same(p string, src io.ReadSeeker) (bool, error) {
	if _, err := r.root.Lstat(p); err != nil {
		return false, err
	}
	f, info, err := r.openFile(p, p)
	if err != nil {
		return false, err
	}
	defer f.Close()
	size, err := src.Seek(0, io.SeekEnd)
	if err != nil || size != info.Size {
		return false, err
	}
	want, err := digest(src)
	if err != nil {
		return false, err
	}
	have, err := digest(f)
	return have == want, err
}

func digest(s io.ReadSeeker) (sum [sha256.Size]byte, err error) {
	if _, err = s.Seek(0, io.SeekStart); err != nil {
		return sum, err
	}
	h := sha256.New()
	_, err = io.Copy(h, s)
	return [sha256.Size]byte(h.Sum(nil)), err
}

// half is the name under which p is written.
func half(p string) string { return path.Join(path.Dir(p), "."+path.Base(p)+".part") }

// unhalf removes what a crash left of p: half a file, or a second name of the whole one, with which nobody may read it.
func (r *Root) unhalf(p string) error {
	if err := r.root.Remove(half(p)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("keep a file: %w", err)
	}
	return nil
}

// putNew is put where there is room.
func (r *Root) putNew(p string, src io.ReadSeeker) error {
	size, err := src.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	done, err := r.admit(p, size)
	if err != nil {
		return fmt.Errorf("keep a file: %w", err)
	}
	err = r.put(p, src)
	done(err == nil)
	return err
}

// put writes a new file under another name first: a crash leaves the whole file or none.
func (r *Root) put(p string, src io.ReadSeeker) (err error) {
	if _, err := src.Seek(0, io.SeekStart); err != nil {
		return err
	}
	f, err := r.root.OpenFile(half(p), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("keep a file: %w", err)
	}
	_, err = io.Copy(f, src)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = r.root.Link(half(p), p) // unlike a rename it never replaces what is there
	}
	if gone := r.root.Remove(half(p)); err == nil {
		err = gone
	}
	if err != nil {
		return fmt.Errorf("keep a file: %w", err)
	}
	return r.syncFolder(path.Dir(p))
}

func (r *Root) syncFolder(dir string) error {
	d, err := r.root.Open(dir)
	if err != nil {
		return fmt.Errorf("keep a file: %w", err)
	}
	return errors.Join(d.Sync(), d.Close())
}
