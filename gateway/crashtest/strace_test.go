//go:build !race

package crashtest

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
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

// tracing is how the acknowledgements of a network are found in a trace of system calls.
type tracing struct {
	reader wireReader
	flags  string       // of strace; empty: -y
	mark   func(string) // told the trace's file before each message; those are then sent one at a time. nil: all at once
}

// acknowledged looks at the system calls: between the read that brought a message, from the network or over HTTP, and the
// write that acknowledges it, the log of the database is synced. A blind row proves that the look sees what it looks for.
func acknowledged(t *testing.T, r row) {
	t.Parallel()
	needStrace(t)
	w := newTown(t, r.net, earlySigns)
	if r.blind {
		w.prog = testProgram(t, w.config())
		w.prog.env = append(w.prog.env, childSync+"=OFF")
	}
	how, file := w.net.trace(), filepath.Join(w.dir, "trace")
	flags := how.flags
	if flags == "" {
		flags = "-y"
	}
	// The tracer is a grandchild: signals go to the program itself.
	w.prog.args = append([]string{"-f", "-D", flags, "-s", "200000", "-o", file, "-e", "trace=read,write,fsync,fdatasync", "--", w.prog.path}, w.prog.args...)
	w.prog.path = "strace"
	w.boot()
	for range r.few {
		if how.mark == nil {
			w.everybody()
		} else {
			w.oneByOne(func() { how.mark(file) })
		}
		w.answered(w.said())
	}
	const posts = 20
	w.post(posts)
	w.settle(r)
	messages, answers, missed := 0, 0, 0
	for _, a := range readTrace(t, file, how.reader) {
		if a.post {
			answers++
		} else {
			messages++
		}
		if a.synced {
			continue
		}
		if missed++; !r.blind {
			t.Errorf("%s was acknowledged and not synced since it came", a.what)
		}
	}
	t.Logf("acknowledged in the trace: %d messages, %d posts; %d without a sync", messages, answers, missed)
	if messages < w.said()*8/10 || answers != posts {
		t.Errorf("the trace shows %d of %d messages and %d of %d posts acknowledged", messages, w.said(), answers, posts)
	}
	if r.blind && missed < (messages+answers)*9/10 {
		t.Errorf("only %d of %d acknowledgements were found to lack a sync, with synchronous=OFF", missed, messages+answers)
	}
}

// oneByOne has each chat write when nothing waits for an acknowledgement, or for its answer.
func (w *town) oneByOne(before func()) {
	w.t.Helper()
	for chat := range w.net.chats {
		before()
		w.says(chat)
		w.see("acknowledgement", func() bool { return w.net.pending() == 0 })
		w.answered(w.said())
	}
}

// ack is one acknowledgement on the wire.
type ack struct {
	what   string
	post   bool // over HTTP
	synced bool // a sync of the log began after the message came, and ended before
}

// trace lines: "PID call(FD<path>, …) = N", or the same in two with "<unfinished ...>" and "<... call resumed>".
var (
	callLine    = regexp.MustCompile(`^(\d+) +(read|write|fsync|fdatasync)\((\d+)<(\S*)>`)
	resumedLine = regexp.MustCompile(`^(\d+) +<\.\.\. (read|write|fsync|fdatasync) resumed>`)
	resultOf    = regexp.MustCompile(`\) += (\d+)$`)
)

// reader follows a trace. Times are line numbers: strace writes a line when a call begins or ends.
type reader struct {
	line  int
	at    int64              // where the line begins
	open  map[string]pending // by thread
	syncs []span             // of the log, successful
	acks  []ack
	wires []wireReader
}

// wireReader sees what goes over connections.
type wireReader interface {
	wrote(r *reader, p pending)            // from here on the other side may have it
	got(r *reader, p pending, data string) // the data as strace quotes it
}

type pending struct {
	call, fd, path, data string
	began                int
}

type span struct{ began, ended int }

func readTrace(t *testing.T, file string, wire wireReader) []ack {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := &reader{open: map[string]pending{}, wires: []wireReader{wire, postReader{}}}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		r.line++
		r.read(lines.Text())
		r.at += int64(len(lines.Bytes())) + 1
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
		if !strings.HasPrefix(p.path, "socket:") && !strings.HasPrefix(p.path, "TCP") && !strings.HasSuffix(p.call, "sync") {
			delete(r.open, m[1])
			return
		}
		if p.call == "write" {
			for _, w := range r.wires {
				w.wrote(r, p)
			}
		}
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
		for _, w := range r.wires {
			w.got(r, p, quoted(data))
		}
	}
}

// acked notes an acknowledgement of what came at a line.
func (r *reader) acked(what string, post bool, came int) {
	r.acks = append(r.acks, ack{what, post, r.syncedSince(came)})
}

// postReader follows POST /v1/messages, by connection: where each was read.
type postReader map[string]int

func (posted postReader) got(r *reader, p pending, data string) {
	if _, ok := posted[p.fd]; ok || strings.Contains(data, "POST /v1/messages") {
		posted[p.fd] = r.line
	}
}

func (posted postReader) wrote(r *reader, p pending) {
	if at, ok := posted[p.fd]; ok && strings.Contains(p.data, `"HTTP/1.1 202`) {
		r.acked("post on "+p.fd, true, at)
		delete(posted, p.fd)
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
