package workspace

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"parley/workspace/disk"
	"parley/workspace/lazy"
	"parley/workspace/tree"
)

// Limits of a path that a model may write.
const (
	MaxPath    = 4096 // characters
	maxElement = 255  // bytes of one name; what Linux file systems take
	shownPath  = 80   // characters of a path in an error
)

// ErrTooLarge says that a file is over the reader's limit.
var ErrTooLarge = errors.New("too large")

// Root is a work folder that tools may read: the only type that opens a path which a model wrote. It is an
// os.Root, so that no name leads out of it; on top it takes regular files with exactly one link only, never
// blocks on a FIFO, and refuses paths that were made to deceive. Safe for concurrent use; Close it once.
type Root struct {
	root   *os.Root
	dir    string // on the host
	mounts []mount

	work    bool       // a work folder: what a command has shut in it is opened again
	control *control   // of a mounted folder; nil: a work folder, in which nothing of the host is
	owner   *os.Root   // whose owner what is made belongs to; nil: that of root
	rule    *disk.Rule // of disk space; nil: none
}

// PathError is a refused path. Its text is one short sentence that may be shown: the path in it is cut and
// made visible, and a chat may be told it. It wraps ErrInvalid (the path itself is bad), ErrDenied (what it names may not be read),
// ErrNotFound or ErrTooLarge.
type PathError struct {
	Path string // as shown
	Why  string
	Err  error
}

func (e *PathError) Error() string { return fmt.Sprintf("%q: %s", e.Path, e.Why) }

func (e *PathError) Unwrap() error { return e.Err }

func refuse(p string, err error, format string, args ...any) error {
	e := &PathError{Path: Line(p, shownPath), Why: fmt.Sprintf(format, args...), Err: err}
	return Say(e, "%s.", e.Error())
}

// OpenRoot opens dir, which must be a real directory and no symbolic link.
func OpenRoot(dir string) (*Root, error) {
	dir = filepath.Clean(dir)
	parent, err := os.OpenRoot(filepath.Dir(dir))
	if err != nil {
		return nil, fmt.Errorf("open the folder above %s: %w", dir, err)
	}
	defer parent.Close()
	fi, err := parent.Lstat(filepath.Base(dir))
	if err != nil {
		return nil, fmt.Errorf("look at %s: %w", dir, err)
	}
	if !fi.IsDir() {
		return nil, fmt.Errorf("open %s: not a real directory: %w", dir, ErrDenied)
	}
	r, err := parent.OpenRoot(filepath.Base(dir))
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", dir, err)
	}
	return &Root{root: r, dir: dir}, nil
}

// OpenWork is OpenRoot for a work folder, made (0700) when it is missing.
func OpenWork(dir string) (*Root, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make work folder: %w", err)
	}
	if err := tree.HealPath(dir, tree.Write); err != nil {
		return nil, fmt.Errorf("heal work folder: %w", err)
	}
	r, err := OpenRoot(dir)
	if err == nil {
		r.work = true
	}
	return r, err
}

// Close releases the folder and what is mounted in it; later calls fail.
func (r *Root) Close() error {
	err := r.root.Close()
	for _, m := range r.mounts {
		err = errors.Join(err, m.at.Close())
	}
	return err
}

// encoded matches percent-encodings of ".", "/", "\", NUL and of "%" itself: nobody names a file so in earnest.
var encoded = lazy.Regexp(`(?i)%(2e|2f|5c|00|25)`)

// Resolve checks p by its text alone and returns its clean form relative to the folder ("." is the folder).
// It refuses what is absolute, climbs, is encoded, or deceives the eye. Whether p leads out through a
// symbolic link is known only when it is opened.
func (r *Root) Resolve(written Path) (string, error) {
	p := written.text
	bad := func(why string) (string, error) { return "", refuse(p, ErrInvalid, "%s", why) }
	switch {
	case p == "":
		return bad("the path is empty")
	case len(p) > MaxPath && utf8.RuneCountInString(p) > MaxPath:
		return bad(fmt.Sprintf("the path is longer than %d characters", MaxPath))
	case !utf8.ValidString(p):
		return bad("the path is not valid UTF-8")
	case strings.ContainsAny(p, "\n\t") || !isVisible(p):
		return bad("the path holds a control character")
	case strings.HasPrefix(p, "/"):
		return bad("only paths inside the work folder are allowed, written without a leading /")
	case strings.Contains(p, `\`):
		return bad("a path is written with / and holds no backslash")
	case encoded().MatchString(p):
		return bad("the path is percent-encoded; write it plainly")
	}
	for e := range strings.SplitSeq(p, "/") {
		if e == ".." {
			return bad(`a path may not hold ".."`)
		}
		if len(e) > maxElement {
			return bad("a name in the path is too long")
		}
	}
	return path.Clean(p), nil
}

// Info is what is known of a file without reading it.
type Info struct {
	Name    string // last element, as on disk
	Kind    FileKind
	Size    int64 // bytes; of a regular file
	ModTime time.Time
}

// FileKind is what a name stands for.
type FileKind string

const (
	KindFile  FileKind = "file"
	KindDir   FileKind = "folder"
	KindLink  FileKind = "link"
	KindOther FileKind = "special" // FIFO, socket, device: never opened
)

func infoOf(fi fs.FileInfo) Info {
	i := Info{Name: fi.Name(), ModTime: fi.ModTime(), Kind: KindOther}
	switch m := fi.Mode(); {
	case m.IsRegular():
		i.Kind, i.Size = KindFile, fi.Size()
	case m.IsDir():
		i.Kind = KindDir
	case m&fs.ModeSymlink != 0:
		i.Kind = KindLink
	}
	return i
}

// Stat looks at p, following links that stay inside.
func (r *Root) Stat(p Path) (Info, error) {
	at, clean, _, err := r.find(p)
	if err != nil {
		return Info{}, err
	}
	fi, err := at.root.Stat(clean)
	if err != nil {
		return Info{}, openError(p.text, err)
	}
	return infoOf(fi), nil
}

// ReadFile reads a regular file of at most limit bytes that has exactly one link.
func (r *Root) ReadFile(written Path, limit int64) ([]byte, Info, error) {
	p := written.text
	f, info, err := r.Open(written)
	if err != nil {
		return nil, Info{}, err
	}
	defer f.Close()
	if info.Size > limit {
		return nil, info, refuse(p, ErrTooLarge, "the file has %d bytes, more than the %d that may be read", info.Size, limit)
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, info, openError(p, err)
	}
	if int64(len(data)) > limit { // it grew
		return nil, info, refuse(p, ErrTooLarge, "the file has more than the %d bytes that may be read", limit)
	}
	return data, info, nil
}

// Open opens p for reading, which the caller closes, after it was seen to be a plain file with one link, and looks again
// at what was opened: a name can be exchanged in between.
func (r *Root) Open(written Path) (*os.File, Info, error) {
	at, clean, _, err := r.find(written)
	if err != nil {
		return nil, Info{}, err
	}
	return at.openFile(written.text, clean)
}

func (r *Root) openFile(p, clean string) (*os.File, Info, error) {
	fi, err := r.root.Stat(clean) // opening a device can act on it, so it must not even be tried
	if err != nil {
		return nil, Info{}, openError(p, err)
	}
	if err := checkPlain(p, fi); err != nil {
		return nil, Info{}, err
	}
	f, err := r.root.OpenFile(clean, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, Info{}, openError(p, err)
	}
	if fi, err = f.Stat(); err == nil {
		err = checkPlain(p, fi)
	} else {
		err = openError(p, err)
	}
	if err != nil {
		f.Close()
		return nil, Info{}, err
	}
	return f, infoOf(fi), nil
}

// checkPlain refuses what is not a regular file with one link: a second name may be outside the folder.
func checkPlain(p string, fi fs.FileInfo) error {
	switch {
	case fi.IsDir():
		return refuse(p, ErrDenied, "it is a folder, not a file")
	case !fi.Mode().IsRegular():
		return refuse(p, ErrDenied, "it is not a regular file")
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok || uint64(st.Nlink) != 1 { //nolint:unconvert // the width of Nlink differs between systems
		return refuse(p, ErrDenied, "it has more than one hard link")
	}
	return nil
}

// List reads at most limit entries of the folder p, sorted by name; more says that there are others. Links are
// listed as links and not followed.
func (r *Root) List(written Path, limit int) (entries []Info, more bool, err error) {
	at, clean, _, err := r.find(written)
	if err != nil {
		return nil, false, err
	}
	entries, more, err = at.list(written.text, clean, limit)
	if err == nil && at == r && clean == "." {
		entries = r.withMounts(entries)
	}
	return entries, more, err
}

func (r *Root) list(p, clean string, limit int) (entries []Info, more bool, err error) {
	// Not os.Root.OpenRoot, which would wait for the other end of a FIFO.
	dir, err := r.root.OpenFile(clean, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ENOTDIR) {
		if fi, statErr := r.root.Lstat(clean); statErr == nil && !fi.IsDir() && fi.Mode()&fs.ModeSymlink == 0 {
			return nil, false, refuse(p, ErrDenied, "it is a file, not a folder")
		}
	}
	if err != nil {
		return nil, false, openError(p, err)
	}
	defer dir.Close()
	found, err := dir.Readdir(limit + 1) // in a Root it looks through the open folder, not through its name
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, openError(p, err)
	}
	if more = len(found) > limit; more {
		found = found[:limit]
	}
	for _, fi := range found {
		entries = append(entries, infoOf(fi))
	}
	slices.SortFunc(entries, func(a, b Info) int { return strings.Compare(a.Name, b.Name) })
	return entries, more, nil
}

// openError turns what the system said into a short sentence without a host path.
func openError(p string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return refuse(p, ErrNotFound, "there is no such file or folder")
	case errors.Is(err, fs.ErrPermission):
		return refuse(p, ErrDenied, "it may not be read")
	case errors.Is(err, syscall.ELOOP):
		return refuse(p, ErrDenied, "too many symbolic links")
	case errors.Is(err, syscall.ENAMETOOLONG):
		return refuse(p, ErrInvalid, "the path is too long")
	case errors.Is(err, syscall.ENOTDIR):
		return refuse(p, ErrDenied, "a part of the path is not a folder")
	case strings.Contains(err.Error(), "escapes"): // os keeps this error to itself
		return refuse(p, ErrDenied, "it leads out of the work folder")
	}
	return refuse(p, ErrDenied, "it cannot be opened")
}
