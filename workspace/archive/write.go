//go:build unix

package archive

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"parley/workspace"
	"parley/workspace/clip"
	"parley/workspace/tree"
)

// Options of Write.
type Options struct {
	Skip    func(name string) bool                            // leaves out a name directly in the folder
	Instead func(name string) (open func() (*os.File, error)) // for a file directly in the folder: what is kept in its place; nil: itself
	Scratch string                                            // a folder for what is in the making
	Grown   func(files, bytes int64) error                    // is told now and then, and may end it
	Epoch   int64
	Created time.Time
}

// writer is one archive in the making.
type writer struct {
	opt   Options
	ctx   context.Context //nolint:containedctx // of this one call
	tar   *tar.Writer
	rows  *list // of files
	left  *list
	m     Manifest
	stack []folder
	deep  int // paths that were cut so far
	links map[inode]*firstName
	buf   []byte
	told  int64
}

// folder is one on the way to what is being written.
type folder struct {
	path  string // below the last cut, with a slash at its end
	names int    // in it
	cut   int    // the number of that cut; 0: there is none, -1: it has no number yet
	long  string // where a path is to be cut: from the cut before on; empty: not here
	held  bool   // something in it is in the archive
}

type inode struct{ dev, ino uint64 }

// firstName is the name under which a file of several names is kept.
type firstName struct {
	name string
	more int64 // names that are still to come
}

// Write packs the folder dir.
func Write(ctx context.Context, out io.Writer, dir string, o Options) (m Manifest, err error) {
	top, err := os.Open(dir)
	if err != nil {
		return m, err
	}
	defer top.Close()
	w := &writer{opt: o, ctx: ctx, links: map[inode]*firstName{}, buf: make([]byte, 128<<10), stack: []folder{{}},
		m: Manifest{Format: format, Created: o.Created.UnixMilli(), Epoch: o.Epoch}}
	if w.rows, err = newList(o.Scratch); err != nil {
		return m, err
	}
	defer w.rows.close()
	if w.left, err = newList(o.Scratch); err != nil {
		return m, err
	}
	defer w.left.close()
	packed, err := gzip.NewWriterLevel(out, gzip.BestSpeed)
	if err != nil {
		return m, err
	}
	w.tar = tar.NewWriter(packed)
	want := uint32(tree.Read)
	if os.Geteuid() == 0 { // who may read all
		want = 0
	}
	err = tree.Walker{Enter: w.enter, Visit: w.visit, Leave: w.leave, Failed: w.unreadable, Heal: want}.Walk(ctx, top)
	if err == nil {
		err = w.manifest()
	}
	return w.m, errors.Join(err, w.tar.Close(), packed.Close())
}

// enter notes the way down. A long path is cut when something below it is written.
func (w *writer) enter(e *tree.Entry) error {
	if e.Depth == 1 && w.opt.Skip != nil && w.opt.Skip(e.Name) {
		return tree.ErrSkipFolder
	}
	w.stack = w.stack[:e.Depth]
	up := w.stack[e.Depth-1]
	f := folder{path: up.path + e.Name + "/", names: up.names + 1, cut: up.cut}
	if len(f.path) > longPath || f.names > manyNames {
		f.path, f.names, f.long, f.cut = "", 0, f.path, -1
	}
	w.stack = append(w.stack, f)
	return nil
}

// name is what an entry of the folder at hand is called in the archive. It cuts long paths on the way, from the top.
func (w *writer) name(depth int, base string) (string, error) {
	f := &w.stack[depth-1]
	if f.cut < 0 {
		if err := w.cut(depth - 1); err != nil {
			return "", err
		}
	}
	if f.cut > 0 {
		return deepPrefix + strconv.Itoa(f.cut) + "/" + f.path + base, nil
	}
	return f.path + base, nil
}

// cut gives a number to each path on the way to stack[i] that is to be cut and has none.
func (w *writer) cut(i int) error {
	from := i
	for from > 0 && w.stack[from].cut < 0 {
		from--
	}
	for k := from + 1; k <= i; k++ {
		f, up := &w.stack[k], &w.stack[k-1]
		if f.long == "" { // below one that has just got its number
			f.cut = up.cut
			continue
		}
		long := f.long
		if up.cut > 0 {
			long = deepPrefix + strconv.Itoa(up.cut) + "/" + long
		}
		w.deep++
		if _, err := w.entry(header(deepPrefix+strconv.Itoa(w.deep), int64(len(long)), 0o600), strings.NewReader(long)); err != nil {
			return err
		}
		f.cut, f.long = w.deep, ""
	}
	return nil
}

func (w *writer) leave(e *tree.Entry) error {
	if len(w.stack) <= e.Depth {
		return nil
	}
	held := w.stack[e.Depth].held
	w.stack = w.stack[:e.Depth]
	if held { // its files make it
		w.stack[e.Depth-1].held = true
		return nil
	}
	n, err := w.name(e.Depth, e.Name)
	if err != nil {
		return err
	}
	h := header(n+"/", 0, 0o700)
	h.Typeflag = tar.TypeDir
	w.stack[e.Depth-1].held = true
	_, err = w.entry(h, nil)
	return err
}

// visit keeps a file.
func (w *writer) visit(e *tree.Entry) error {
	w.stack = w.stack[:e.Depth]
	if e.Depth == 1 && w.opt.Skip != nil && w.opt.Skip(e.Name) {
		return nil
	}
	if why := special[e.Kind()]; why != "" {
		return w.leftOut(e, why)
	}
	var f *os.File
	var err error
	copied := false
	if e.Depth == 1 && w.opt.Instead != nil {
		if open := w.opt.Instead(e.Name); open != nil {
			copied = true
			if f, err = open(); err != nil {
				return err // what is put in a file's place is not somebody's to spoil
			}
		}
	}
	if !copied {
		if done, err := w.link(e); done || err != nil {
			return err
		}
		if f, err = tree.OpenFile(e.At, e.Name, os.Geteuid() != 0); errors.Is(err, unix.ENOENT) {
			return nil // gone meanwhile
		} else if err != nil {
			return w.leftOut(e, reason(err))
		}
	}
	defer f.Close()
	return w.file(e, f)
}

// special is why something that is no regular file is left out.
var special = map[uint32]string{unix.S_IFLNK: "a symbolic link", unix.S_IFIFO: "a FIFO", unix.S_IFSOCK: "a socket", unix.S_IFCHR: "a device", unix.S_IFBLK: "a device"}

// reason is an error in a few words, without a path.
func reason(err error) string {
	if n, ok := errors.AsType[unix.Errno](err); ok {
		return n.Error()
	}
	return err.Error()
}

// link keeps a further name of a file that is in the archive as a link to it.
func (w *writer) link(e *tree.Entry) (bool, error) {
	if e.Stat.Nlink < 2 {
		return false, nil
	}
	id := inode{uint64(e.Stat.Dev), e.Stat.Ino} //nolint:unconvert // its type differs between systems
	first := w.links[id]
	if first == nil {
		if len(w.links) >= linksMost {
			return true, w.leftOut(e, "too many files of several names")
		}
		return false, nil
	}
	n, err := w.name(e.Depth, e.Name)
	if err != nil {
		return true, err
	}
	h := header(n, 0, 0o600)
	h.Typeflag, h.Linkname = tar.TypeLink, first.name
	if first.more--; first.more == 0 {
		delete(w.links, id)
	}
	w.stack[e.Depth-1].held = true
	_, err = w.entry(h, nil)
	return true, err
}

// file writes what an open file holds. What grows meanwhile is cut, what shrinks is filled with zeros and listed.
func (w *writer) file(e *tree.Entry, f *os.File) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return w.leftOut(e, reason(err))
	}
	pieces, err := piecesOf(f, &st)
	if err != nil {
		return w.leftOut(e, reason(err))
	}
	n, err := w.name(e.Depth, e.Name)
	if err != nil {
		return err
	}
	mode := int64(0o600) | int64(st.Mode)&0o100
	from := &pieceReader{ctx: w.ctx, file: f, pieces: pieces}
	h := header(n, st.Size, mode)
	if pieces != nil {
		from.framed = true
		h.PAXRecords = map[string]string{recordSize: strconv.FormatInt(st.Size, 10)}
		if h.Size = 0; len(pieces) > 0 {
			for _, p := range pieces {
				h.Size += p.size + pieceHead
			}
		}
	} else if st.Size > 0 {
		from.pieces = []piece{{0, st.Size}}
	}
	if st.Nlink > 1 {
		w.links[inode{uint64(st.Dev), st.Ino}] = &firstName{n, int64(st.Nlink) - 1} //nolint:unconvert // its type differs between systems
	}
	w.stack[e.Depth-1].held = true
	if _, err := w.entry(h, from); err != nil {
		return err
	}
	if from.short != nil {
		return w.leftOut(e, "in part: "+reason(from.short))
	}
	return nil
}

// entry writes one entry and notes it.
func (w *writer) entry(h *tar.Header, from io.Reader) (saved, error) {
	if err := w.tar.WriteHeader(h); err != nil {
		return saved{}, err
	}
	s := saved{Name: name(h.Name), Size: h.Size}
	if h.Typeflag == tar.TypeReg {
		sum := sha256.New()
		if from != nil {
			if _, err := io.CopyBuffer(struct{ io.Writer }{io.MultiWriter(w.tar, sum)}, struct{ io.Reader }{from}, w.buf); err != nil {
				return s, fmt.Errorf("%q: %w", clip.Runes(h.Name, 200), err)
			}
		}
		s.SHA256 = hex.EncodeToString(sum.Sum(nil))
		w.m.Files++
	}
	w.m.Bytes += h.Size
	if w.told += h.Size + 4096; w.told > 16<<20 && w.opt.Grown != nil {
		w.told = 0
		if err := w.opt.Grown(w.m.Files, w.m.Bytes); err != nil {
			return s, err
		}
	}
	return s, w.rows.add(s)
}

// unreadable lists a folder that cannot be read, or not to its end.
func (w *writer) unreadable(e *tree.Entry, err error) error {
	if e.Depth == 0 {
		return err // the folder itself
	}
	return w.leftOut(e, reason(err))
}

func (w *writer) leftOut(e *tree.Entry, why string) error {
	f := w.stack[min(e.Depth, len(w.stack))-1]
	n := f.path + e.Name
	if f.cut != 0 { // the whole path would cost as much as it is deep
		n = fmt.Sprintf("(%d folders down) …/%s", e.Depth-1, n)
	}
	l := LeftOut{workspace.Line(n, 500), why}
	if w.m.LeftOut++; len(w.m.Left) < leftShown {
		w.m.Left = append(w.m.Left, l)
	}
	return w.left.add(l)
}

// manifest is the last file.
func (w *writer) manifest() error {
	head := fmt.Sprintf("{\"format\":%d,\"created\":%d,\"epoch\":%d,\"files\":[\n", w.m.Format, w.m.Created, w.m.Epoch)
	const middle, end = "\n],\"left_out\":[\n", "\n]}\n"
	rows, rsize, err := w.rows.reader()
	if err != nil {
		return err
	}
	left, lsize, err := w.left.reader()
	if err != nil {
		return err
	}
	if err := w.tar.WriteHeader(header(manifestName, int64(len(head)+len(middle)+len(end))+rsize+lsize, 0o600)); err != nil {
		return err
	}
	_, err = io.Copy(w.tar, io.MultiReader(strings.NewReader(head), rows, strings.NewReader(middle), left, strings.NewReader(end)))
	return err
}

func header(name string, size, mode int64) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: mode, ModTime: time.Unix(0, 0), Format: tar.FormatPAX}
}

// list is a list of JSON values on the disk: there may be millions.
type list struct {
	file *os.File
	out  *bufio.Writer
	size int64
}

func newList(dir string) (*list, error) {
	f, err := os.CreateTemp(dir, ".parley-list-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil { // its name is not needed
		return nil, errors.Join(err, f.Close())
	}
	return &list{file: f, out: bufio.NewWriter(f)}, nil
}

func (l *list) add(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if l.size > 0 {
		text = append([]byte(",\n"), text...)
	}
	n, err := l.out.Write(text)
	l.size += int64(n)
	return err
}

func (l *list) reader() (io.Reader, int64, error) {
	if err := l.out.Flush(); err != nil {
		return nil, 0, err
	}
	return io.NewSectionReader(l.file, 0, l.size), l.size, nil
}

func (l *list) close() { _ = l.file.Close() } // it has no name

// Partial is the name of what is in the making beside a file.
func Partial(file string) (string, error) { return os.MkdirTemp(filepath.Dir(file), ".parley-backup-") }
