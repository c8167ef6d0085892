// How a loss is noticed: the database held against what stands beside it.

package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"parley/workspace"
	"parley/workspace/store/engine"
)

// A database that is missing, older than it was, or cut short looks to SQLite like any other, and so does a log of it that
// ends too early: what was acknowledged would be gone without a word. So a start first holds the database against what
// stands beside it, before anything is written: the count of commits (engine.Count), the audit log's head, and, where the
// database has never been started on, whatever only a gateway leaves behind.

// Loss is what a database lacks, as far as that can be told. It is an error: ErrLost.
type Loss struct {
	Why       []string // what proves it, a sentence each
	Gone      bool     // there is no database, or one that no gateway has ever started on
	Inputs    int64    // messages that are missing, at most; 0: not known, or none
	Answers   int64    // answers and notices, at most
	Commits   int64    // that made neither
	AuditRows int64    // rows of the audit log that are missing; 0: not known, or none
	Head      workspace.AuditHead
}

// WaysOn are what an operator can do about a Loss.
const WaysOn = "Put a backup into an empty data directory: parley restore FILE. " +
	"Or go on with what is left: parley gateway --accept-loss. " +
	"Or begin from nothing, with all that is here moved aside: parley gateway --fresh."

func (l *Loss) Error() string { return l.What() + ". " + WaysOn }

func (l *Loss) Unwrap() error { return ErrLost }

// What is the loss without what can be done about it.
func (l *Loss) What() string {
	var counts []string
	if l.Inputs+l.Answers > 0 {
		counts = append(counts, fmt.Sprintf("up to %d messages and %d answers", l.Inputs, l.Answers))
	}
	if l.Commits > 0 {
		counts = append(counts, fmt.Sprintf("%d other commits", l.Commits))
	}
	if l.AuditRows > 0 {
		counts = append(counts, fmt.Sprintf("%d rows of the audit log", l.AuditRows))
	}
	what := ErrLost.Error()
	if l.Gone {
		what = "the database is missing, or empty"
	}
	if len(counts) > 0 {
		what += ": " + strings.Join(counts, ", ")
	}
	return what + " (" + strings.Join(l.Why, "; ") + ")"
}

// beside is what stands beside a database.
type beside struct {
	count    engine.Count
	countErr error // os.ErrNotExist: there is no file; engine.ErrGarbled
	head     workspace.AuditHead
	headErr  error
	relics   []string // what a gateway must have left here
}

func lookBeside(dir string) (b beside, err error) {
	b.count, b.countErr = engine.ReadCount(dir)
	b.head, b.headErr = headOf(dir)
	for _, e := range []error{b.countErr, b.headErr} {
		if e != nil && !errors.Is(e, fs.ErrNotExist) && !errors.Is(e, engine.ErrGarbled) {
			return b, fmt.Errorf("look at what stands beside the database: %w", e)
		}
	}
	b.relics = relics(dir)
	return b, nil
}

// relics are things that no data directory has in which a gateway has not kept something. What people may prepare before
// the first start is not one: a configuration, prices, a linked device, an agent's files, a token; a token beside an agent
// with all that a start makes for it is. A log without its database is one; beside a database it may be that of a first
// start that was cut short.
func relics(dir string) (list []string) {
	least := int64(33) // more than the head of a log
	if info, err := os.Stat(filepath.Join(dir, engine.DatabaseFile)); err == nil && info.Size() > 0 {
		least = math.MaxInt64
	}
	holds := func(pattern string, least int64) bool {
		found, _ := filepath.Glob(filepath.Join(dir, pattern)) // the pattern is well-formed
		for _, name := range found {
			if info, err := os.Stat(name); err == nil && (info.IsDir() || info.Size() >= least) {
				return true
			}
		}
		return false
	}
	for _, r := range []struct {
		pattern string
		least   int64
		says    string
	}{
		{engine.DatabaseFile + "-wal", least, "a log of commits of the database is here"},
		{"blobs/??/*", 0, "kept files are here"},
		{"receipts.?", 1, "receipts of messages are here"},
		{"ballast", 1, "the ballast of a gateway is here"},
	} {
		if holds(r.pattern, r.least) {
			list = append(list, r.says)
		}
	}
	if holds("token", 1) && holds("agents/*/work", 0) && holds("agents/*/skills", 0) && holds("agents/*/HEARTBEAT.md", 0) {
		list = append(list, "a gateway's token and agents are here")
	}
	return list
}

// held is what a database says of itself.
type held struct {
	started bool         // a gateway has counted a boot in it
	counted bool         // it counts its commits
	count   engine.Count // of them
	audit   int64        // newest row of the chain that the head names; 0: it has none
	hash    string       // of the row that the head names; empty: it has none
	rows    bool         // it has an audit log
}

// examine asks a database that is not written to.
func examine(ctx context.Context, r *engine.Reader, head workspace.AuditHead) (h held, err error) {
	if r.Empty() {
		return h, nil
	}
	there, err := r.Tables(ctx)
	if err != nil {
		return h, err
	}
	if !there["settings"] || !there["inputs"] || !there["outbound"] || !there["audit"] {
		return h, nil
	}
	ask := func(q string, args []any, dest ...any) bool {
		if err == nil {
			err = r.Row(ctx, q, args, dest...)
			if errors.Is(err, workspace.ErrNotFound) {
				err = nil
				return false
			}
		}
		return err == nil
	}
	var epoch string
	h.started = ask(`SELECT value FROM settings WHERE name = 'epoch'`, nil, &epoch)
	var seq, answer int64
	if there["commits"] {
		ask(`SELECT line, n, seq, answer FROM commits WHERE id = 1`, nil, &h.count.Line, &h.count.N, &h.count.Seq, &h.count.Answer)
		h.counted = h.count.Line != ""
	}
	ask(`SELECT COALESCE(MAX(seq), 0) FROM inputs`, nil, &seq)
	ask(`SELECT COALESCE(MAX(n), 0) FROM outbound`, nil, &answer)
	h.count.Seq, h.count.Answer = max(h.count.Seq, seq), max(h.count.Answer, answer)
	ask(`SELECT COALESCE(MAX(n), 0) FROM audit WHERE chain = ?`, []any{head.Chain}, &h.audit)
	ask(`SELECT hash FROM audit WHERE chain = ? AND n = ?`, []any{head.Chain, head.N}, &h.hash)
	var n int64
	h.rows = ask(`SELECT n FROM audit LIMIT 1`, nil, &n)
	return h, err
}

// lost holds a database against what stands beside it; nil: nothing proves that anything is missing.
func (b beside) lost(h held) *Loss {
	l := &Loss{Head: b.head, Gone: !h.started}
	say := func(format string, args ...any) { l.Why = append(l.Why, fmt.Sprintf(format, args...)) }
	if c := b.count; b.countErr == nil {
		switch {
		case !h.started, !h.counted:
			l.lack(c, h.count)
			say("the file %s counts more than the database has", engine.CountFile)
		case c.Line != h.count.Line:
			say("the file %s counts the commits of another database", engine.CountFile)
		case h.count.Behind(c):
			l.lack(c, h.count)
			say("the file %s counts more than the database has", engine.CountFile)
		}
	}
	if head := b.head; head.N > 0 {
		switch {
		case h.audit < head.N:
			l.AuditRows = head.N - h.audit
			say("%s names row %d of the audit log %s, which the database has up to row %d", headName, head.N, head.Chain, h.audit)
		case h.hash != head.Hash:
			say("row %d of the audit log is not the one that %s names", head.N, headName)
		}
	}
	if !h.started {
		l.Why = append(l.Why, b.relics...)
	}
	if len(l.Why) == 0 {
		return nil
	}
	return l
}

func (l *Loss) lack(c, has engine.Count) {
	l.Commits, l.Inputs, l.Answers = max(0, c.N-has.N), max(0, c.Seq-has.Seq), max(0, c.Answer-has.Answer)
}

// blind says which witnesses of a database are missing that should stand beside it.
func (b beside) blind(h held) (list []string) {
	tell := func(name string, err error) {
		if errors.Is(err, fs.ErrNotExist) {
			err = errors.New("it is missing")
		}
		list = append(list, fmt.Sprintf("%s: %v", name, err))
	}
	if b.countErr != nil && h.counted && h.count.N > 1 { // after the first commit a start may have ended before it was made
		tell(engine.CountFile, b.countErr)
	}
	if b.headErr != nil && h.rows {
		tell(headName, b.headErr)
	}
	return list
}
