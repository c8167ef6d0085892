// Package logbook keeps the newest lines of the daemon's own log in memory, for the page that shows them. It stands
// behind what takes secrets out of the log, so that it never holds one, and it is not a record: the log that the operator
// keeps is elsewhere, and a restart begins an empty book.
//
// It starts no goroutine.
package logbook

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// How much is kept: whichever is reached first.
const (
	maxLines = 2000
	maxBytes = 1 << 20
)

// Line is one line of the log.
type Line struct {
	N       int64 // from 1 since the start
	Time    time.Time
	Level   slog.Level
	Message string
	Attrs   []Attr
}

// Attr is a fact of a line; Key holds its groups, joined by dots.
type Attr struct{ Key, Value string }

// size is about what a line takes, in bytes.
func (l Line) size() int {
	n := 64 + len(l.Message)
	for _, a := range l.Attrs {
		n += 32 + len(a.Key) + len(a.Value)
	}
	return n
}

// Book is safe for concurrent use. Its zero value is empty and ready.
type Book struct {
	mu    sync.Mutex
	lines []Line
	bytes int
	last  int64
	grew  chan struct{} // closed by the next line; nil: nobody waits
}

// Handler hands on to next and keeps what next takes.
func (b *Book) Handler(next slog.Handler) slog.Handler { return &handler{Handler: next, book: b} }

func (b *Book) add(l Line) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last++
	l.N = b.last
	b.lines, b.bytes = append(b.lines, l), b.bytes+l.size()
	drop := 0
	for len(b.lines)-drop > maxLines || b.bytes > maxBytes && len(b.lines)-drop > 1 {
		b.bytes -= b.lines[drop].size()
		drop++
	}
	clear(b.lines[:drop]) // their texts are free before the slice is
	b.lines = b.lines[drop:]
	if b.grew != nil {
		close(b.grew)
		b.grew = nil
	}
}

// Query says which lines are wanted.
type Query struct {
	After int64      // those behind this number; a number that this start has not reached begins again
	Least slog.Level // and louder
	Limit int
}

// Read lists lines in order. Without After they are the newest. upto is the number of the last line that was looked at.
func (b *Book) Read(q Query) (list []Line, upto int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if q.After > b.last {
		q.After = 0
	}
	if q.After == 0 {
		for i := len(b.lines) - 1; i >= 0 && len(list) < q.Limit; i-- {
			if b.lines[i].Level >= q.Least {
				list = append(list, b.lines[i])
			}
		}
		slices.Reverse(list)
		return list, b.last
	}
	upto = q.After
	for _, l := range b.lines {
		if l.N <= q.After {
			continue
		}
		if len(list) == q.Limit {
			return list, upto
		}
		if upto = l.N; l.Level >= q.Least {
			list = append(list, l)
		}
	}
	return list, upto
}

// Grew is closed by the next line. Ask for it before Read, so that nothing falls between them.
func (b *Book) Grew() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.grew == nil {
		b.grew = make(chan struct{})
	}
	return b.grew
}

type handler struct {
	slog.Handler
	book  *Book
	attrs []Attr
	group string // with the dot
}

func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	l := Line{Time: r.Time, Level: r.Level, Message: r.Message, Attrs: slices.Clone(h.attrs)}
	r.Attrs(func(a slog.Attr) bool {
		l.Attrs = flat(l.Attrs, h.group, a)
		return true
	})
	h.book.add(l)
	return h.Handler.Handle(ctx, r)
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := *h
	next.Handler, next.attrs = h.Handler.WithAttrs(attrs), slices.Clone(h.attrs)
	for _, a := range attrs {
		next.attrs = flat(next.attrs, h.group, a)
	}
	return &next
}

func (h *handler) WithGroup(name string) slog.Handler {
	next := *h
	next.Handler = h.Handler.WithGroup(name)
	if name != "" {
		next.group = h.group + name + "."
	}
	return &next
}

// flat adds an attribute, or those of a group.
func flat(list []Attr, prefix string, a slog.Attr) []Attr {
	v := a.Value.Resolve()
	if v.Kind() != slog.KindGroup {
		if a.Equal(slog.Attr{}) {
			return list
		}
		return append(list, Attr{prefix + a.Key, v.String()})
	}
	if a.Key != "" {
		prefix += a.Key + "."
	}
	for _, one := range v.Group() {
		list = flat(list, prefix, one)
	}
	return list
}
