package folder

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"parley/workspace"
)

// state is what is kept of a folder on the disk. An inode's number tells the same thing after a restart; that of its device
// may change with one.
type state struct {
	Dir   string            `json:"dir"`
	Inode uint64            `json:"inode"` // of the folder itself
	Busy  bool              `json:"busy"`  // commands may have been under way when it was written last
	Known map[string]uint64 `json:"known"` // control paths, with their inodes
	Held  []record          `json:"held"`
}

func (g *Guard) stateFile() string {
	sum := sha256.Sum256([]byte(g.dir))
	return filepath.Join(g.w.opt.Dir, hex.EncodeToString(sum[:12])+".json")
}

// note writes what is known. Busy is sticky: it is written before the first command, and taken back by a stop.
func (g *Guard) note(busy bool) error {
	if g.w.opt.Dir == "" || busy && g.noted {
		return nil
	}
	s := state{Dir: g.dir, Inode: g.id.ino, Busy: busy, Known: map[string]uint64{}, Held: g.held}
	for p, id := range g.known {
		s.Known[p] = id.ino
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(g.w.opt.Dir, 0o700); err != nil {
		return err
	}
	if err := replace(g.stateFile(), text); err != nil {
		return err
	}
	g.noted = busy
	return nil
}

// renote writes again what has changed; a failure is only told, since the next start is the stricter for it.
func (g *Guard) renote() {
	if g.noted || len(g.held) > 0 {
		busy := g.noted
		g.noted = false
		if err := g.note(busy); err != nil {
			g.noted = busy
			g.w.opt.Log.Warn("state of a folder is not kept", "folder", g.dir, "err", err)
		}
	}
}

// replace writes a file whole and durably.
func replace(name string, text []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(name), ".part-*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	d, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// recall reads what was kept; nil: nothing is known of this folder.
func (g *Guard) recall() *state {
	if g.w.opt.Dir == "" {
		return nil
	}
	text, err := os.ReadFile(g.stateFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var s state
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		g.w.opt.Log.Warn("state of a folder cannot be read", "folder", g.dir, "err", err)
		return nil
	}
	if s.Dir != g.dir || s.Inode != g.id.ino {
		return nil // another folder
	}
	return &s
}

// Folder is what is told of a folder.
type Folder struct {
	Dir     string
	Control int    // control paths that are there
	Closed  string // why commands get it read-only; empty: they may write
	Held    []workspace.Held
}

// Look says how a folder is. dir is as configured.
func (w *Warden) Look(dir string) (Folder, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return Folder{}, err
	}
	g, err := w.guard(real)
	if err != nil {
		return Folder{}, err
	}
	<-g.ready
	g.mu.Lock()
	defer g.mu.Unlock()
	f := Folder{Dir: real, Control: len(g.known), Closed: g.why}
	for _, r := range outermost(g.held) {
		if from, now, ok := g.relative(r); ok {
			f.Held = append(f.Held, workspace.Held{Path: from, Now: now})
		}
	}
	return f, nil
}

// Accept gives what was renamed its own name again; from then on it is the owner's. p is its own path or the one it has
// now, relative to the folder.
func (w *Warden) Accept(dir, p string) (workspace.Held, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return workspace.Held{}, err
	}
	g, err := w.guard(real)
	if err != nil {
		return workspace.Held{}, err
	}
	<-g.ready
	held, err := g.accept(path.Clean(p))
	if err == nil {
		w.opt.Notice(Notice{Kind: "accepted", Dir: g.dir, Path: held.Path, Now: held.Now})
	}
	return held, err
}

func (g *Guard) accept(p string) (workspace.Held, error) {
	g.w.mu.Lock()
	var over []*Guard
	for _, o := range g.w.guards {
		if overlap(o.dir, g.dir) {
			over = append(over, o)
		}
	}
	g.w.mu.Unlock()
	slices.SortFunc(over, func(a, b *Guard) int { return strings.Compare(a.dir, b.dir) })
	for _, o := range over { // in one order, so that two of these do not wait for each other
		o.mu.Lock()
		defer o.mu.Unlock()
	}
	var all []record
	for _, o := range over {
		o.settle()
		all = append(all, o.held...)
	}
	at := filepath.Join(g.dir, filepath.FromSlash(p))
	i := -1
	for j, r := range outermost(all) {
		if r.From == at || r.Now == at {
			i = slices.Index(all, outermost(all)[j])
		}
	}
	if i < 0 || !within(at, g.dir) {
		return workspace.Held{}, fmt.Errorf("%s: %w", p, workspace.ErrNotFound)
	}
	r := all[i]
	if err := g.putBack(r); err != nil {
		return workspace.Held{}, err
	}
	done := []record{r}
	for j := len(all) - 1; j >= 0; j-- { // the inner ones, as they were before
		in := all[j]
		if !in.of(r) {
			continue
		}
		now := in
		if within(in.Now, r.Now) {
			now = record{From: r.From + strings.TrimPrefix(in.From, r.Now), Now: r.From + strings.TrimPrefix(in.Now, r.Now)}
		}
		if err := g.putBack(now); err != nil {
			g.w.opt.Log.Warn("a part of an accepted path keeps its other name", "path", now.Now, "err", err)
		}
		done = append(done, in)
	}
	for _, o := range over {
		o.held = slices.DeleteFunc(o.held, func(x record) bool { return slices.Contains(done, x) })
		o.adopt(r.From)
		o.renote()
	}
	from, now, _ := g.relative(r)
	return workspace.Held{Path: from, Now: now}, nil
}

// putBack gives a path its name again, if nothing else has it.
func (g *Guard) putBack(r record) error {
	dir, err := openBelow(g.root, up(strings.TrimPrefix(r.Now[len(g.dir):], "/")))
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(r.Now), workspace.ErrNotFound)
	}
	defer dir.Close()
	err = renameIn(dir, filepath.Base(r.Now), filepath.Base(r.From))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: %w", filepath.Base(r.Now), workspace.ErrNotFound)
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%s is there already: %w", filepath.Base(r.From), workspace.ErrConflict)
	}
	return err
}
