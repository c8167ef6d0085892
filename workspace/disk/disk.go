// Package disk holds the one rule of disk space, which everything that an agent or a person can make write goes through:
// commands, file tools, uploads, attachments, copies of files and kept output. No writer starts, and those that run are
// stopped, while the file system that they write to has less free than a floor and a reserve. The floor is the gateway's own:
// its store must be able to write when nobody else may. Beside it stands a total for each work folder.
//
// A Rule has one goroutine while something is watched, and one for each folder that is being counted after a command; Close
// waits for them.
package disk

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// What holds where Options say nothing.
const (
	DefaultFloor = 256 << 20
	DefaultSize  = 2 << 30
	DefaultFiles = 100_000
)

const (
	leastReserve = 64 << 20
	window       = 100 * time.Millisecond // in which what all have written counts as reserve
	// EntryCost is what each file and folder counts for beside its blocks, in bytes: an empty one takes room too.
	EntryCost = 4 << 10
)

// ErrSpace is in every refusal of a Rule.
var ErrSpace = errors.New("no disk space")

// Error is a refusal. Its text is one sentence without a full stop, with no path in it, that may be shown to anybody.
type Error struct {
	Folder bool // the work folder is full, not the disk
	why    string
}

func (e *Error) Error() string { return e.why }

func (e *Error) Unwrap() error { return ErrSpace }

// Options of a Rule. Zero values take the defaults.
type Options struct {
	Floor int64 // bytes that stay free; 0: DefaultFloor, or a quarter of a disk too small for that
	Size  int64 // bytes of one work folder
	Files int64 // files and folders in it
	Log   *slog.Logger
}

// Rule is safe for concurrent use. A nil one refuses nothing: for tests of what does not write.
type Rule struct {
	opt     Options
	stopped atomic.Int64
	refused atomic.Int64

	mu         sync.Mutex
	systems    map[uint64]*system // by device
	folders    map[string]*folder // by path
	watches    map[*watch]struct{}
	running    bool          // the loop is
	wake       chan struct{} // ends its wait
	closed     bool
	background sync.WaitGroup
}

// New makes a Rule. It does no IO.
func New(o Options) *Rule {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Size, o.Files = cmp.Or(o.Size, DefaultSize), cmp.Or(o.Files, DefaultFiles)
	return &Rule{opt: o, systems: map[uint64]*system{}, folders: map[string]*folder{}, watches: map[*watch]struct{}{}, wake: make(chan struct{}, 1)}
}

// Close waits for what is being counted. Nothing may be watched any more.
func (r *Rule) Close() {
	if r == nil {
		return
	}
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.rouse()
	r.background.Wait()
}

// room is what a file system says of itself; dev tells file systems apart.
type room struct {
	dev            uint64
	total, free    int64 // bytes; free is what an ordinary user may take
	entries, spare int64 // files and folders; 0: it does not count them
}

// Space is what a file system has.
type Space struct {
	Total, Free    int64 // bytes; Free is what an ordinary user may take
	Floor, Reserve int64
	Small          bool  // the floor is less than the default, since the whole disk is small
	Entries, Spare int64 // files and folders that it can have, and more of them; 0: it does not count them
}

// Files and folders that stay free, where a file system has a number of them: the gateway's own are few.
const spareFloor = 32 << 10

// Low says that nobody may write.
func (s Space) Low() bool { return s.Free < s.Floor+s.Reserve || s.few() }

func (s Space) few() bool { return s.Entries > 0 && s.Spare < min(spareFloor, s.Entries/4) }

// Useless says that nothing could be written if the disk were empty.
func (s Space) Useless() bool { return s.Total > 0 && s.Total <= s.Floor+s.Reserve }

// Counts are how many commands were stopped and writes refused since the start.
func (r *Rule) Counts() (stopped, refused int64) { return r.stopped.Load(), r.refused.Load() }

// system is one file system: what was lost there lately.
type system struct {
	known    bool
	free     int64
	drops    []drop // what was lost
	asked    []drop // what of it was asked for before: that is bounded without a reserve
	inflight int64  // bytes that were let in and may not be on the disk yet
	low      bool   // was told to the log
	told     time.Time
}

type drop struct {
	at    time.Time
	bytes int64
}

// look notes what is free, and gives what counts. r.mu is held.
func (r *Rule) look(at room, now time.Time) (*system, Space) {
	s := r.systems[at.dev]
	if s == nil {
		s = &system{}
		r.systems[at.dev] = s
	}
	if s.known && at.free < s.free {
		s.drops = append(s.drops, drop{now, s.free - at.free})
	}
	s.known, s.free = true, at.free
	wrote := lately(&s.drops, now) - lately(&s.asked, now)
	sp := Space{Total: at.total, Free: at.free, Floor: cmp.Or(r.opt.Floor, DefaultFloor), Reserve: leastReserve, Entries: at.entries, Spare: at.spare}
	if r.opt.Floor == 0 && at.total > 0 && at.total < DefaultFloor+leastReserve {
		sp.Floor, sp.Reserve, sp.Small = at.total/4, at.total/8, true
	}
	sp.Reserve = max(sp.Reserve, wrote)
	return s, sp
}

// lately sums what is within the window, and forgets the rest.
func lately(list *[]drop, now time.Time) (sum int64) {
	for len(*list) > 0 && now.Sub((*list)[0].at) > window {
		*list = (*list)[1:]
	}
	for _, d := range *list {
		sum += d.bytes
	}
	return sum
}

// Space says how the file system of a folder is.
func (r *Rule) Space(dir string) (Space, bool) {
	at, ok := roomAt(dir)
	if r == nil || !ok {
		return Space{}, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_, sp := r.look(at, time.Now())
	return sp, true
}

// Admit lets n bytes be written to the file system of a folder, or refuses. done is called when they are written; it is
// never nil.
func (r *Rule) Admit(dir string, n int64) (done func(), err error) {
	done = func() {}
	if r == nil {
		return done, nil
	}
	at, ok := roomAt(dir)
	if !ok {
		return done, nil // the write itself will say so
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	s, sp := r.look(at, now)
	if sp.Free-n-s.inflight < sp.Floor+sp.Reserve || sp.few() {
		r.refused.Add(1)
		r.tell(s, dir, sp, "write refused: disk space is low")
		return done, &Error{why: lowText(sp)}
	}
	r.well(s, dir, sp)
	s.inflight += n
	s.asked = append(s.asked, drop{now, n})
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		s.inflight -= n
	}, nil
}

// lowText is for whoever wanted to write.
func lowText(sp Space) string {
	if sp.few() {
		return fmt.Sprintf("the disk of this machine has room for %d more files only", sp.Spare)
	}
	if sp.Useless() {
		return fmt.Sprintf("the disk has %s in all, and %s of it are kept for the gateway: an operator can set sandbox.disk_floor", Size(sp.Total), Size(sp.Floor+sp.Reserve))
	}
	return fmt.Sprintf("the disk of this machine has %s free, and nothing is written below %s", Size(sp.Free), Size(sp.Floor+sp.Reserve))
}

// tellEvery is how often the log hears that a disk is still full.
const tellEvery = time.Minute

// tell writes a line for the operator, once for each time that a disk fills, and then now and again.
func (r *Rule) tell(s *system, dir string, sp Space, what string, more ...any) {
	if s.low && time.Since(s.told) < tellEvery {
		return
	}
	s.low, s.told = true, time.Now()
	r.opt.Log.Warn(what, append([]any{"folder", dir, "free", sp.Free, "floor", sp.Floor, "reserve", sp.Reserve, "total", sp.Total, "files_left", sp.Spare}, more...)...)
}

func (r *Rule) well(s *system, dir string, sp Space) {
	if s.low && !sp.Low() {
		s.low = false
		r.opt.Log.Info("disk space is free again", "folder", dir, "free", sp.Free)
	}
}

// chunk is how much is written between two looks.
const chunk = 1 << 20

// Writer writes to f, a file on the file system of dir, as long as the rule allows it.
func (r *Rule) Writer(f *os.File, dir string) *Writer { return &Writer{r: r, f: f, dir: dir} }

// Writer is an io.Writer under a Rule.
type Writer struct {
	r   *Rule
	f   *os.File
	dir string
}

// Write writes all of p, or as much as may be written.
func (w *Writer) Write(p []byte) (n int, err error) {
	for len(p) > 0 {
		part := p[:min(len(p), chunk)]
		done, err := w.r.Admit(w.dir, int64(len(part)))
		if err != nil {
			return n, err
		}
		m, err := w.f.Write(part)
		done()
		n, p = n+m, p[m:]
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// Size is a number of bytes for people.
func Size(n int64) string {
	switch {
	case n < 0:
		return "0 bytes"
	case n < 1<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 1<<20:
		return fmt.Sprintf("%.0f KiB", float64(n)/(1<<10))
	case n < 10<<30:
		return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}
