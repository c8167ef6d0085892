package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
)

// control is the rule of control paths for one mounted folder.
type control struct {
	guard Guard // nil: names and shapes alone are judged
	rule  *ControlRule
}

// maxLinks is how many symbolic links a path may lead through.
const maxLinks = 40

// controlled runs a change of clean in the folder r. The change gets the folder that holds the name, open and reached
// through no link, and the name there. In an owner's folder a control path is refused, by its name, by where links lead, and
// by what the folder would become.
func (r *Root) controlled(p, clean string, makeAbove bool, change func(at *Root, name string) error) error {
	if r.control == nil {
		if dir := path.Dir(clean); makeAbove && dir != "." {
			if err := r.makeDirs(dir); err != nil {
				return writeError(p, err)
			}
		}
		return change(r, clean)
	}
	work := func() error {
		s := stair{control: r.control, p: p, make: makeAbove, steps: []step{{root: r.root}}}
		defer s.close()
		name, err := s.descend(clean)
		if err != nil {
			return err
		}
		return change(&Root{root: s.last().root, dir: r.dir, owner: r.root}, name)
	}
	if g := r.control.guard; g != nil {
		return g.Change(work)
	}
	return work()
}

// stair is a way down into a folder, each step of it open.
type stair struct {
	*control
	p     string // as written, for errors
	make  bool
	steps []step
	links int
}

type step struct {
	root *os.Root
	path string // from the first; empty: the first
}

func (s *stair) last() step { return s.steps[len(s.steps)-1] }

func (s *stair) close() {
	for _, st := range s.steps[1:] {
		st.root.Close()
	}
}

// descend opens the folders of a path but the last name, which it gives.
func (s *stair) descend(clean string) (name string, err error) {
	if err := s.enter(s.last()); err != nil {
		return "", err
	}
	todo := strings.Split(clean, "/")
	for len(todo) > 1 {
		e := todo[0]
		todo = todo[1:]
		if todo, err = s.down(e, todo); err != nil {
			return "", err
		}
	}
	name = todo[0]
	if name == "" || name == "." || name == ".." {
		return "", refuse(s.p, ErrInvalid, "it names a folder, not a file")
	}
	return name, s.judge(name)
}

// down goes one element deeper; a link is put in front of what is left.
func (s *stair) down(e string, todo []string) ([]string, error) {
	switch e {
	case "", ".":
		return todo, nil
	case "..": // of a link
		if len(s.steps) == 1 {
			return nil, refuse(s.p, ErrDenied, "it leads out of the work folder")
		}
		s.last().root.Close()
		s.steps = s.steps[:len(s.steps)-1]
		return todo, nil
	}
	if err := s.judge(e); err != nil {
		return nil, err
	}
	at := s.last()
	fi, err := at.root.Lstat(e)
	if errors.Is(err, fs.ErrNotExist) && s.make {
		if err = at.root.Mkdir(e, 0o700); err == nil {
			err = own(s.steps[0].root, at.root, e)
		}
		if err == nil || errors.Is(err, fs.ErrExist) {
			fi, err = at.root.Lstat(e)
		}
	}
	switch {
	case err != nil:
		return nil, writeError(s.p, err)
	case fi.Mode()&fs.ModeSymlink != 0:
		return s.follow(at.root, e, todo)
	case !fi.IsDir():
		return nil, writeError(s.p, syscall.ENOTDIR)
	}
	next, err := at.root.OpenRoot(e)
	if err != nil {
		return nil, writeError(s.p, err)
	}
	s.steps = append(s.steps, step{next, path.Join(at.path, e)})
	if now, err := next.Stat("."); err != nil || !os.SameFile(fi, now) {
		return nil, refuse(s.p, ErrDenied, "it was exchanged meanwhile; try again")
	}
	return todo, s.enter(s.last())
}

func (s *stair) follow(at *os.Root, e string, todo []string) ([]string, error) {
	to, err := at.Readlink(e)
	s.links++
	switch {
	case err != nil:
		return nil, writeError(s.p, err)
	case s.links > maxLinks:
		return nil, writeError(s.p, syscall.ELOOP)
	case strings.HasPrefix(to, "/"):
		return nil, refuse(s.p, ErrDenied, "it leads out of the work folder")
	}
	return append(strings.Split(to, "/"), todo...), nil
}

// enter refuses a folder that is a repository by what is in it, or was found to be a control path.
func (s *stair) enter(st step) error {
	if Repository(has(st.root)) || s.guard != nil && s.guard.Refuses(orDot(st.path)) {
		return s.refuse(st.path)
	}
	return nil
}

// judge refuses a name in the last folder that is a control path, or would make a repository of the folder.
func (s *stair) judge(name string) error {
	at := s.last()
	p := path.Join(at.path, name)
	if s.rule.Name(name) || s.guard != nil && s.guard.Refuses(p) {
		return s.refuse(p)
	}
	for _, part := range RepositoryParts() {
		if !strings.EqualFold(fold(name), part) {
			continue
		}
		there := has(at.root)
		if Repository(func(n string) bool { return n == part || there(n) }) {
			return s.refuse(p)
		}
	}
	return nil
}

func (s *stair) refuse(p string) error {
	if s.guard != nil {
		s.guard.Refused(orDot(p))
	}
	return refuse(s.p, ErrDenied, "programs of this machine (git, shells, editors) take orders from it, so it may only be read")
}

func orDot(p string) string {
	if p == "" {
		return "."
	}
	return p
}

func has(r *os.Root) func(string) bool {
	return func(name string) bool {
		_, err := r.Lstat(name)
		return err == nil || !errors.Is(err, fs.ErrNotExist)
	}
}
