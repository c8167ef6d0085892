// Package folder looks after the folders of owners that agents may write: it finds the control paths in them, from which
// programs of the host take orders (workspace.ControlRule), keeps commands from writing those, and gives a harmless name to
// what a command makes of that kind. It judges no tool and runs no command.
//
// What is in a folder while no command runs in it is its owner's. What appears while one runs is the command's, whoever made
// it, since nothing tells the two apart. What is known is kept beside the database, so that a start behind a killed gateway
// still tells them apart.
//
// A Warden owns one goroutine for each folder, and one more while a folder is looked through for the first time.
package folder

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"parley/workspace"
)

// Bounds of a folder that commands may write.
const (
	maxPins    = 200     // control paths; with more, commands get the folder read-only
	maxEntries = 400_000 // files and folders; a larger one cannot be looked after in time
)

// Options of a Warden.
type Options struct {
	Dir  string   // where what is known of folders is kept; empty: nowhere
	More []string // names of control paths beside the built-in ones
	Log  *slog.Logger
	// Notice is told of what the audit log should know. It must not call the Warden. nil: nobody is.
	Notice func(Notice)
}

// Notice is one act on a control path.
type Notice struct {
	Kind string // refused, held, accepted
	Dir  string // the folder, on the host
	Path string // in the folder
	Now  string // its harmless name, of held
}

// Warden looks after all folders. Safe for concurrent use.
type Warden struct {
	opt  Options
	rule *workspace.ControlRule

	mu      sync.Mutex
	guards  map[string]*Guard // by real directory
	entries map[*entry]bool   // commands that run
	closed  bool
	work    sync.WaitGroup
}

// New makes a Warden that looks after nothing yet.
func New(o Options) *Warden {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Notice == nil {
		o.Notice = func(Notice) {}
	}
	return &Warden{opt: o, rule: workspace.NewControlRule(o.More), guards: map[string]*Guard{}, entries: map[*entry]bool{}}
}

// Guard gives the guard of a directory, absolute and without links, and begins to look through it when it is new.
func (w *Warden) Guard(dir string) (workspace.Guard, error) { return w.guard(dir) }

func (w *Warden) guard(dir string) (*Guard, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, errors.New("the gateway is stopping")
	}
	if g := w.guards[dir]; g != nil && g.same() {
		return g, nil
	} else if g != nil {
		g.end() // another folder stands there now
	}
	root, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	g := &Guard{w: w, dir: dir, root: root, ready: make(chan struct{}), done: make(chan struct{}), whys: map[string]string{}, known: map[string]ident{}, extras: map[string]bool{}}
	if g.id, err = identOf(root); err != nil {
		root.Close()
		return nil, err
	}
	for e := range w.entries {
		if overlap(e.g.dir, dir) {
			g.active++
			e.over = append(e.over, g)
		}
	}
	w.guards[dir] = g
	w.work.Go(g.load)
	return g, nil
}

// Load begins to look after directories as a configuration names them. One that is not there is looked at when it is used.
func (w *Warden) Load(dirs []string) {
	for _, d := range dirs {
		real, err := filepath.EvalSymlinks(d)
		if err == nil {
			_, err = w.guard(real)
		}
		if err != nil {
			w.opt.Log.Warn("folder not watched yet", "folder", d, "err", err)
		}
	}
}

// Close ends all goroutines, and notes that nothing was under way.
func (w *Warden) Close() {
	w.mu.Lock()
	w.closed = true
	for _, g := range w.guards {
		g.end()
	}
	w.mu.Unlock()
	w.work.Wait()
}

// overlap says whether one directory is the other or inside it.
func overlap(a, b string) bool { return within(a, b) || within(b, a) }

func within(p, dir string) bool {
	return p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}

// Guard looks after one folder.
type Guard struct {
	w     *Warden
	dir   string
	root  *os.File
	id    ident
	ready chan struct{} // closed when it was looked through once

	change sync.Mutex // held by a tool that writes

	mu      sync.Mutex
	ended   bool
	known   map[string]ident // control paths that are the owner's
	extras  map[string]bool  // paths that are control paths since the owner's git or a link leads there
	before  *state           // while it is looked through for the first time behind a killed gateway
	theirs  []found          // what is found then and is a command's
	whys    map[string]string
	why     string // why commands get it read-only; empty: they may write
	active  int    // commands that may write here
	stay    *watch // nil: what happens is found by looking through all
	held    []record
	seen    int      // records ever made
	unsaid  []Notice // what the audit log is not told of yet
	noted   bool     // on the disk stands that commands may be under way
	stale   bool     // something may have been missed
	changed bool     // the disk does not know yet
	done    chan struct{}
}

// record is a control path that was given another name; both are absolute.
type record struct {
	From string `json:"from"`
	Now  string `json:"now"`
}

var _ workspace.Guard = (*Guard)(nil)

// Rule says which names are control paths.
func (g *Guard) Rule() *workspace.ControlRule { return g.w.rule }

// Change runs one change by a tool while no other is made in a folder that overlaps.
func (g *Guard) Change(f func() error) error {
	<-g.ready
	g.w.mu.Lock() // two folders may overlap: the outermost has the lock
	outer := g
	for _, o := range g.w.guards {
		if within(outer.dir, o.dir) {
			outer = o
		}
	}
	g.w.mu.Unlock()
	outer.change.Lock()
	defer outer.change.Unlock()
	return f()
}

// Refuses says whether p, or a folder above it, was found to be a control path.
func (g *Guard) Refuses(p string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	is := func(k string) bool { // some file systems know no case
		return k == "." || len(p) >= len(k) && strings.EqualFold(p[:len(k)], k) && (len(p) == len(k) || p[len(k)] == '/')
	}
	for k := range g.known {
		if is(k) {
			return true
		}
	}
	for k := range g.extras {
		if is(k) {
			return true
		}
	}
	return false
}

// up is the folder above a relative path; "." is the folder itself.
func up(p string) string {
	if i := strings.LastIndexByte(p, '/'); i > 0 {
		return p[:i]
	}
	return "."
}

// Refused is told of a write that was refused.
func (g *Guard) Refused(p string) { g.w.opt.Notice(Notice{Kind: "refused", Dir: g.dir, Path: p}) }

// entry is one command's time in a folder.
type entry struct {
	g      *Guard
	over   []*Guard // with the folder itself, all that overlap; guarded by the Warden's lock
	pins   []workspace.Pin
	why    string
	before map[*Guard]int // records that were ever made
}

// Enter looks whether all is as it was, and notes on the disk that commands are under way.
func (g *Guard) Enter(ctx context.Context) (workspace.GuardEntry, error) {
	select {
	case <-g.ready:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	e := &entry{g: g, before: map[*Guard]int{}}
	g.w.mu.Lock()
	if g.w.closed {
		g.w.mu.Unlock()
		return nil, errors.New("the gateway is stopping")
	}
	g.w.entries[e] = true
	for _, o := range g.w.guards {
		if overlap(o.dir, g.dir) {
			e.over = append(e.over, o)
		}
	}
	over := slices.Clone(e.over)
	g.w.mu.Unlock()
	for _, o := range over {
		<-o.ready
		o.begin(e)
	}
	g.mu.Lock()
	err := g.note(true)
	e.why = g.why
	for p, id := range g.known {
		if e.why == "" {
			e.pins = append(e.pins, workspace.Pin{Path: p, Dev: id.dev, Ino: id.ino})
		}
	}
	g.mu.Unlock()
	slices.SortFunc(e.pins, func(a, b workspace.Pin) int { return strings.Compare(a.Path, b.Path) })
	if err != nil {
		e.Leave()
		return nil, fmt.Errorf("note that a command is under way: %w", err)
	}
	return e, nil
}

// begin settles what the owner has done and counts the command.
func (g *Guard) begin(e *entry) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stale = g.stale || g.stay == nil && g.why == ""
	g.settle()
	g.validate()
	g.active++
	e.before[g] = g.seen
}

// Pins are what the command may not write.
func (e *entry) Pins() ([]workspace.Pin, string) { return e.pins, e.why }

// Leave finds what the command has made and was not found yet.
func (e *entry) Leave() (held []workspace.Held) {
	w := e.g.w
	w.mu.Lock()
	over := slices.Clone(e.over)
	delete(w.entries, e)
	w.mu.Unlock()
	var records []record
	for _, g := range over {
		g.mu.Lock()
		g.settle()
		g.active--
		records = append(records, g.held[max(0, len(g.held)-(g.seen-e.before[g])):]...)
		said := g.say()
		g.mu.Unlock()
		g.tell(said)
	}
	for _, r := range outermost(records) {
		if from, now, ok := e.g.relative(r); ok {
			held = append(held, workspace.Held{Path: from, Now: now})
		}
	}
	return held
}

// of says whether r was renamed inside what o has renamed: by its name, or by its HEAD.
func (r record) of(o record) bool {
	return r != o && (within(r.From, o.Now) || o.head() && within(r.From, filepath.Dir(o.From)))
}

func (r record) head() bool { return strings.EqualFold(filepath.Base(r.From), "HEAD") }

// outermost leaves out what was renamed inside something that was renamed, and each but the last name of the same.
func outermost(list []record) (out []record) {
	for i, r := range list {
		inner := slices.ContainsFunc(list, r.of)
		later := slices.ContainsFunc(list[i+1:], func(o record) bool { return o.From == r.From })
		if !inner && !later {
			out = append(out, r)
		}
	}
	return out
}

func (g *Guard) relative(r record) (from, now string, ok bool) {
	if !within(r.From, g.dir) {
		return "", "", false
	}
	return strings.TrimPrefix(r.From[len(g.dir):], "/"), strings.TrimPrefix(r.Now[len(g.dir):], "/"), true
}

// same says whether the folder is still the one that stands under its name.
func (g *Guard) same() bool {
	fi, err := os.Lstat(g.dir)
	if err != nil {
		return false
	}
	id, ok := identIn(fi)
	return ok && id == g.id
}

// end lets go of the folder. What is known stays noted as under way if it is.
func (g *Guard) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended {
		return
	}
	close(g.done)
	if g.active == 0 && g.noted {
		g.settle()
		if err := g.note(false); err != nil {
			g.w.opt.Log.Warn("state of a folder is not kept", "folder", g.dir, "err", err)
		}
	}
	if g.stay != nil {
		g.stay.close()
	}
	g.ended = true
	g.root.Close()
}
