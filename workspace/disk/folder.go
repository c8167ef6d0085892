package disk

import (
	"fmt"
	"os"
	"time"
)

// Used is what a folder holds.
type Used struct {
	Bytes int64 // blocks on the disk, and EntryCost for each file and folder; of several hard links once
	Files int64 // names of files and folders
	More  bool  // it was not counted to its end
}

// folder is what is known of a work folder. It is a cache: what it says may be forgotten at any time.
type folder struct {
	used     Used
	fresh    bool // nothing has written there since but what was added
	counting bool
	changed  int // how often something did
}

// knownFolders is how many folders are remembered.
const knownFolders = 4096

// of gives what is known of a folder; r.mu is held.
func (r *Rule) of(dir string) *folder {
	f := r.folders[dir]
	if f == nil {
		if len(r.folders) >= knownFolders {
			clear(r.folders)
		}
		f = &folder{}
		r.folders[dir] = f
	}
	return f
}

// Limits are what one work folder may hold.
func (r *Rule) Limits() Used {
	if r == nil {
		return Used{Bytes: 1 << 62, Files: 1 << 62}
	}
	return Used{Bytes: r.opt.Size, Files: r.opt.Files}
}

// Known is what a folder holds, where that is known without looking.
func (r *Rule) Known(dir string) (Used, bool) {
	if r == nil {
		return Used{}, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.of(dir)
	return f.used, f.fresh
}

// Count looks at what a folder holds now.
func (r *Rule) Count(dir string) (Used, error) {
	d, err := os.Open(dir)
	if err != nil {
		return Used{}, err
	}
	defer d.Close()
	if r == nil {
		return Measure(d, 1<<62, true), nil
	}
	r.mu.Lock()
	changed := r.of(dir).changed
	r.mu.Unlock()
	u := Measure(d, r.most(), true)
	r.note(dir, u, changed)
	return u, nil
}

// most is how many entries of a folder are counted: a little over what it may hold.
func (r *Rule) most() int64 { return r.opt.Files + r.opt.Files/8 }

func (r *Rule) note(dir string, u Used, changed int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f := r.of(dir); f.changed == changed {
		f.used, f.fresh = u, true
	}
}

// Changed says that something may have written to a folder: it is counted again, behind whoever says so.
func (r *Rule) Changed(dir string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.of(dir)
	f.fresh = false
	f.changed++
	if f.counting || r.closed {
		return
	}
	f.counting = true
	r.background.Go(func() { r.recount(dir) })
}

// recount counts until nothing has changed meanwhile.
func (r *Rule) recount(dir string) {
	for range 3 {
		_, err := r.Count(dir)
		r.mu.Lock()
		f := r.of(dir)
		if err != nil || f.fresh || r.closed {
			f.counting = false
			r.mu.Unlock()
			return
		}
		r.mu.Unlock()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.of(dir).counting = false
}

// Fits says whether a work folder may get so much more: as it is known, else as it is counted now.
func (r *Rule) Fits(dir string, bytes, files int64) error {
	if r == nil {
		return nil
	}
	u, known := r.Known(dir)
	if !known {
		var err error
		if u, err = r.Count(dir); err != nil {
			return nil // it is not there yet
		}
	}
	return r.full(u, bytes, files)
}

// Full refuses to begin what writes to a folder that holds so much already.
func (r *Rule) Full(u Used) error {
	if r == nil {
		return nil
	}
	return r.full(u, 1, 1)
}

// full says that so much more is too much.
func (r *Rule) full(u Used, bytes, files int64) error {
	switch {
	case u.Bytes+bytes > r.opt.Size:
		return r.refuse(fmt.Sprintf("the work folder holds %s and may hold %s", Size(u.Bytes), Size(r.opt.Size)))
	case u.Files+files > r.opt.Files:
		return r.refuse(fmt.Sprintf("the work folder holds %d files and folders and may hold %d", u.Files, r.opt.Files))
	}
	return nil
}

func (r *Rule) refuse(why string) error {
	r.refused.Add(1)
	return &Error{Folder: true, why: why}
}

// Cost is what a file of so many bytes counts for.
func Cost(size int64) int64 { return (size+EntryCost-1)/EntryCost*EntryCost + EntryCost }

// Added notes what a writer has put into a folder, or taken out, without counting it again.
func (r *Rule) Added(dir string, bytes, files int64) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.of(dir)
	f.used.Bytes, f.used.Files = max(0, f.used.Bytes+bytes), max(0, f.used.Files+files)
	f.changed++ // what is being counted may hold it or not
	if f.counting {
		f.fresh = false
	}
}

// Stopped notes that a command was ended since it filled a folder, for the operator.
func (r *Rule) Stopped(dir, why string, took time.Duration) {
	if r == nil {
		return
	}
	r.stopped.Add(1)
	r.opt.Log.Warn("command stopped: its folder is full", "folder", dir, "limit", why, "after", took)
}
