package disk

import (
	"os"
	"time"
)

const (
	calm      = 10 * time.Millisecond // between two looks
	tense     = time.Millisecond      // near the line
	near      = 512 << 20             // bytes above it that count as near: in ten milliseconds no disk takes as much
	nearFiles = 256 << 10
)

// watch is a command that runs.
type watch struct {
	dirs []*os.File
	devs []uint64
	stop func()
}

// Start lets a command begin that may write to the folders, which stay open until end. When one's file system has too
// little free, or comes to have, stop is called, once and at once; it must not block.
func (r *Rule) Start(dirs []*os.File, stop func()) (end func(), err error) {
	if r == nil {
		return func() {}, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	w := &watch{stop: stop}
	for _, d := range dirs {
		at, ok := roomOf(d)
		if !ok {
			continue
		}
		s, sp := r.look(at, time.Now())
		if sp.Low() {
			r.refused.Add(1)
			r.tell(s, d.Name(), sp, "command refused: disk space is low")
			return func() {}, &Error{why: lowText(sp)}
		}
		r.well(s, d.Name(), sp)
		w.dirs, w.devs = append(w.dirs, d), append(w.devs, at.dev)
	}
	r.watches[w] = struct{}{}
	if !r.running {
		r.running = true
		r.background.Go(r.run)
	}
	return func() { r.leave(w) }, nil
}

// leave ends a watch. It does not wait for the loop, which ends behind the last.
func (r *Rule) leave(w *watch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.watches, w)
	if len(r.watches) == 0 {
		r.rouse()
	}
}

func (r *Rule) rouse() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// run looks at the file systems of all commands until none is left, or the rule is closed.
func (r *Rule) run() {
	timer := time.NewTimer(tense)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-r.wake:
		}
		r.mu.Lock()
		if len(r.watches) == 0 || r.closed { // Close waits for no watch that somebody forgot
			r.running = false
			r.mu.Unlock()
			return
		}
		slack := r.judge()
		r.mu.Unlock()
		if slack < near {
			timer.Reset(tense)
		} else {
			timer.Reset(calm)
		}
	}
}

// judge looks at each file system once and stops whoever writes to one that has too little free. It gives the least that is
// left above a line.
func (r *Rule) judge() (slack int64) {
	slack = 1 << 62
	now := time.Now()
	seen := map[uint64]Space{}
	for w := range r.watches {
		for i, d := range w.dirs {
			sp, ok := seen[w.devs[i]]
			if !ok {
				at, got := roomOf(d)
				if !got {
					continue
				}
				_, sp = r.look(at, now)
				seen[w.devs[i]] = sp
			}
			slack = min(slack, sp.Free-sp.Floor-sp.Reserve-5*max(0, sp.Reserve-leastReserve)) // the faster, the nearer
			if sp.Entries > 0 && sp.Spare < nearFiles {
				slack = 0
			}
			if !sp.Low() {
				continue
			}
			w.stop()
			delete(r.watches, w)
			r.stopped.Add(1)
			r.systems[w.devs[i]].low = true
			r.opt.Log.Warn("command stopped: disk space is low", "folder", d.Name(), "free", sp.Free, "floor", sp.Floor, "reserve", sp.Reserve)
			break
		}
	}
	return slack
}
