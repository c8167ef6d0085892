// The count of commits, in a mapped file beside the database.

package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/oklog/ulid/v2"
	"golang.org/x/sys/unix"
)

// CountFile counts the commits of the database it stands beside.
const CountFile = "commits"

// The file is one page: a line for people, which names the database, then two slots that take turns. A process that is
// killed while it writes a slot leaves the other one, which is at most one commit behind.
const (
	tallySize  = 4096
	tallyTitle = "parley commits 1 "
	slotAt     = 64 // the first; the second follows it, in the same sector
	slotSize   = 32
)

// Count is how far a database is. Each commit moves one of its numbers, and none ever goes back: a commit that stores a row
// of one of two series is counted by the newest number of that, so that what the owner does most costs no statement more;
// every other one counts itself in a row. No unit may delete the newest row of a series.
type Count struct {
	Line   string // made with the database, and the same over copies; empty: it was never counted
	N      int64  // commits that count themselves
	Seq    int64  // newest row of the one series
	Answer int64  // newest row of the other
}

// Behind says whether something of what is counted is missing in another count of the same database.
func (c Count) Behind(of Count) bool { return c.N < of.N || c.Seq < of.Seq || c.Answer < of.Answer }

func (c Count) sum() int64 { return c.N + c.Seq + c.Answer }

// tally is the mapped file. A commit is counted by storing into memory after it is durable, without a system call:
// the kernel writes the page when it likes. So the file outlives a killed process, and after a power cut it may be
// behind the database, never ahead of it.
type tally struct {
	page []byte
	line string
	next int // slot
}

// openTally maps the file of a database that has come to c. One that says otherwise is replaced: whoever opens it has
// looked before.
func openTally(dir string, c Count) (*tally, error) {
	if kept, err := ReadCount(dir); err != nil || kept.Line != c.Line || c.Behind(kept) {
		if err := writeCount(dir, c); err != nil {
			return nil, fmt.Errorf("make the count of commits: %w", err)
		}
	}
	f, err := os.OpenFile(filepath.Join(dir, CountFile), os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the count of commits: %w", err)
	}
	defer f.Close()
	page, err := unix.Mmap(int(f.Fd()), 0, tallySize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map the count of commits: %w", err)
	}
	t := &tally{page: page, line: c.Line}
	return t, t.note(c)
}

// errUnmapped says that the page is gone: the file was cut, or its disk has no room for it.
var errUnmapped = errors.New("the count of commits cannot be written any more")

// note counts a commit that is durable.
func (t *tally) note(c Count) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if recover() != nil {
			err = errUnmapped
		}
	}()
	putSlot(t.page, t.next, t.line, c)
	t.next = 1 - t.next
	return nil
}

func (t *tally) close() error { return unix.Munmap(t.page) }

func putSlot(page []byte, i int, line string, c Count) {
	slot := page[slotAt+slotSize*i:][:slotSize]
	binary.LittleEndian.PutUint64(slot, uint64(c.N))
	binary.LittleEndian.PutUint64(slot[8:], uint64(c.Seq))
	binary.LittleEndian.PutUint64(slot[16:], uint64(c.Answer))
	binary.LittleEndian.PutUint32(slot[24:], slotSum(line, slot))
}

func slotSum(line string, slot []byte) uint32 {
	return crc32.Update(crc32.Checksum([]byte(line), castagnoli()), castagnoli(), slot[:24])
}

// ErrGarbled says that a file beside the database holds nothing that its checksum or form confirms.
var ErrGarbled = errors.New("it cannot be read")

// ReadCount reads the file in a data directory as it is: os.ErrNotExist, or ErrGarbled.
func ReadCount(dir string) (c Count, err error) {
	page, err := os.ReadFile(filepath.Join(dir, CountFile))
	if err != nil {
		return c, err
	}
	title, _, _ := strings.Cut(string(page[:min(len(page), slotAt)]), "\n")
	line, ok := strings.CutPrefix(title, tallyTitle)
	if _, bad := ulid.ParseStrict(line); !ok || bad != nil || len(page) != tallySize {
		return c, ErrGarbled
	}
	for i := range 2 {
		slot := page[slotAt+slotSize*i:][:slotSize]
		number := func(at int) int64 { return int64(binary.LittleEndian.Uint64(slot[at:])) }
		s := Count{line, number(0), number(8), number(16)}
		if s.sum() > c.sum() && binary.LittleEndian.Uint32(slot[24:]) == slotSum(line, slot) {
			c = s
		}
	}
	if c.sum() == 0 {
		return c, ErrGarbled
	}
	return c, nil
}

// writeCount puts a new file in the place of the old one.
func writeCount(dir string, c Count) error {
	page := make([]byte, tallySize)
	copy(page, tallyTitle+c.Line+"\n")
	putSlot(page, 0, c.Line, c)
	fresh := filepath.Join(dir, CountFile+".new")
	f, err := os.OpenFile(fresh, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(page)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(fresh, filepath.Join(dir, CountFile)); err != nil {
		return err
	}
	return syncDir(dir)
}
