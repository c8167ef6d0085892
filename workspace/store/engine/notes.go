// Notes beside the database, which outlive a killed process.

package engine

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
)

// notes are lines beside the database that say what units of this moment are about to store. Such a unit waits for its
// commit behind the batch that is being synced; a process that is killed in between would not know of it. A note is one
// write without a sync: it outlives the process, though not the machine, and closes that gap. The lines are read once, at
// the next start.
//
// Two files take turns, so that one can be emptied when all that it says is committed.
type notes struct {
	mu    sync.Mutex
	files [2]*os.File
	now   int   // the file that is written to
	size  int64 // of it
	busy  bool  // the other one is not yet emptied
}

const notesMax = 256 << 10

func (n *notes) open(dir string) error {
	for i := range n.files {
		f, err := os.OpenFile(filepath.Join(dir, "receipts."+strconv.Itoa(i)), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
		if err != nil {
			return fmt.Errorf("open receipts: %w", err)
		}
		n.files[i] = f
	}
	return nil
}

func (n *notes) close() error {
	var errs []error
	for _, f := range n.files {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	n.files = [2]*os.File{}
	return errors.Join(errs...)
}

// note writes lines down, and returns a file to be emptied after the commit of all that was noted so far, or nil. A note
// that cannot be written is only a gap that stays open.
func (n *notes) note(lines string) (full *os.File) {
	if lines == "" {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	wrote, _ := n.files[n.now].WriteString(lines)
	if n.size += int64(wrote); n.size < notesMax || n.busy {
		return nil
	}
	full = n.files[n.now]
	n.now, n.size, n.busy = 1-n.now, 0, true
	return full
}

// emptied forgets what a full file said: all of it is committed.
func (n *notes) emptied(f *os.File) {
	_ = f.Truncate(0) // else it is read once more, and says nothing new
	n.mu.Lock()
	defer n.mu.Unlock()
	n.busy = false
}

func (n *notes) each(do func(line string) error) error {
	for _, f := range n.files {
		if _, err := f.Seek(0, 0); err != nil {
			return fmt.Errorf("read receipts: %w", err)
		}
		for lines := bufio.NewScanner(f); lines.Scan(); {
			if err := do(lines.Text()); err != nil {
				return err
			}
		}
	}
	return nil
}

// forget empties both files after the boot's commit.
func (n *notes) forget() {
	for _, f := range n.files {
		_ = f.Truncate(0) // as in emptied
	}
}
