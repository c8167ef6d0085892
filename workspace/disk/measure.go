package disk

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"parley/workspace/tree"
)

// Item is one thing in a folder, as a person may remove it.
type Item struct {
	Path   string // relative to the folder
	Folder bool
	Bytes  int64
	Files  int64 // in it, of a folder
}

// Report is what fills a folder.
type Report struct {
	Used
	Top   []Item // what is directly in it, the largest first
	Files []Item // the largest files anywhere in it
	least int64  // a smaller one is none of them
}

// shown is how many items a report has of each kind, and keptPath the longest path in it: a longer one could not be named.
const (
	shown     = 20
	keptPath  = 1000
	keptDepth = 100
)

// Report looks at what fills a folder now.
func (r *Rule) Report(dir string) (Report, error) {
	d, err := os.Open(dir)
	if err != nil {
		return Report{}, err
	}
	defer d.Close()
	var rep Report
	most, changed := int64(1<<62), 0
	if r != nil {
		most = r.most()
		r.mu.Lock()
		changed = r.of(dir).changed
		r.mu.Unlock()
	}
	rep.look(d, most)
	if r != nil {
		r.note(dir, rep.Used, changed)
	}
	return rep, nil
}

// ReportOf looks at what fills an open folder, which may be one in a work folder. It has no limits of its own.
func (r *Rule) ReportOf(d *os.File) (rep Report) {
	most := int64(1 << 62)
	if r != nil {
		most = r.most()
	}
	rep.look(d, most)
	return rep
}

func (rep *Report) look(d *os.File, most int64) {
	rep.Used = measure(d, most, true, rep)
	slices.SortFunc(rep.Top, larger)
	slices.SortFunc(rep.Files, larger)
	rep.Top, rep.Files = rep.Top[:min(len(rep.Top), shown)], rep.Files[:min(len(rep.Files), shown)]
}

// file notes a file for the report. It keeps a few more than are shown, so that they are sorted now and then only.
func (rep *Report) file(e *tree.Entry, bytes int64) {
	if bytes <= rep.least || e.Depth > keptDepth {
		return
	}
	p := e.Path()
	if len(p) > keptPath {
		return
	}
	rep.Files = append(rep.Files, Item{Path: p, Bytes: bytes})
	if len(rep.Files) >= 4*shown {
		slices.SortFunc(rep.Files, larger)
		rep.Files = rep.Files[:shown]
		rep.least = rep.Files[shown-1].Bytes
	}
}

func larger(a, b Item) int {
	return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), strings.Compare(a.Path, b.Path))
}

// Measure counts what an open folder holds, up to most names, while somebody hostile may be changing it. heal gives folders'
// owners back the rights to them: what cannot be seen cannot be counted.
func Measure(dir *os.File, most int64, heal bool) Used { return measure(dir, most, heal, nil) }

// counter is one walk.
type counter struct {
	most  int64
	rep   *Report
	used  Used
	links map[uint64]bool // files with several names that were counted
	in    int             // which of the report's items the walk is in; -1: none
}

// errEnough ends a walk.
var errEnough = errors.New("more than is counted")

func measure(dir *os.File, most int64, heal bool, rep *Report) Used {
	c := &counter{most: most, rep: rep, in: -1}
	var rights uint32
	if heal {
		rights = tree.Read
	}
	w := tree.Walker{Enter: c.see, Visit: c.see, Heal: rights, Stay: true, Failed: func(*tree.Entry, error) error { return nil }}
	err := w.Walk(context.Background(), dir) // bounded by most
	c.used.More = errors.Is(err, errEnough)
	return c.used
}

func (c *counter) see(e *tree.Entry) error {
	if c.used.Files++; c.used.Files > c.most {
		return errEnough
	}
	bytes := e.Stat.Blocks*512 + EntryCost
	folder := e.Kind() == unix.S_IFDIR
	if !folder && e.Stat.Nlink > 1 {
		if c.links[e.Stat.Ino] {
			bytes = 0
		} else if c.links == nil {
			c.links = map[uint64]bool{}
		}
		c.links[e.Stat.Ino] = true
	}
	c.used.Bytes += bytes
	if c.rep == nil {
		return nil
	}
	if !folder {
		c.rep.file(e, bytes)
	}
	switch {
	case e.Depth == 1:
		c.rep.Top = append(c.rep.Top, Item{Path: e.Name, Folder: folder, Bytes: bytes})
		if folder {
			c.in = len(c.rep.Top) - 1
		}
	case c.in >= 0:
		c.rep.Top[c.in].Bytes += bytes
		c.rep.Top[c.in].Files++
	}
	return nil
}
