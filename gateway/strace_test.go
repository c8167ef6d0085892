package gateway_test

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/channels/telegram/telegramtest"
)

// needStrace installs strace where that is possible, and tries whether it may trace here. Without it the test is
// skipped aloud, or fails where CI=true.
func needStrace(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("strace"); err != nil && os.Getuid() == 0 {
		if out, err := exec.Command("sh", "-c", "apt-get update && apt-get install -y --no-install-recommends strace").CombinedOutput(); err != nil {
			t.Logf("install strace: %v: %s", err, tail(string(out), 500))
		}
	}
	out, err := exec.Command("strace", "-f", "-D", "-o", os.DevNull, "true").CombinedOutput()
	if err == nil {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("strace does not work, and CI must not skip it: %v: %s", err, out)
	}
	t.Skipf("SKIPPED: strace does not work here, so it is not proven that an acknowledgement follows an fsync: %v: %s", err, out)
}

// traced is a program under strace. The tracer is a grandchild: signals go to the program itself.
func traced(p program, file string) program {
	p.args = append([]string{"-f", "-D", "-y", "-s", "200000", "-o", file, "-e", "trace=read,write,fsync,fdatasync", "--", p.path}, p.args...)
	p.path = "strace"
	return p
}

// TestR01_AckFollowsFsync looks at the system calls: between the read that brought a message and the write that
// acknowledges it, the log of the database is synced.
func TestR01_AckFollowsFsync(t *testing.T) {
	needStrace(t)
	w := newWorld(t, telegramtest.Options{})
	acks := w.trace(realProgram(t, w.config()))
	for _, a := range acks {
		if !a.synced {
			t.Errorf("%s was acknowledged and not synced since it came", a.what)
		}
	}
}

// TestR01_AckCheckFailsWithoutFsync proves that the look above sees what it looks for.
func TestR01_AckCheckFailsWithoutFsync(t *testing.T) {
	needStrace(t)
	w := newWorld(t, telegramtest.Options{})
	p := testProgram(t, w.config())
	p.env = append(p.env, childSync+"=OFF")
	missed := 0
	acks := w.trace(p)
	for _, a := range acks {
		if !a.synced {
			missed++
		}
	}
	t.Logf("%d of %d acknowledgements without a sync", missed, len(acks))
	if missed < len(acks)*9/10 {
		t.Errorf("only %d of %d acknowledgements were found to lack a sync, with synchronous=OFF", missed, len(acks))
	}
}

// trace runs a daemon under load, from the network and over HTTP, and returns its acknowledgements.
func (w *world) trace(p program) []ack {
	w.t.Helper()
	file := filepath.Join(w.dir, "trace")
	w.prog = traced(p, file)
	w.people()
	w.boot("", 0)
	w.progress(2 * messagesPerKill)
	const posts = 20
	w.post(posts)
	w.settle()
	acks := readTrace(w.t, file)
	updates, answers := 0, 0
	for _, a := range acks {
		if strings.HasPrefix(a.what, "update") {
			updates++
		} else {
			answers++
		}
	}
	w.t.Logf("acknowledged in the trace: %d updates, %d posts", updates, answers)
	if wrote := w.wrote(); updates < wrote*9/10 || answers != posts {
		w.t.Errorf("the trace shows %d of %d updates and %d of %d posts acknowledged", updates, wrote, answers, posts)
	}
	return acks
}

func (w *world) wrote() (n int) {
	for c := range w.sent {
		n += len(w.sent[c].updates)
	}
	return n
}

// post submits messages over HTTP, each on a connection of its own, and wants a 202 for each.
func (w *world) post(n int) {
	w.t.Helper()
	url := w.url()
	var posts sync.WaitGroup
	for i := range n {
		posts.Go(func() {
			c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
			body := strings.NewReader(fmt.Sprintf(`{"session": "s%d", "text": "hello"}`, i))
			r, err := http.NewRequestWithContext(w.ctx, http.MethodPost, url+"/v1/messages", body)
			if err != nil {
				w.t.Error(err)
				return
			}
			r.Header.Set("Authorization", "Bearer "+apiToken)
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Idempotency-Key", fmt.Sprintf("k%d", i))
			resp, err := c.Do(r)
			if err != nil {
				w.t.Error(err)
				return
			}
			defer resp.Body.Close()
			if resp.StatusCode != http.StatusAccepted {
				w.t.Errorf("POST /v1/messages: %s", resp.Status)
			}
		})
	}
	posts.Wait()
}

// ack is one acknowledgement on the wire.
type ack struct {
	what   string
	synced bool // a sync of the log began after the message came, and ended before
}

// trace lines: "PID call(FD<path>, …) = N", or the same in two with "<unfinished ...>" and "<... call resumed>".
var (
	callLine    = regexp.MustCompile(`^(\d+) +(read|write|fsync|fdatasync)\((\d+)<(\S*)>`)
	resumedLine = regexp.MustCompile(`^(\d+) +<\.\.\. (read|write|fsync|fdatasync) resumed>`)
	resultOf    = regexp.MustCompile(`\) += (\d+)$`)
	tracedID    = regexp.MustCompile(`update_id\\":(\d+),`)
	tracedAck   = regexp.MustCompile(`/getUpdates .*offset=(\d+)`)
)

// reader follows a trace. Times are line numbers: strace writes a line when a call begins or ends.
type reader struct {
	line    int
	open    map[string]pending // by thread
	came    map[int64]int      // when an update was read, the last byte of its answer included
	reading map[string][]int64 // updates of the answer that a connection is in the middle of
	tail    map[string]string  // the end of what was read last on a connection: an id may be cut
	posted  map[string]int     // when a POST was read, by connection
	syncs   []span             // of the log, successful
	highest int64              // update that was confirmed
	acks    []ack
	wire    wireReader // of another network; nil: none
}

// wireReader sees what goes over a network's connections.
type wireReader interface {
	wrote(r *reader, p pending)
	got(r *reader, p pending, data string)
}

type pending struct {
	call, fd, path, data string
	began                int
}

type span struct{ began, ended int }

func readTrace(t *testing.T, file string) []ack {
	t.Helper()
	return readWire(t, file, nil)
}

func readWire(t *testing.T, file string, wire wireReader) []ack {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := &reader{wire: wire, open: map[string]pending{}, came: map[int64]int{}, reading: map[string][]int64{}, tail: map[string]string{}, posted: map[string]int{}}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		r.line++
		r.read(lines.Text())
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return r.acks
}

// read follows a line. A line of what is written to a file can be long, and says nothing.
func (r *reader) read(text string) {
	head := text[:min(len(text), 400)]
	if m := callLine.FindStringSubmatch(head); m != nil {
		p := pending{call: m[2], fd: m[3], path: m[4], data: text[len(m[0]):], began: r.line}
		if !strings.HasPrefix(p.path, "socket:") && !strings.HasSuffix(p.call, "sync") {
			delete(r.open, m[1])
			return
		}
		r.begins(p)
		if strings.HasSuffix(text, "<unfinished ...>") {
			r.open[m[1]] = p
			return
		}
		r.ends(p, p.data)
		return
	}
	if m := resumedLine.FindStringSubmatch(head); m != nil {
		if p, ok := r.open[m[1]]; ok {
			delete(r.open, m[1])
			r.ends(p, p.data+text[len(m[0]):])
		}
	}
}

// begins sees what is on its way out: from here on the other side may have it.
func (r *reader) begins(p pending) {
	if p.call != "write" {
		return
	}
	if r.wire != nil {
		r.wire.wrote(r, p)
	}
	if m := tracedAck.FindStringSubmatch(p.data); m != nil {
		offset, _ := strconv.ParseInt(m[1], 10, 64) // digits
		for id := max(r.highest+1, offset-1000); id < offset; id++ {
			if at, ok := r.came[id]; ok {
				r.acks = append(r.acks, ack{"update " + strconv.FormatInt(id, 10), r.syncedSince(at)})
			}
		}
		r.highest = max(r.highest, offset-1)
	}
	if at, ok := r.posted[p.fd]; ok && strings.Contains(p.data, `"HTTP/1.1 202`) {
		r.acks = append(r.acks, ack{"post on " + p.fd, r.syncedSince(at)})
		delete(r.posted, p.fd)
	}
	delete(r.reading, p.fd)
	delete(r.tail, p.fd)
}

// ends sees what has come in, and what is safe.
func (r *reader) ends(p pending, data string) {
	args := max(0, len(data)-40)
	end := resultOf.FindStringSubmatchIndex(data[args:])
	if end == nil {
		return // an error: "= -1 EAGAIN (…)"
	}
	n, err := strconv.Atoi(data[args+end[2] : args+end[3]])
	data = data[:args+end[0]]
	switch {
	case err != nil:
	case p.call == "fsync" || p.call == "fdatasync":
		if strings.HasSuffix(p.path, "parley.db-wal") {
			r.syncs = append(r.syncs, span{p.began, r.line})
		}
	case p.call == "read" && n > 0:
		if r.wire != nil {
			r.wire.got(r, p, quoted(data))
		}
		data = r.tail[p.fd] + quoted(data)
		r.tail[p.fd] = data[max(0, len(data)-40):]
		for _, m := range tracedID.FindAllStringSubmatch(data, -1) {
			id, _ := strconv.ParseInt(m[1], 10, 64) // digits
			r.reading[p.fd] = append(r.reading[p.fd], id)
		}
		for _, id := range r.reading[p.fd] {
			r.came[id] = r.line
		}
		if _, ok := r.posted[p.fd]; ok || strings.Contains(data, "POST /v1/messages") {
			r.posted[p.fd] = r.line
		}
	}
}

// quoted is the string of a call's arguments, still escaped.
func quoted(args string) string {
	from, to := strings.IndexByte(args, '"'), strings.LastIndexByte(args, '"')
	if from < 0 || to <= from {
		return ""
	}
	return args[from+1 : to]
}

func (r *reader) syncedSince(at int) bool {
	for i := len(r.syncs) - 1; i >= 0 && r.syncs[i].ended > at; i-- {
		if r.syncs[i].began > at {
			return true
		}
	}
	return false
}
