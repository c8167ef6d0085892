package workspace

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// Folder is a directory of an owner that is put into work folders.
type Folder struct {
	Dir   string // absolute, on the host
	As    string // its name in the work folder
	Write bool   // else it is only read
	// Guards finds who looks after the directory, once it is known where links lead; nil: its control paths are told by name
	// and shape alone, and no command may write there.
	Guards func(dir string) (Guard, error)
	Guard  Guard // as found by Mount
}

// mount is a Folder that is open.
type mount struct {
	Folder
	at *Root
}

// Mount puts a folder into r under its name, in front of whatever has that name there. It must be done before r is
// shared.
func (r *Root) Mount(f Folder) error {
	if f.As == "" || strings.ContainsAny(f.As, `/\`) || f.As == "." || f.As == ".." {
		return fmt.Errorf("mount %q: not a plain name: %w", f.As, ErrInvalid)
	}
	if slices.ContainsFunc(r.mounts, func(m mount) bool { return m.As == f.As }) {
		return fmt.Errorf("mount %q: twice: %w", f.As, ErrConflict)
	}
	real, err := filepath.EvalSymlinks(f.Dir) // the owner may have a link there; nobody else can put one
	if err != nil {
		return fmt.Errorf("mount %q: %w", f.As, err)
	}
	at, err := OpenRoot(real)
	if err != nil {
		return fmt.Errorf("mount %q: %w", f.As, err)
	}
	if f.Write && f.Guards != nil && f.Guard == nil {
		if f.Guard, err = f.Guards(real); err != nil {
			at.Close()
			return fmt.Errorf("mount %q: %w", f.As, err)
		}
	}
	at.rule = r.rule
	f.Dir, at.control = real, &control{guard: f.Guard, rule: DefaultControl()}
	if f.Guard != nil {
		at.control.rule = f.Guard.Rule()
	}
	f.Write = f.Write && !InsideControl(at.control.rule, real)
	r.mounts = append(r.mounts, mount{f, at})
	return nil
}

// Host is where the folder is on the host, with what is mounted in it: for a sandbox, which shows the same places to
// commands, and for nothing that opens files. The names are absolute and without links.
func (r *Root) Host() (dir string, folders []Folder, err error) {
	for _, m := range r.mounts {
		folders = append(folders, m.Folder)
	}
	if dir, err = filepath.Abs(r.dir); err == nil {
		dir, err = filepath.EvalSymlinks(dir) // above it only: what is opened is a real folder
	}
	return dir, folders, err
}

// find says which open folder a path is in, what it is called there, and whether it may be changed.
func (r *Root) find(p Path) (at *Root, clean string, write bool, err error) {
	clean, err = r.Resolve(p)
	if err != nil {
		return nil, "", false, err
	}
	first, rest, _ := strings.Cut(clean, "/")
	for _, m := range r.mounts {
		if m.As == first {
			return m.at, cmp.Or(rest, "."), m.Write, nil
		}
	}
	r.heal(clean, 0)
	return r, clean, true, nil
}

// withMounts is the list of a folder's entries with what is mounted in it.
func (r *Root) withMounts(entries []Info) []Info {
	for _, m := range r.mounts {
		entries = slices.DeleteFunc(entries, func(i Info) bool { return i.Name == m.As })
		entries = append(entries, Info{Name: m.As, Kind: KindDir})
	}
	slices.SortFunc(entries, func(a, b Info) int { return strings.Compare(a.Name, b.Name) })
	return entries
}

// PointMounts makes a link for each mounted folder in the work folder, under its name, to where a sandbox shows it: below
// the folder base inside. On the host such a link leads nowhere, and file tools do not follow it. What else has the name is
// left as it is.
func (r *Root) PointMounts(base string) error {
	for _, m := range r.mounts {
		err := r.root.Symlink(base+"/"+m.As, m.As)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return writeError(m.As, err)
		}
	}
	return nil
}
