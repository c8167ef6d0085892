//go:build !nowhatsapp

package gateway_test

import (
	"bufio"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// waCall is one line, or two, of a trace with -yy: sockets have their addresses.
var waCall = regexp.MustCompile(`^(\d+) +(?:(read|write|fsync|fdatasync)\(\d+<(\S*)>|<\.\.\. (read|write|fsync|fdatasync) resumed>)`)

// TestR01_ReceiptFollowsFsync looks at the system calls: between the read that brought a message and the next write on
// that line, which is its receipt, the log of the database is synced. What goes over the line is encrypted: one message is
// sent at a time, and its answer comes later.
func TestR01_ReceiptFollowsFsync(t *testing.T) {
	needStrace(t)
	w := newWAWorld(t)
	p := realProgram(t, w.config())
	if synced, all := w.receipts(p); synced < all {
		t.Errorf("%d of %d receipts were sent without a sync since the message came", all-synced, all)
	}
}

// TestR01_ReceiptCheckFailsWithoutFsync proves that the look above sees what it looks for.
func TestR01_ReceiptCheckFailsWithoutFsync(t *testing.T) {
	needStrace(t)
	w := newWAWorld(t)
	p := testProgram(t, w.config())
	p.env = append(p.env, childSync+"=OFF")
	if synced, all := w.receipts(p); synced > all/10 {
		t.Errorf("%d of %d receipts seem to follow a sync, with synchronous=OFF", synced, all)
	}
}

// receipts runs a daemon under strace, and counts the messages whose receipt followed a sync.
func (w *waWorld) receipts(p program) (synced, all int) {
	w.t.Helper()
	file := filepath.Join(w.dir, "trace")
	p = traced(p, file)
	for i, a := range p.args {
		if a == "-y" {
			p.args[i] = "-yy"
		}
	}
	w.net.NoReceipts() // our own: each would be acknowledged, which looks the same
	w.prog = p
	w.boot()
	w.until("the connection", 60*time.Second, func() bool { return w.net.Connected() == 1 })
	const messages = 10
	var marks []int64
	for i := range messages {
		info, err := os.Stat(file)
		if err != nil {
			w.t.Fatal(err)
		}
		marks = append(marks, info.Size())
		w.says(i%waPeople, "")
		w.until("the receipt", 30*time.Second, func() bool { return len(w.net.Waiting()) == 0 })
		w.until("the answer", 30*time.Second, func() bool { return len(w.answers()) == i+1 })
	}
	w.d.term()
	<-w.d.exited
	return readReceipts(w.t, file, strings.TrimPrefix(w.net.URL(), "http://"), marks)
}

// readReceipts looks, from each mark in the trace on, for the read on the line, the sync and the write.
func readReceipts(t *testing.T, file, server string, marks []int64) (synced, all int) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var at int64
	next, reading, safe := 0, false, false
	open := map[string]string{} // what a thread is in the middle of
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		text := lines.Text()
		began := at
		at += int64(len(text)) + 1
		if next < len(marks) && began >= marks[next] && !reading {
			next++
			reading, safe = true, false
			open["came"] = ""
		}
		m := waCall.FindStringSubmatch(text[:min(len(text), 400)])
		if m == nil || !reading {
			continue
		}
		call, path := m[2], m[3]
		if m[4] != "" {
			call, path, _ = strings.Cut(open[m[1]], " ")
		} else if strings.HasSuffix(text, "<unfinished ...>") {
			open[m[1]] = call + " " + path
		}
		onLine := strings.Contains(path, "->"+server+"]")
		ended := !strings.HasSuffix(text, "<unfinished ...>")
		switch {
		case call == "read" && onLine && ended && !strings.Contains(text, " = -1") && !strings.HasSuffix(text, "= 0"):
			open["came"] = "yes"
		case open["came"] == "":
		case (call == "fsync" || call == "fdatasync") && ended && m[4] == "" && strings.HasSuffix(path, "parley.db-wal"):
			safe = true
		case (call == "fsync" || call == "fdatasync") && m[4] != "" && strings.HasSuffix(path, "parley.db-wal"):
			safe = true
		case call == "write" && onLine && m[2] == "write":
			all++
			if safe {
				synced++
			}
			reading = false
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d receipts in the trace, %d after a sync", all, synced)
	if all < len(marks)*8/10 {
		t.Errorf("the trace shows %d of %d receipts", all, len(marks))
	}
	return synced, all
}
