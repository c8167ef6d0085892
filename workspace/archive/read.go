//go:build unix

package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	maxManifest = 4 << 30 // bytes
	maxPadding  = 1 << 20 // behind the last file
	maxLong     = 8 << 10 // bytes of a path that is cut
	keptOpen    = 64      // folders where a path was cut
)

// reader is one archive that is being put back.
type reader struct {
	dir   string
	root  *os.Root
	cuts  []cut // by number - 1
	open  []int // numbers of those that are open, the latest last
	found *tally
	m     Manifest
	buf   []byte
}

// cut is a path that others begin with.
type cut struct {
	up   int    // number of the one that it is below; 0: none
	path string // from there
	root *os.Root
}

// Read puts an archive back into the empty folder dir, durably, and holds all of it against its manifest. The needed file
// must be in it. After an error the folder holds what was read so far, and the caller removes it.
func Read(ctx context.Context, in io.Reader, dir, needed string) (m Manifest, err error) {
	packed, err := gzip.NewReader(in)
	if err != nil {
		return m, errors.Join(ErrDamaged, err)
	}
	r := &reader{dir: dir, found: newTally(), buf: make([]byte, 128<<10)}
	if r.root, err = os.OpenRoot(dir); err != nil {
		return m, err
	}
	defer func() {
		for _, c := range r.cuts {
			if c.root != nil {
				err = errors.Join(err, c.root.Close())
			}
		}
		err = errors.Join(err, r.root.Close())
	}()
	if err := r.entries(ctx, tar.NewReader(packed), needed); err != nil {
		return m, err
	}
	if n, err := io.Copy(io.Discard, io.LimitReader(packed, maxPadding+1)); err != nil || n > maxPadding { // only now gzip has compared its checksum
		return m, fmt.Errorf("%w: its end is not what was written: %v", ErrDamaged, err)
	}
	return r.m, syncAll(ctx, dir)
}

// entries takes all up to the manifest.
func (r *reader) entries(ctx context.Context, list *tar.Reader, needed string) error {
	has := false
	for {
		h, err := list.Next()
		if err == io.EOF {
			return fmt.Errorf("%w: it ends without a manifest", ErrDamaged)
		}
		if err != nil || ctx.Err() != nil {
			return errors.Join(ErrDamaged, err, ctx.Err())
		}
		if h.Name == manifestName {
			if !has {
				return fmt.Errorf("%w: %s is missing", ErrDamaged, needed)
			}
			return r.manifest(list)
		}
		s, err := r.entry(h, list)
		if err != nil {
			return fmt.Errorf("%.200q: %w", h.Name, err)
		}
		has = has || h.Name == needed && h.Typeflag == tar.TypeReg
		r.found.add(s)
	}
}

var errEntry = fmt.Errorf("%w: it holds what no backup holds", ErrDamaged)

// entry puts one entry back.
func (r *reader) entry(h *tar.Header, from io.Reader) (s saved, err error) {
	s = saved{Name: name(h.Name), Size: h.Size}
	number, rel, err := r.split(h.Name)
	if err != nil {
		return s, err
	}
	if number > 0 && rel == "" {
		if h.Typeflag != tar.TypeReg || number != len(r.cuts)+1 || h.Size > maxLong {
			return s, errEntry
		}
		text, err := io.ReadAll(from)
		if err != nil {
			return s, errors.Join(ErrDamaged, err)
		}
		sum := sha256.Sum256(text)
		s.SHA256 = hex.EncodeToString(sum[:])
		return s, r.newCut(string(text))
	}
	at, err := r.at(number)
	if err != nil {
		return s, err
	}
	switch h.Typeflag {
	case tar.TypeDir:
		return s, at.MkdirAll(strings.TrimSuffix(rel, "/"), 0o700)
	case tar.TypeLink:
		return s, r.link(h.Linkname, number, rel)
	case tar.TypeReg:
		s.SHA256, err = r.file(at, rel, h, from)
		return s, err
	}
	return s, errEntry
}

// split says below which cut a name is, and what it is called there.
func (r *reader) split(n string) (number int, rel string, err error) {
	rel = n
	if deep, ok := strings.CutPrefix(n, deepPrefix); ok {
		text, below, found := strings.Cut(deep, "/")
		number, err = strconv.Atoi(text)
		if err != nil || number < 1 || number > len(r.cuts)+1 || number > len(r.cuts) && found {
			return 0, "", errEntry
		}
		if rel = below; !found {
			return number, "", nil
		}
	}
	if clean := strings.TrimSuffix(rel, "/"); !filepath.IsLocal(clean) || clean != path.Clean(clean) || clean == "." {
		return 0, "", errEntry
	}
	return number, rel, nil
}

func (r *reader) newCut(long string) error {
	up, rel, err := r.split(long)
	if err != nil || rel == "" || up > len(r.cuts) {
		return errEntry
	}
	at, err := r.at(up)
	if err != nil {
		return err
	}
	rel = strings.TrimSuffix(rel, "/")
	if err := at.MkdirAll(rel, 0o700); err != nil {
		return err
	}
	r.cuts = append(r.cuts, cut{up: up, path: rel})
	return nil
}

// at is the folder that a cut stands for, open. The last few stay so.
func (r *reader) at(number int) (*os.Root, error) {
	var missing []int
	for n := number; n > 0 && r.cuts[n-1].root == nil; n = r.cuts[n-1].up {
		missing = append(missing, n)
	}
	at := r.root
	if len(missing) > 0 {
		if up := r.cuts[missing[len(missing)-1]-1].up; up > 0 {
			at = r.cuts[up-1].root
		}
	} else if number > 0 {
		return r.cuts[number-1].root, nil
	}
	for i := len(missing) - 1; i >= 0; i-- {
		c := &r.cuts[missing[i]-1]
		next, err := at.OpenRoot(c.path)
		if err != nil {
			return nil, err
		}
		c.root, at = next, next
		if r.open = append(r.open, missing[i]); len(r.open) > keptOpen {
			old := &r.cuts[r.open[0]-1]
			r.open = r.open[1:]
			if err := old.root.Close(); err != nil {
				return nil, err
			}
			old.root = nil
		}
	}
	return at, nil
}

// file writes one file, whole and durable; what is empty in it takes no room.
func (r *reader) file(at *os.Root, rel string, h *tar.Header, from io.Reader) (sha string, err error) {
	if err := at.MkdirAll(path.Dir(rel), 0o700); err != nil {
		return "", err
	}
	f, err := at.OpenFile(rel, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600|os.FileMode(h.Mode&0o100))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, syncOne(f), f.Close()) }()
	sum := sha256.New()
	from = io.TeeReader(from, sum)
	size := h.Size
	if text, ok := h.PAXRecords[recordSize]; ok {
		if size, err = strconv.ParseInt(text, 10, 64); err != nil || size < 0 {
			return "", errEntry
		}
		err = r.pieces(f, from, size)
	} else {
		err = r.copy(f, from, 0, size)
	}
	if err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), f.Truncate(size)
}

// pieces writes the pieces of a file with holes.
func (r *reader) pieces(f *os.File, from io.Reader, size int64) error {
	var head [pieceHead]byte
	for last := int64(0); ; {
		switch _, err := io.ReadFull(from, head[:]); {
		case err == io.EOF:
			return nil
		case err != nil:
			return errors.Join(ErrDamaged, err)
		}
		at, n := int64(binary.BigEndian.Uint64(head[:8])), int64(binary.BigEndian.Uint64(head[8:]))
		if at < last || n <= 0 || at > size || n > size-at {
			return errEntry
		}
		if err := r.copy(f, from, at, n); err != nil {
			return err
		}
		last = at + n
	}
}

// copy writes n bytes, and leaves a hole where there are only zeros.
func (r *reader) copy(f *os.File, from io.Reader, at, n int64) error {
	for n > 0 {
		got, err := io.ReadFull(from, r.buf[:min(n, int64(len(r.buf)))])
		if got > 0 && len(bytes.Trim(r.buf[:got], "\x00")) > 0 {
			if _, err := f.WriteAt(r.buf[:got], at); err != nil {
				return err
			}
		}
		at, n = at+int64(got), n-int64(got)
		if err != nil {
			return errors.Join(ErrDamaged, err)
		}
	}
	return nil
}

// link gives a file that was put back another name. Of the two folders only one need be open as a cut at a time.
func (r *reader) link(old string, number int, rel string) error {
	up, first, err := r.split(old)
	if err != nil || first == "" || strings.HasSuffix(first, "/") {
		return errEntry
	}
	from, err := r.above(up, first)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := r.above(number, rel)
	if err != nil {
		return err
	}
	defer to.Close()
	return unix.Linkat(int(from.Fd()), path.Base(first), int(to.Fd()), path.Base(rel), 0)
}

// above opens the folder that a name is in, which is made where it is missing.
func (r *reader) above(number int, rel string) (*os.File, error) {
	at, err := r.at(number)
	if err != nil {
		return nil, err
	}
	if err := at.MkdirAll(path.Dir(rel), 0o700); err != nil {
		return nil, err
	}
	return at.Open(path.Dir(rel))
}

// manifest holds what was found against what was written.
func (r *reader) manifest(from io.Reader) error {
	d := json.NewDecoder(io.LimitReader(from, maxManifest))
	bad := func(err error) error { return errors.Join(ErrDamaged, err) }
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return bad(err)
	}
	want := newTally()
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return bad(err)
		}
		switch key {
		case "format":
			err = d.Decode(&r.m.Format)
		case "created":
			err = d.Decode(&r.m.Created)
		case "epoch":
			err = d.Decode(&r.m.Epoch)
		case "files":
			err = each(d, func(s saved) {
				want.add(s)
				if s.SHA256 != "" {
					r.m.Files++
				}
				r.m.Bytes += s.Size
			})
		case "left_out":
			err = each(d, func(l LeftOut) {
				if r.m.LeftOut++; len(r.m.Left) < leftShown {
					r.m.Left = append(r.m.Left, l)
				}
			})
		default:
			var skipped json.RawMessage
			err = d.Decode(&skipped)
		}
		if err != nil {
			return bad(err)
		}
	}
	if r.m.Format < formatPlain || r.m.Format > format {
		return fmt.Errorf("%w: format %d, this binary reads up to %d", ErrDamaged, r.m.Format, format)
	}
	if _, err := d.Token(); err != nil {
		return bad(err)
	}
	if !r.found.same(want) {
		return fmt.Errorf("%w: it holds %d files that are not the %d that were saved", ErrDamaged, r.found.n, want.n)
	}
	return nil
}

// each reads a list one by one; null is an empty one.
func each[T any](d *json.Decoder, do func(T)) error {
	t, err := d.Token()
	if err != nil || t == nil {
		return err
	}
	if t != json.Delim('[') {
		return ErrDamaged
	}
	for d.More() {
		var v T
		if err := d.Decode(&v); err != nil {
			return err
		}
		do(v)
	}
	_, err = d.Token()
	return err
}
