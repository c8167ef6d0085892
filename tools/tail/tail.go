// Package tail is the end of what a command writes, as it is watched while the command runs. It is never the record: what
// nobody takes in time is forgotten, and the command's result says what it wrote.
//
// Goroutines: one for each Watch, which ends with its stop.
package tail

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"parley/workspace"
	"parley/workspace/workers"
)

const (
	// Every is how often the end is shown at most.
	Every = 300 * time.Millisecond
	// Lines and Bytes of the end are shown.
	Lines = 40
	Bytes = 4 << 10

	// before is how much of what stands before the shown end is kept. No form of a secret is longer.
	before = 16 << 10
	window = 2 * before
)

// Tail keeps the end of an output. Nil takes what is written and keeps nothing.
type Tail struct {
	mu    sync.Mutex
	buf   []byte
	cut   bool // more stood before buf
	lines int64
	fresh chan struct{} // holds one when something came since it was shown last
}

// New makes an empty tail.
func New() *Tail { return &Tail{fresh: make(chan struct{}, 1)} }

// Write takes a piece and never waits for who watches. It never fails.
func (t *Tail) Write(p []byte) (int, error) {
	if t == nil || len(p) == 0 {
		return len(p), nil
	}
	t.mu.Lock()
	t.lines += int64(bytes.Count(p, []byte("\n")))
	t.buf = append(t.buf, p[max(0, len(p)-window):]...)
	t.cut = t.cut || len(p) > window
	if over := len(t.buf) - window; over > window {
		t.buf, t.cut = append(t.buf[:0], t.buf[over:]...), true
	}
	t.mu.Unlock()
	select {
	case t.fresh <- struct{}{}:
	default:
	}
	return len(p), nil
}

// end is a copy of what is kept, whether more stood before it, and how many lines were ended in all.
func (t *Tail) end() (raw string, cut bool, lines int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	over := max(0, len(t.buf)-window)
	return string(t.buf[over:]), t.cut || over > 0, t.lines
}

// View is the end of an output as people see it.
type View struct {
	Text  string // its last lines
	Lines int64  // that were ended so far, also those that stand above
}

// Free is how a text is freed of what may not be shown.
type Free struct {
	Text func(string) string // the one way in which the command's result is, too
	Hide *workspace.Redactor // knows the secrets
}

// Watch shows the end of the output whenever more has come, with a pause before each time, until stop is called or ctx ends. What
// comes within the pause, and while show does not return, is shown together. A command that is quicker shows nothing. show is
// called on a goroutine of its own, for which stop waits.
func (t *Tail) Watch(ctx context.Context, log *slog.Logger, free Free, show func(context.Context, View)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer workers.Guard(log, "output of a command")
		t.follow(ctx, free, show)
	}()
	return func() { cancel(); <-ended }
}

func (t *Tail) follow(ctx context.Context, free Free, show func(context.Context, View)) {
	pause := time.NewTimer(Every)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.fresh:
		}
		pause.Reset(Every)
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
		select {
		case <-t.fresh: // what came meanwhile is shown now
		default:
		}
		raw, cut, lines := t.end()
		show(ctx, View{free.last(raw, cut), lines})
	}
}

const notText = "(the output is not text)"

// last are the last lines of an output.
func (f Free) last(raw string, cut bool) string {
	if strings.IndexByte(raw, 0) >= 0 {
		return notText
	}
	whole := f.whole(raw)
	held := ""
	if len(whole) < len(raw) && utf8.FullRuneInString(raw[len(whole):]) {
		held = "…"
	}
	if cut {
		whole = f.behind(whole)
	}
	return ending(redrawn(f.Text(whole)) + held)
}

// whole leaves out the end of a text that may be the beginning of a secret, also of one that is broken into lines, and of a
// character that has come in part. last says by … that something is held back.
func (f Free) whole(raw string) string {
	for i := max(0, len(raw)-utf8.UTFMax); i < len(raw); i++ {
		if utf8.RuneStart(raw[i]) && !utf8.FullRuneInString(raw[i:]) {
			raw = raw[:i]
		}
	}
	keep := len(raw) - f.held(raw)
	tail := raw[max(0, len(raw)-before):]
	flat := strings.Map(func(r rune) rune {
		if breaks(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(tail, "?"))
	held := f.held(flat)
	if held < leastWrapped {
		return raw[:keep]
	}
	at := len(raw)
	for ; held > 0 && at > 0; at-- {
		if !breaks(rune(raw[at-1])) {
			held--
		}
	}
	return raw[:min(keep, at)]
}

// held is how long the end of a text is that may be the beginning of a secret, in bytes.
func (f Free) held(text string) int {
	s := f.Hide.Stream()
	s.Next(text)
	return len(s.End())
}

// leastWrapped is the shortest piece of a secret that is held back behind the end of a line, in bytes: most lines end in one
// or two characters that some form of some secret begins with.
const leastWrapped = 6

func breaks(r rune) bool { return r == '\n' || r == '\r' || r == ' ' || r == '\t' }

// behind is a text whose beginning was cut off, from a line on in which nothing is left of a secret that begins before it:
// so far from the cut that one which was cut has ended, and where both sides by themselves are freed as the whole is.
func (f Free) behind(raw string) string {
	all, tries := f.Text(raw), 0
	for at := min(before, len(raw)); at < len(raw) && tries < 8; at++ {
		if c := raw[at-1]; c != '\n' && c != '\r' {
			continue
		}
		if tries++; f.Text(raw[:at])+f.Text(raw[at:]) == all {
			return raw[at:]
		}
	}
	return ""
}

// redrawn keeps of each line what stands there after the last return of the carriage, as a terminal does. It has been made
// visible by now.
func redrawn(text string) string {
	const cr = "␍"
	if !strings.Contains(text, cr) {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		l = strings.TrimRight(l, cr)
		lines[i] = strings.TrimPrefix(l[max(0, strings.LastIndex(l, cr)):], cr)
	}
	return strings.Join(lines, "\n")
}

// ending is the last Lines of a text, at most Bytes of it.
func ending(text string) string {
	from := len(text)
	if from > 0 && text[from-1] == '\n' {
		from--
	}
	for range Lines {
		if from = strings.LastIndexByte(text[:from], '\n'); from < 0 {
			break
		}
	}
	if from++; len(text)-from > Bytes {
		from = len(text) - Bytes
		for from < len(text) && !utf8.RuneStart(text[from]) {
			from++
		}
		if next := strings.IndexByte(text[from:], '\n') + 1; next > 0 && from+next < len(text) {
			from += next
		}
	}
	return text[from:]
}
