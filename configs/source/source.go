// Package source reads the configuration's file, watches it, and replaces its text: what is in force is always a configuration
// that was taken as a whole.
//
// It starts no goroutine but those of the file watcher, which end with Watch.
package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"

	"parley/configs"
)

// quiet is how long a file must rest before it is read again: editors save in several steps.
const quiet = 250 * time.Millisecond

// ErrEmpty says that the file has nothing in it where it had something before: a save that is half done, most likely.
var ErrEmpty = errors.New("the file is empty")

// Source keeps the configuration that was taken last and replaces it, as a whole, by one that loads and is taken.
type Source struct {
	opts    configs.LoadOptions
	current atomic.Pointer[configs.Config]
	ask     chan struct{}
	replace chan replacement
}

// New makes a source of what o describes. It reads nothing yet.
func New(o configs.LoadOptions) *Source {
	return &Source{opts: o, ask: make(chan struct{}, 1), replace: make(chan replacement)}
}

// Load reads for the first time. From then on the same file is meant, wherever the process goes.
func (s *Source) Load() (*configs.Config, error) {
	c, err := configs.Load(s.opts)
	if err != nil {
		return nil, err
	}
	s.current.Store(c)
	return c, nil
}

// Current is the configuration that was taken last, as its file has it; nil before Load. Keep the result for one piece of work,
// so that its parts agree.
func (s *Source) Current() *configs.Config { return s.current.Load() }

// Reload has Watch read again at once, also what ${VAR} and ${file:…} stand for: it is for SIGHUP. It does not wait.
func (s *Source) Reload() {
	select {
	case s.ask <- struct{}{}:
	default: // one is asked for already
	}
}

// Watch reads again whenever the file rests after a change, and when Reload asks. It blocks until ctx ends and calls back from
// its own goroutine, one call at a time. prepare is offered a configuration that loads and differs from Current: it does all
// that can fail, and returns what puts it in force as a whole. Without an error it becomes Current and commit is called; else
// nothing changes. What was refused is offered again at the next occasion, also when nothing in the file has changed: the
// cause may have been elsewhere. With old and new the same, what is in force stands in the file again after an error. refused
// is told why the old one stays. Load must have succeeded. Files that ${file:…} names are not watched.
func (s *Source) Watch(ctx context.Context, prepare func(old, new *configs.Config) (commit func(), err error), refused func(error)) {
	w := watch{names: map[string]bool{}}
	if err := w.open(); err != nil {
		refused(fmt.Errorf("watch configuration: %w; only a signal reloads it", err))
	}
	defer w.close()
	wrong := false // what the file held last was refused
	take := func() error {
		w.follow(s.Current().Path) // before reading: a change from here on is an event
		err := s.again(s.meant(), prepare, wrong)
		wrong = err != nil
		return err
	}
	again := func() {
		if err := take(); err != nil {
			refused(err)
		}
	}
	w.follow(s.Current().Path)
	rest := time.NewTimer(quiet) // running: it may have changed since Load
	defer rest.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.ask:
			again()
		case r := <-s.replace:
			r.done <- s.replaceNow(r, func(o configs.LoadOptions) error {
				w.follow(o.Path)
				err := s.again(o, prepare, wrong)
				wrong = err != nil
				return err
			})
			w.follow(s.Current().Path)
		case <-rest.C:
			again()
		case event := <-w.events:
			if w.names[filepath.Clean(event.Name)] {
				rest.Reset(quiet)
			}
		case <-w.errors: // events were lost: look
			rest.Reset(quiet)
		}
	}
}

// meant is where the file is that was read first; with none, where one is looked for.
func (s *Source) meant() configs.LoadOptions {
	o := s.opts
	if c := s.Current(); c != nil && c.Path != "" {
		o.Path = c.Path
	}
	return o
}

// again reads once more, and puts what differs in force; wrong says that what was read last was refused.
func (s *Source) again(o configs.LoadOptions, prepare func(old, new *configs.Config) (func(), error), wrong bool) error {
	old := s.Current()
	new, err := configs.Load(o)
	switch {
	case err != nil:
	case new.Empty() && !old.Empty() && new.Path != "": // without a path it was taken away by Replace
		err = fmt.Errorf("%s: %w", new.Path, ErrEmpty)
	case configs.Same(old, new):
		if new = old; !wrong {
			return nil
		}
	}
	var commit func()
	if err == nil {
		commit, err = prepare(old, new)
	}
	if err != nil {
		return fmt.Errorf("the configuration in force stays: %w", err)
	}
	s.current.Store(new)
	commit()
	return nil
}

// watch follows one file through links, renames and folders that come and go. Folders are watched, not files: a watch on a
// file is lost when another takes its name.
type watch struct {
	*fsnotify.Watcher
	events chan fsnotify.Event
	errors chan error
	names  map[string]bool // whose changes matter; the folder may hold a busy log
}

func (w *watch) open() error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	w.Watcher, w.events, w.errors = watcher, watcher.Events, watcher.Errors
	return nil
}

func (w *watch) close() {
	if w.Watcher != nil {
		_ = w.Watcher.Close() // it returns no error
	}
}

// follow watches the folders that decide what path leads to now. A folder that cannot be watched is left out: Reload works.
func (w *watch) follow(path string) {
	if w.Watcher == nil || path == "" {
		return
	}
	clear(w.names)
	var folders []string
	for _, name := range steps(path) {
		w.names[name] = true
		folders = append(folders, filepath.Dir(name))
	}
	for _, old := range w.WatchList() {
		if !slices.Contains(folders, old) {
			_ = w.Remove(old) // it may be gone already
		}
	}
	for _, folder := range folders {
		_ = w.Add(folder) // watching twice is fine
	}
}

// steps are the names whose change can change what path leads to: each link on the way, the folder of the file, and the file,
// or else the first thing on the way that is missing.
func steps(path string) []string {
	var names []string
	for range 40 { // links that lead in a circle end somewhere
		link := ""
		at := string(filepath.Separator)
		parts := strings.Split(filepath.Clean(path), string(filepath.Separator))
		for i, part := range parts {
			at = filepath.Join(at, part)
			info, err := os.Lstat(at)
			if errors.Is(err, fs.ErrNotExist) {
				return append(names, at)
			}
			if err != nil || info.Mode()&fs.ModeSymlink == 0 {
				continue
			}
			names = append(names, at)
			if link, err = os.Readlink(at); err != nil {
				return names
			}
			if !filepath.IsAbs(link) {
				link = filepath.Join(filepath.Dir(at), link)
			}
			path = filepath.Join(append([]string{link}, parts[i+1:]...)...)
			break
		}
		if link == "" {
			return append(names, filepath.Dir(path), path)
		}
	}
	return names
}
