package workspace

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"parley/workspace/disk"
)

// MaxWrite is how many bytes a file may have that a tool writes.
const MaxWrite = 8 << 20

// WriteFile puts data into the file p, which is made, with the folders above it, when it is missing; created says so.
// What was there is replaced as a whole or not at all, and the file is durable when WriteFile returns. Only a plain file
// with one link is replaced: never a link, a folder or a device.
func (r *Root) WriteFile(written Path, data []byte) (created bool, err error) {
	p := written.text
	at, clean, write, err := r.find(written)
	switch {
	case err != nil:
		return false, err
	case !write:
		return false, refuse(p, ErrDenied, "this folder may only be read")
	case clean == "." || strings.HasSuffix(p, "/") || strings.HasSuffix(p, "/."):
		return false, refuse(p, ErrInvalid, "it names a folder, not a file")
	case len(data) > MaxWrite:
		return false, refuse(p, ErrTooLarge, "%d bytes are more than the %d that a file may have", len(data), MaxWrite)
	}
	done, err := at.admit(clean, int64(len(data)))
	if err != nil {
		return false, writeError(p, err)
	}
	err = at.controlled(p, clean, true, func(at *Root, name string) (err error) {
		created, err = at.writePlain(p, name, data)
		return err
	})
	done(err == nil)
	return created, err
}

// writePlain is WriteFile in the folder that holds the file.
func (r *Root) writePlain(p, name string, data []byte) (created bool, err error) {
	mode := fs.FileMode(0o600)
	fi, err := r.root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		created = true
	case err != nil:
		return false, writeError(p, err)
	case fi.Mode()&fs.ModeSymlink != 0:
		return false, refuse(p, ErrDenied, "it is a link; write to what it points at")
	default:
		if err := checkPlain(p, fi); err != nil {
			return false, err
		}
		mode = fi.Mode().Perm()
	}
	if err := r.replace(name, data, mode); err != nil {
		return false, writeError(p, err)
	}
	return created, nil
}

// makeDirs makes a folder with those above it, and gives what it makes to who owns the work folder.
func (r *Root) makeDirs(dir string) error {
	for i := 0; i <= len(dir); i++ {
		if i < len(dir) && dir[i] != '/' {
			continue
		}
		err := r.root.Mkdir(dir[:i], 0o700)
		if errors.Is(err, fs.ErrExist) {
			continue // the next step says if it is not a folder
		}
		if err == nil {
			err = r.own(dir[:i])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// replace writes a file under another name first, in the same folder, then gives it its own.
func (r *Root) replace(p string, data []byte, mode fs.FileMode) (err error) {
	part := path.Join(path.Dir(p), partName())
	f, err := r.root.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil && mode != 0o600 {
		err = f.Chmod(mode)
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = r.own(part)
	}
	if err == nil {
		err = r.root.Rename(part, p)
	}
	if err != nil {
		return errors.Join(err, r.root.Remove(part))
	}
	return r.syncFolder(path.Dir(p))
}

// own gives a new name to the owner of the folder itself: where commands run as another user than we do, both must be
// able to read and change what the other has made.
func (r *Root) own(name string) error {
	if r.owner != nil {
		return own(r.owner, r.root, name)
	}
	return own(r.root, r.root, name)
}

// own gives a name in the folder at to the owner of the folder top.
func own(top, at *os.Root, name string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	fi, err := top.Stat(".")
	if err != nil {
		return err
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok || st.Uid == 0 {
		return nil
	}
	return at.Lchown(name, int(st.Uid), int(st.Gid))
}

// partName is a name that nobody else takes: two sessions may share a folder.
func partName() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return ".parley-" + hex.EncodeToString(b[:]) + ".part"
}

// writeError turns what the system said into a short sentence without a host path.
func writeError(p string, err error) error {
	var full *disk.Error
	switch {
	case errors.As(err, &full):
		return refuse(p, fmt.Errorf("%w: %w", ErrDenied, err), "%s", full.Error())
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return refuse(p, fmt.Errorf("%w: %w: %w", ErrDenied, ErrSpace, syscall.ENOSPC), "there is no space left for it")
	case errors.Is(err, fs.ErrPermission):
		return refuse(p, ErrDenied, "it may not be written")
	case errors.Is(err, syscall.EROFS):
		return refuse(p, ErrDenied, "this folder may only be read")
	case errors.Is(err, syscall.EISDIR), errors.Is(err, fs.ErrExist):
		return refuse(p, ErrDenied, "it is a folder, not a file")
	}
	return openError(p, err)
}
