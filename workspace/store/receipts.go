package store

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"parley/workspace"
)

// receipts is a note beside the database of what the network said just now. A receipt waits for its commit behind
// the batch that is being synced; a process that is killed in between would have to send the part once more. The
// note is one write without a sync: it outlives the process, though not the machine, and closes that gap. It is
// read once, at the next start, and only about parts that are still `sending`.
//
// Two files take turns, so that one can be emptied when all that it says is committed.
type receipts struct {
	mu    sync.Mutex
	files [2]*os.File
	now   int   // the file that is written to
	size  int64 // of it
	busy  bool  // the other one is not yet emptied
}

const receiptsMax = 256 << 10

func (r *receipts) open(dir string) error {
	for i := range r.files {
		f, err := os.OpenFile(filepath.Join(dir, "receipts."+strconv.Itoa(i)), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
		if err != nil {
			return fmt.Errorf("open receipts: %w", err)
		}
		r.files[i] = f
	}
	return nil
}

func (r *receipts) close() error {
	var errs []error
	for _, f := range r.files {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}

// note writes down what moves say of sent parts, and returns a file to be emptied after the commit of all receipts so
// far, or nil. A note that cannot be written is only a gap that stays open.
func (r *receipts) note(moves []Move) (full *os.File) {
	var b strings.Builder
	for _, m := range moves {
		if (m.To == workspace.PartSent || m.To == workspace.PartLive) && m.Remote != "" {
			fmt.Fprintf(&b, "%s %d %s %q\n", m.Part.OutboundID, m.Part.N, m.To, string(m.Remote))
		}
	}
	if b.Len() == 0 {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	n, _ := r.files[r.now].WriteString(b.String())
	if r.size += int64(n); r.size < receiptsMax || r.busy {
		return nil
	}
	full = r.files[r.now]
	r.now, r.size, r.busy = 1-r.now, 0, true
	return full
}

// emptied forgets what a full file said: all of it is committed.
func (r *receipts) emptied(f *os.File) {
	_ = f.Truncate(0) // else it is read once more, and says nothing new
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busy = false
}

// replay applies what the files say to parts that an earlier process was sending, in the boot's commit.
func (r *receipts) replay(ctx context.Context, d dialect, tx *sql.Tx, epoch int64) error {
	q := d.bind(`UPDATE parts SET state = ?, remote_id = ?, remote_sum = ?, error = '' WHERE outbound_id = ? AND n = ? AND state = 'sending' AND epoch < ?`)
	for _, f := range r.files {
		if _, err := f.Seek(0, 0); err != nil {
			return fmt.Errorf("read receipts: %w", err)
		}
		for lines := bufio.NewScanner(f); lines.Scan(); {
			var id, state, remote string
			var n int
			if _, err := fmt.Sscanf(lines.Text(), "%s %d %s %q", &id, &n, &state, &remote); err != nil {
				continue // the last line of a process that was killed while it wrote
			}
			if state != string(workspace.PartSent) && state != string(workspace.PartLive) {
				continue
			}
			if _, err := tx.ExecContext(ctx, q, state, remote, sum(remote), id, n, epoch); err != nil {
				return fmt.Errorf("apply a receipt: %w", err)
			}
		}
	}
	return nil
}

// forget empties both files after the boot's commit.
func (r *receipts) forget() {
	for _, f := range r.files {
		_ = f.Truncate(0) // as in emptied
	}
}
