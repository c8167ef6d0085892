package folder

import (
	"os"
	"path/filepath"
	"slices"
	"time"
)

// fallback is how often a folder is looked through that cannot be watched, while a command runs in it.
const fallback = 50 * time.Millisecond

// load looks through the folder for the first time, and goes on watching it.
func (g *Guard) load() {
	vouched, running := g.vouched()
	g.mu.Lock()
	if g.ended {
		g.mu.Unlock()
		close(g.ready)
		return
	}
	stay := newWatch()
	g.stay = stay
	s := g.recall()
	if s != nil {
		g.held = slices.DeleteFunc(s.Held, func(r record) bool { _, err := os.Lstat(r.Now); return err != nil })
	}
	list, err := g.look(job{".", true})
	if err != nil {
		g.close("", err.Error())
	}
	if s != nil && s.Busy {
		g.before = s
	}
	for _, f := range list {
		switch {
		case g.before != nil && g.before.Known[f.path] != f.id.ino:
			g.theirs = append(g.theirs, f) // a command has made it before the gateway was ended
		case slices.ContainsFunc(running, func(dir string) bool { return within(filepath.Join(g.dir, f.path), dir) }) && vouched[filepath.Join(g.dir, f.path)] != f.id:
			g.theirs = append(g.theirs, f)
		default:
			g.adoptOne(f)
		}
	}
	var jobs []job
	was := g.active
	g.active = max(1, was) // what is found is a command's
	for _, f := range g.theirs {
		jobs = append(jobs, g.hold(f)...)
	}
	for len(jobs) > 0 {
		jobs = append(jobs[1:], g.judge(jobs[0])...)
	}
	g.active = was
	g.noted = s != nil && s.Busy
	g.changed = g.noted || len(g.theirs) > 0
	g.weigh()
	g.before, g.theirs = nil, nil
	g.settle()
	said := g.say()
	g.mu.Unlock()
	close(g.ready)
	g.tell(said)
	if stay != nil {
		stay.follow(g.happened)
	}
	g.poll()
}

// happened takes up what the watch has told.
func (g *Guard) happened() {
	g.mu.Lock()
	g.settle()
	said := g.say()
	g.mu.Unlock()
	g.tell(said)
}

// say takes what the audit log is not told of yet; the caller holds the lock, and tells it without.
func (g *Guard) say() []Notice {
	list := g.unsaid
	g.unsaid = nil
	return list
}

func (g *Guard) tell(list []Notice) {
	for _, n := range list {
		g.w.opt.Notice(n)
	}
}

// poll looks through a folder that cannot be watched, for as long as commands run in it.
func (g *Guard) poll() {
	t := time.NewTimer(fallback)
	defer t.Stop()
	for {
		select {
		case <-g.done:
			return
		case <-t.C:
		}
		began := time.Now()
		g.mu.Lock()
		if g.stay == nil && g.active > 0 && g.why == "" {
			g.settle()
		}
		said := g.say()
		g.mu.Unlock()
		g.tell(said)
		t.Reset(max(fallback, 2*time.Since(began)))
	}
}

// vouched is what other guards know of folders that overlap, by its path on the host; running are the folders in which
// commands run.
func (g *Guard) vouched() (all map[string]ident, running []string) {
	g.w.mu.Lock()
	var over []*Guard
	for e := range g.w.entries {
		running = append(running, e.g.dir)
	}
	for _, o := range g.w.guards {
		if o != g && overlap(o.dir, g.dir) {
			over = append(over, o)
		}
	}
	g.w.mu.Unlock()
	all = map[string]ident{}
	for _, o := range over {
		o.mu.Lock()
		for p, id := range o.known {
			all[filepath.Join(o.dir, p)] = id
		}
		o.mu.Unlock()
	}
	return all, running
}
