package folder

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"parley/workspace"
)

// ident is what a name stands for, whatever it is called.
type ident struct{ dev, ino uint64 }

func identIn(fi fs.FileInfo) (ident, bool) {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return ident{}, false
	}
	return ident{uint64(st.Dev), st.Ino}, true //nolint:unconvert // the width of Dev differs between systems
}

func identOf(f *os.File) (ident, error) {
	fi, err := f.Stat()
	if err != nil {
		return ident{}, err
	}
	id, ok := identIn(fi)
	if !ok {
		return id, errors.New("this system does not number its files")
	}
	return id, nil
}

// found is a control path.
type found struct {
	path    string
	id      ident
	head    string // it is a repository by what is in it, and this is its HEAD; empty: its name says so
	link    bool
	dir     bool
	pointer bool // what it means depends on where it is
	twice   bool // a file that has a second name
	ours    bool // it belongs to the gateway's user
}

// job is a folder to be looked at, with those below it or without.
type job struct {
	path string
	deep bool
}

// look finds the control paths in a folder. It follows no link, and enters no control path.
func (g *Guard) look(j job) (list []found, err error) {
	todo, entries := []string{j.path}, 0
	for len(todo) > 0 {
		p := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		names, id, err := g.read(p)
		switch {
		case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP):
			continue // gone meanwhile, or another thing now: its folder tells
		case err != nil:
			return list, fmt.Errorf("look into %s: %w", p, err)
		}
		if entries += len(names); entries > maxEntries && g.active == 0 {
			return list, errTooMany
		}
		if head := repository(names); head != "" {
			_, pointer := names["commondir"]
			list = append(list, found{path: p, id: id, head: head, dir: true, pointer: pointer})
			if p != "." {
				continue
			}
		}
		for name, mode := range names {
			child := path.Join(p, name)
			if g.w.rule.Name(name) || g.extras[child] {
				if f, ok := g.stat(child); ok {
					list = append(list, f)
				}
			} else if mode.IsDir() && j.deep {
				todo = append(todo, child)
			}
		}
	}
	return list, nil
}

var errTooMany = fmt.Errorf("it has more than %d files", maxEntries)

// read gives the names in a folder. From before it reads them, what is made there is told.
func (g *Guard) read(p string) (names map[string]fs.FileMode, id ident, err error) {
	dir, err := openBelow(g.root, p)
	if errors.Is(err, fs.ErrPermission) {
		if err = g.unlock(p); err == nil {
			dir, err = openBelow(g.root, p)
		}
	}
	if err != nil {
		return nil, id, err
	}
	defer dir.Close()
	if id, err = identOf(dir); err != nil {
		return nil, id, err
	}
	if g.stay != nil && g.stay.add(dir, p) != nil { // too many watches, say
		g.stay.close()
		g.stay = nil
	}
	names = map[string]fs.FileMode{}
	for len(names) <= maxEntries || g.active > 0 {
		list, err := dir.ReadDir(1024)
		for _, e := range list {
			names[e.Name()] = e.Type()
		}
		if errors.Is(err, io.EOF) {
			return names, id, nil
		}
		if err != nil {
			return nil, id, err
		}
	}
	return names, id, nil
}

// unlock makes a folder readable that a command has closed. What its owner has closed stays so: where we cannot look, a
// command cannot write.
func (g *Guard) unlock(p string) error {
	if g.active == 0 {
		if f, ok := g.stat(p); ok && f.ours {
			g.close(p, "the folder "+p+" in it cannot be looked into")
		}
		return fs.ErrNotExist
	}
	for i := 0; i <= len(p); i++ {
		if i == len(p) || p[i] == '/' {
			if err := makeReadable(g.root, p[:i]); err != nil {
				return fs.ErrNotExist // another user's
			}
		}
	}
	return nil
}

// repository is the name of HEAD in a folder that git takes for a repository by these names; empty: it does not.
func repository(names map[string]fs.FileMode) string {
	as := map[string]string{}
	for name := range names {
		if len(name) > 9 {
			continue
		}
		for _, part := range workspace.RepositoryParts() {
			if strings.EqualFold(name, part) {
				as[part] = name
			}
		}
	}
	if !workspace.Repository(func(part string) bool { return as[part] != "" }) {
		return ""
	}
	return as["HEAD"]
}

// stat looks at one path, following no link.
func (g *Guard) stat(p string) (found, bool) {
	dir, err := openBelow(g.root, up(p))
	if err != nil {
		return found{}, false
	}
	defer dir.Close()
	fi, err := lstatIn(dir, path.Base(p))
	if err != nil {
		return found{}, false
	}
	f := found{path: p, dir: fi.mode&syscall.S_IFMT == syscall.S_IFDIR, link: fi.mode&syscall.S_IFMT == syscall.S_IFLNK, id: fi.id}
	f.ours = int(fi.uid) == os.Geteuid()
	f.twice = !f.dir && fi.links > 1
	return f, true
}

// settle takes up what has happened since it was last looked. The caller holds the lock.
func (g *Guard) settle() {
	if g.ended {
		return
	}
	var jobs []job
	for range 256 { // a command may make more while we look; the next look finds that
		if g.stay != nil {
			more, lost := g.stay.drain(g)
			jobs, g.stale = append(jobs, more...), g.stale || lost
		}
		if g.stale || g.stay == nil && g.active > 0 && jobs == nil && g.why == "" {
			jobs = []job{{".", true}}
		}
		if len(jobs) == 0 {
			return
		}
		list := jobs
		jobs = nil
		for _, j := range list {
			jobs = append(jobs, g.judge(j)...)
		}
		if g.stay == nil && len(jobs) == 0 {
			return
		}
	}
}

// judge looks at a folder, takes what is the owner's as known, and renames what is a command's. It gives what is to be
// looked at then.
func (g *Guard) judge(j job) (jobs []job) {
	list, err := g.look(j)
	whole := j == job{".", true}
	if err != nil {
		g.close("", err.Error())
	} else if whole {
		delete(g.whys, "")
	}
	g.stale = g.stale && !whole
	for _, f := range list {
		id, ok := g.known[f.path]
		switch {
		case ok && id == f.id:
		case g.active == 0:
			g.adoptOne(f)
		case g.moved(f):
		default:
			jobs = append(jobs, g.hold(f)...)
		}
	}
	if whole && err == nil && g.active == 0 {
		g.dropMissing(list)
	}
	g.weigh()
	return jobs
}

// moved takes notice that a command has moved a folder with a control path in it, which it cannot change.
func (g *Guard) moved(f found) bool {
	if f.pointer || f.twice {
		return false
	}
	for p, id := range g.known {
		if id != f.id || p == f.path {
			continue
		}
		if now, ok := g.stat(p); ok && now.id == id {
			return false // it is there too
		}
		delete(g.known, p)
		g.known[f.path] = id
		g.changed = true
		return true
	}
	return false
}

// hold gives what a command has made a harmless name. Of a repository that none needs, it is HEAD.
func (g *Guard) hold(f found) (jobs []job) {
	at, name := up(f.path), path.Base(f.path)
	if f.head != "" {
		at, name = f.path, f.head
	}
	now := heldName()
	err := g.rename(at, name, now)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the command was quicker; what it has made of it is told
	}
	if err != nil {
		g.close(f.path, "a control path that a command made cannot be renamed: "+path.Join(at, name))
		g.w.opt.Log.Error("control path of a command cannot be renamed", "folder", g.dir, "path", f.path, "err", err)
		return nil
	}
	r := record{From: filepath.Join(g.dir, at, name), Now: filepath.Join(g.dir, at, now)}
	g.held = append(g.held, r)
	if len(g.held) > maxHeld {
		g.held = slices.Delete(g.held, 0, len(g.held)-maxHeld)
	}
	g.seen++
	g.changed = true
	g.unsaid = append(g.unsaid, Notice{Kind: "held", Dir: g.dir, Path: path.Join(at, name), Now: path.Join(at, now)})
	switch {
	case f.head != "":
		jobs = append(jobs, job{at, true}) // there may be more in it
	case f.dir:
		jobs = append(jobs, job{path.Join(at, now), true}) // by what is in it, it may be one still
	}
	return jobs
}

// maxHeld is how many renamed paths can be accepted still.
const maxHeld = 1000

func heldName() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return workspace.HeldPrefix + hex.EncodeToString(b[:])
}

func (g *Guard) rename(at, name, now string) error {
	dir, err := openBelow(g.root, at)
	if err != nil {
		return err
	}
	defer dir.Close()
	err = renameIn(dir, name, now)
	if errors.Is(err, fs.ErrPermission) && g.unlock(at) == nil {
		err = renameIn(dir, name, now)
	}
	return err
}

// validate looks whether each known path is what it was.
func (g *Guard) validate() {
	for p, id := range g.known {
		var now ident
		if p == "." {
			now = g.id
		} else if f, ok := g.stat(p); ok {
			now = f.id
		}
		if now != id {
			g.stale = true
		}
	}
	if g.stale {
		g.settle()
	}
}

// dropMissing forgets what is no longer there.
func (g *Guard) dropMissing(list []found) {
	for p, id := range g.known {
		if !slices.ContainsFunc(list, func(f found) bool { return f.path == p && f.id == id }) {
			if f, ok := g.stat(p); !ok || f.id != id { // what an extra path names is in no list
				delete(g.known, p)
				delete(g.whys, p)
				g.changed = true
			}
		}
	}
}

// adopt takes all that is at a path, given on the host, for the owner's.
func (g *Guard) adopt(host string) {
	if g.ended {
		return
	}
	if !within(host, g.dir) { // the folder is inside what was accepted
		g.stale = true
		host = g.dir
	}
	p := up(strings.TrimPrefix(host[len(g.dir):], "/"))
	was := g.active
	g.active = 0
	g.judge(job{p, false})
	g.judge(job{p, true})
	g.active = was
	g.settle()
}

// adoptOne takes a control path for the owner's.
func (g *Guard) adoptOne(f found) {
	g.known[f.path] = f.id
	g.changed = true
	delete(g.whys, f.path)
	switch {
	case f.path == ".":
		g.close(".", "it is a repository itself")
	case f.link:
		g.close(f.path, "the control path "+f.path+" is a link, which cannot be protected")
	case f.twice:
		g.close(f.path, "the control path "+f.path+" has a second name, which cannot be protected")
	}
	for _, to := range g.leads(f) {
		g.extras[to] = true
		e, ok := g.stat(to)
		switch {
		case !ok || g.inside(to):
		case g.before != nil && g.before.Known[to] != e.id.ino:
			g.theirs = append(g.theirs, e)
		default:
			g.known[to] = e.id
		}
	}
}

// covered says whether a path is a known one or below one.
func (g *Guard) covered(p string) bool {
	_, ok := g.known[p]
	return ok || g.inside(p)
}

// inside says whether a path is below a known one.
func (g *Guard) inside(p string) bool {
	for p != "." {
		p = up(p)
		if _, ok := g.known[p]; ok {
			return true
		}
	}
	return false
}

// close notes why commands may only read the folder; what names the reason.
func (g *Guard) close(what, why string) {
	if g.whys == nil {
		g.whys = map[string]string{}
	}
	g.whys[what] = why
}

// weigh says whether commands may write.
func (g *Guard) weigh() {
	g.why = ""
	if len(g.known) > maxPins {
		g.why = fmt.Sprintf("it has more than %d control paths", maxPins)
	}
	for _, p := range slices.Sorted(maps.Keys(g.whys)) {
		if g.why == "" {
			g.why = g.whys[p]
		}
	}
	if g.changed {
		g.changed = false
		g.renote()
	}
}
