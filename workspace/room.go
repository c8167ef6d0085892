package workspace

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"parley/workspace/disk"
	"parley/workspace/tree"
)

// ErrSpace is a write that was refused since the disk or the work folder is full.
var ErrSpace = disk.ErrSpace

// Under puts the work folder, and what is mounted in it later, under the rule of disk space. It must be done before r is
// shared.
func (r *Root) Under(rule *disk.Rule) { r.rule = rule }

// admit asks whether the file p may be written with size bytes. done is called when it is, or could not be.
func (r *Root) admit(p string, size int64) (done func(ok bool), err error) {
	bytes, files := r.more(p, size)
	mounted := r.control != nil // an owner's own folder has no total
	if bytes > 0 && !mounted {
		if err := r.rule.Fits(r.dir, bytes, files); err != nil {
			return nil, err
		}
	}
	written, err := r.rule.Admit(r.dir, size) // both files are there for a moment
	if err != nil {
		return nil, err
	}
	return func(ok bool) {
		written()
		switch {
		case mounted:
		case ok:
			r.rule.Added(r.dir, bytes, files)
		default: // folders may have been made
			r.rule.Changed(r.dir)
		}
	}, nil
}

// more is what a folder gets by a file, with the folders that are made for it.
func (r *Root) more(p string, size int64) (bytes, files int64) {
	bytes = disk.Cost(size)
	if fi, err := r.root.Lstat(p); err == nil {
		return bytes - disk.Cost(fi.Size()), 0
	}
	files = 1
	for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
		if _, err := r.root.Lstat(dir); err == nil {
			break
		}
		bytes, files = bytes+disk.EntryCost, files+1
	}
	return bytes, files
}

// Filled says what fills the work folder, without what is mounted in it.
func (r *Root) Filled() (disk.Report, error) { return r.rule.Report(r.dir) }

// FilledBelow says what fills one folder in the work folder. Its items are named relative to the work folder.
func (r *Root) FilledBelow(written Path) (disk.Report, error) {
	p := written.text
	at, clean, _, err := r.find(written)
	switch {
	case err != nil:
		return disk.Report{}, err
	case at != r:
		return disk.Report{}, refuse(p, ErrDenied, "it is an owner's folder, which is not counted")
	}
	d, err := openFolder(r.root, clean)
	if err != nil {
		return disk.Report{}, openError(p, err)
	}
	defer d.Close()
	rep := r.rule.ReportOf(d)
	for _, list := range [][]disk.Item{rep.Top, rep.Files} {
		for i := range list {
			list[i].Path = path.Join(clean, list[i].Path)
		}
	}
	return rep, nil
}

// Limits are what the work folder may hold.
func (r *Root) Limits() disk.Used { return r.rule.Limits() }

// Space is what the file system of the work folder has.
func (r *Root) Space() (disk.Space, bool) { return r.rule.Space(r.dir) }

// Remove removes the file p, or with folders a folder with all that is in it; "." with folders is everything in the work
// folder. It needs no space. It follows no link at the end of p: a link itself is removed. removed counts files and folders.
func (r *Root) Remove(ctx context.Context, written Path, folders bool) (removed int64, err error) {
	p := written.text
	at, clean, write, err := r.find(written)
	switch {
	case err != nil:
		return 0, err
	case !write:
		return 0, refuse(p, ErrDenied, "this folder may only be read")
	case clean == "." && at == r && folders:
		return r.clear(ctx)
	case clean == ".":
		return 0, refuse(p, ErrDenied, "the whole folder cannot be removed; name what is in it")
	}
	err = at.controlled(p, clean, false, func(in *Root, name string) error {
		fi, err := in.root.Lstat(name)
		switch {
		case err != nil:
			return openError(p, err)
		case fi.IsDir() && !folders:
			return refuse(p, ErrDenied, "it is a folder; that it goes with all that is in it must be said")
		case !fi.IsDir() && strings.HasSuffix(p, "/"):
			return refuse(p, ErrDenied, "it is not a folder")
		}
		above, err := openFolder(in.root, path.Dir(name))
		if err != nil {
			return openError(p, err)
		}
		defer above.Close()
		removed, err = at.remove(ctx, above, path.Base(name), clean)
		return removeError(p, err)
	})
	if at.control == nil {
		at.rule.Changed(at.dir)
	}
	return removed, err
}

// errControl is in the way of removing a folder.
var errControl = errors.New("it holds a control path")

// remove removes an entry of an open folder; clean is its path. Of an owner's folder nothing is removed where a control
// path is in it.
func (r *Root) remove(ctx context.Context, above *os.File, name, clean string) (int64, error) {
	if r.control == nil {
		return tree.Remove(ctx, above, name, nil)
	}
	held := func(e *tree.Entry, below string) bool {
		c := r.control
		if c.rule.Name(e.Name) || c.guard != nil && c.guard.Refuses(path.Join(clean, below)) {
			return true
		}
		return strings.EqualFold(fold(e.Name), "HEAD") && Repository(func(n string) bool { return n == "HEAD" || e.Beside(n) })
	}
	look := func(e *tree.Entry) error {
		if held(e, e.Path()) {
			return errControl
		}
		return nil
	}
	if d, err := tree.OpenDir(int(above.Fd()), name, 0); err == nil {
		err = tree.Walker{Visit: look, Enter: look, Stay: true}.Walk(ctx, d)
		if err = errors.Join(err, d.Close()); err != nil {
			return 0, err
		}
	}
	// One that comes to be there meanwhile stays.
	return tree.Remove(ctx, above, name, func(e *tree.Entry) bool { return r.control.rule.Name(e.Name) })
}

// openFolder opens a folder in a root, and never waits for the other end of a FIFO.
func openFolder(root *os.Root, name string) (*os.File, error) {
	return root.OpenFile(name, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
}

// clear removes all that is in the work folder, and leaves what is mounted in it.
func (r *Root) clear(ctx context.Context) (removed int64, err error) {
	defer r.rule.Changed(r.dir)
	all, err := openFolder(r.root, ".")
	if err != nil {
		return 0, openError(".", err)
	}
	defer all.Close()
	names, err := all.Readdirnames(-1)
	if err != nil {
		return 0, openError(".", err)
	}
	var errs []error
	for _, name := range names {
		n, err := tree.Remove(ctx, all, name, nil)
		removed += n
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return removed, removeError(".", errors.Join(errs...))
}

// removeError turns what the system said into a short sentence without a host path.
func removeError(p string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errControl):
		return refuse(p, ErrDenied, "programs of this machine (git, shells, editors) take orders from something in it, so it stays")
	case errors.Is(err, fs.ErrPermission):
		return refuse(p, ErrDenied, "it may not be removed")
	case errors.Is(err, fs.ErrNotExist):
		return refuse(p, ErrNotFound, "there is no such file or folder")
	}
	return refuse(p, ErrDenied, "it cannot be removed as a whole; something may be writing to it")
}

// Filling names what fills a folder the most, for a sentence; empty: nothing to speak of.
func Filling(rep disk.Report, n int) string {
	var list []string
	for _, it := range rep.Top[:min(n, len(rep.Top))] {
		if it.Bytes < 1<<20 && it.Files < 1000 {
			continue
		}
		name := Line(it.Path, 60)
		if it.Folder {
			name += "/"
		}
		list = append(list, name+" ("+disk.Size(it.Bytes)+")")
	}
	return strings.Join(list, ", ")
}
