package store

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

// tallyName is the file that counts the commits of the database it stands beside.
const tallyName = "commits"

// The file is one page: a line for people, which names the database, then two slots that take turns. A process that is
// killed while it writes a slot leaves the other one, which is at most one commit behind.
const (
	tallySize  = 4096
	tallyTitle = "parley commits 1 "
	slotAt     = 64 // the first; the second follows it, in the same sector
	slotSize   = 32
)

// count is how far a database is. Each commit moves one of its numbers, and none ever goes back: a commit that makes an
// input or an outbound is counted by their numbers, so that a plain message costs no statement more; every other one
// counts itself in a row. A unit that deletes the newest of either must set tx.counts: the row keeps how far they were.
type count struct {
	line   string // made with the database, and the same over copies; empty: it was never counted
	n      int64  // commits that count themselves
	seq    int64  // newest input
	answer int64  // newest outbound
}

// behind says whether something of what is counted is missing in another count of the same database.
func (c count) behind(of count) bool { return c.n < of.n || c.seq < of.seq || c.answer < of.answer }

func (c count) sum() int64 { return c.n + c.seq + c.answer }

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
func openTally(dir string, c count) (*tally, error) {
	if kept, err := readTally(dir); err != nil || kept.line != c.line || c.behind(kept) {
		if err := writeTally(dir, c); err != nil {
			return nil, fmt.Errorf("make the count of commits: %w", err)
		}
	}
	f, err := os.OpenFile(filepath.Join(dir, tallyName), os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the count of commits: %w", err)
	}
	defer f.Close()
	page, err := unix.Mmap(int(f.Fd()), 0, tallySize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map the count of commits: %w", err)
	}
	t := &tally{page: page, line: c.line}
	return t, t.note(c)
}

// errUnmapped says that the page is gone: the file was cut, or its disk has no room for it.
var errUnmapped = errors.New("the count of commits cannot be written any more")

// note counts a commit that is durable.
func (t *tally) note(c count) (err error) {
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

func putSlot(page []byte, i int, line string, c count) {
	slot := page[slotAt+slotSize*i:][:slotSize]
	binary.LittleEndian.PutUint64(slot, uint64(c.n))
	binary.LittleEndian.PutUint64(slot[8:], uint64(c.seq))
	binary.LittleEndian.PutUint64(slot[16:], uint64(c.answer))
	binary.LittleEndian.PutUint32(slot[24:], slotSum(line, slot))
}

func slotSum(line string, slot []byte) uint32 {
	return crc32.Update(crc32.Checksum([]byte(line), castagnoli()), castagnoli(), slot[:24])
}

// errGarbled says that the file holds no count that its checksum confirms.
var errGarbled = errors.New("it cannot be read")

// readTally reads the file as it is: os.ErrNotExist, or errGarbled.
func readTally(dir string) (c count, err error) {
	page, err := os.ReadFile(filepath.Join(dir, tallyName))
	if err != nil {
		return c, err
	}
	title, _, _ := strings.Cut(string(page[:min(len(page), slotAt)]), "\n")
	line, ok := strings.CutPrefix(title, tallyTitle)
	if _, bad := ulid.ParseStrict(line); !ok || bad != nil || len(page) != tallySize {
		return c, errGarbled
	}
	for i := range 2 {
		slot := page[slotAt+slotSize*i:][:slotSize]
		number := func(at int) int64 { return int64(binary.LittleEndian.Uint64(slot[at:])) }
		if s := (count{line, number(0), number(8), number(16)}); s.sum() > c.sum() && binary.LittleEndian.Uint32(slot[24:]) == slotSum(line, slot) {
			c = s
		}
	}
	if c.sum() == 0 {
		return c, errGarbled
	}
	return c, nil
}

// writeTally puts a new file in the place of the old one.
func writeTally(dir string, c count) error {
	page := make([]byte, tallySize)
	copy(page, tallyTitle+c.line+"\n")
	putSlot(page, 0, c.line, c)
	fresh := filepath.Join(dir, tallyName+".new")
	f, err := os.OpenFile(fresh, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(page)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(fresh, filepath.Join(dir, tallyName)); err != nil {
		return err
	}
	return syncDir(dir)
}
