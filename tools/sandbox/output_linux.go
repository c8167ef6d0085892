package sandbox

import (
	"fmt"
	"io"
	"os"
	"path"
	"syscall"

	"parley/tools/tail"
	"parley/workspace/disk"
)

// Of the whole output that is kept in a file.
const (
	maxKept    = 8 << 20   // bytes of one
	keptFiles  = 16        // of them in a work folder; the oldest goes
	outputDir  = ".output" // in the work folder
	readAtOnce = 32 << 10
)

// output takes what a command writes, keeps the first and the last of it in memory, and, once that is not all, the whole
// up to maxKept in a file of the work folder. It never holds more than the limit and one read.
type output struct {
	limit  int
	whole  bool          // the test that shows what the limit is for
	spill  func() *spill // opens the file; nil when there is none to be had
	head   []byte
	tail   []byte // a ring
	at     int    // where the ring's oldest byte is, once it is full
	size   int64
	file   *spill
	opened bool
	live   *tail.Tail // for who watches
}

// spill is the file for the whole.
type spill struct {
	name string // relative to the work folder
	file *os.File
	to   io.Writer // the file, as long as the disk has room
	left int64
	kept int64
}

func newOutput(limit int, open func() *spill) *output {
	return &output{limit: limit, spill: open}
}

// drain reads until the other end is closed.
func (o *output) drain(r io.Reader) {
	buf := make([]byte, readAtOnce)
	for {
		n, err := r.Read(buf)
		o.take(buf[:n])
		_, _ = o.live.Write(buf[:n]) // it never fails
		if err != nil {
			return
		}
	}
}

func (o *output) take(p []byte) {
	before := o.size
	o.size += int64(len(p))
	if o.whole {
		o.head = append(o.head, p...)
		return
	}
	if o.size > int64(o.limit) && !o.opened {
		o.opened = true
		if o.file = o.spill(); o.file != nil {
			o.file.write(o.bytes(before))
		}
	}
	if o.file != nil {
		o.file.write(p)
	}
	half := o.limit / 2
	if room := half - len(o.head); room > 0 {
		n := min(room, len(p))
		o.head, p = append(o.head, p[:n]...), p[n:]
	}
	ring := o.limit - half
	if len(p) > ring {
		p = p[len(p)-ring:]
	}
	for len(p) > 0 && len(o.tail) < ring {
		n := min(ring-len(o.tail), len(p))
		o.tail, p = append(o.tail, p[:n]...), p[n:]
	}
	for len(p) > 0 {
		n := copy(o.tail[o.at:], p)
		o.at, p = (o.at+n)%ring, p[n:]
	}
}

// bytes is what was kept when the output had size bytes.
func (o *output) bytes(size int64) []byte {
	all := make([]byte, 0, len(o.head)+len(o.tail)+64)
	all = append(all, o.head...)
	if cut := size - int64(len(o.head)+len(o.tail)); cut > 0 && !o.whole {
		all = fmt.Appendf(all, "\n[%d bytes are left out here]\n", cut)
	}
	return append(append(all, o.tail[o.at:]...), o.tail[:o.at]...)
}

// end fills in the outcome and closes the file.
func (o *output) end(out *Outcome) {
	out.Output, out.OutputSize = o.bytes(o.size), o.size
	out.Truncated = !o.whole && o.size > int64(o.limit)
	if o.file == nil {
		return
	}
	if o.file.file.Close() == nil && o.file.kept > 0 {
		out.OutputFile, out.OutputKept = o.file.name, o.file.kept
	}
}

func (s *spill) write(p []byte) {
	if int64(len(p)) > s.left {
		p = p[:s.left]
	}
	n, err := s.to.Write(p)
	s.left, s.kept = s.left-int64(n), s.kept+int64(n)
	if err != nil {
		s.left = 0 // a full disk, say: what is there stays, the rest is counted
	}
}

// openSpill makes the file in the work folder, which the command can write too: every step is held inside it and follows
// no link out. The command may spoil the file; it is its own output.
func openSpill(work *os.Root, name string, rule *disk.Rule, dir string) *spill {
	if work.Mkdir(outputDir, 0o700) == nil {
		_ = work.Chmod(outputDir, 0o700)
	}
	prune(work)
	name = path.Join(outputDir, name)
	f, err := work.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil
	}
	return &spill{name: name, file: f, to: rule.Writer(f, dir), left: maxKept}
}

// prune keeps the newest files: their names begin with the time.
func prune(work *os.Root) {
	dir, err := work.OpenFile(outputDir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0) // a FIFO in its place would block
	if err != nil {
		return
	}
	defer dir.Close()
	list, err := dir.ReadDir(keptFiles * 64)
	if err != nil {
		return
	}
	for len(list) >= keptFiles {
		oldest := 0
		for i := range list {
			if list[i].Name() < list[oldest].Name() {
				oldest = i
			}
		}
		_ = work.Remove(path.Join(outputDir, list[oldest].Name()))
		list[oldest] = list[len(list)-1]
		list = list[:len(list)-1]
	}
}
