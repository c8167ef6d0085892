package markup

import (
	"bytes"
	"sort"
	"strings"

	"parley/channels"
)

// writer writes one part.
type writer struct {
	look
	doc    *Doc
	span   Span
	since  int // items that began before this byte are not open (any more) in this part
	b      []byte
	max    int      // bytes after which writing may stop; 0: never
	over   bool     // … and there were more
	begin  int      // where the block's text begins in b
	blanks []byte   // of a block, held back until text follows
	open   []*mark  // inline looks, outermost first
	want   []*mark  // … of the text that comes next
	spaces int      // blanks held back: looks must not begin or end with one
	brk    breaking // a line break held back
	bol    bool     // a line begins: its prefix is to be written
	text   bool     // the line has text
	digits bool     // … and nothing but digits so far
	hidden int      // characters in a row that show nothing
	single bool     // the block is one line: a heading
	cell   bool     // the text stands in a table's cell
	stop   byte     // the last byte of text if it was written as it is; 0: it was escaped or is markup
	next   string   // prefix of the next line
	rest   string   // prefix of the lines after it
	quote  *frame   // open <blockquote>
	outer  []*frame // containers of the last leaf
	last   *leaf
}

// write renders a span. With limit > 0 it gives up when there are more bytes than that, and says no.
func (d *Doc) write(s Span, dialect channels.Dialect, limit int) (b []byte, ok bool) {
	w := &writer{look: lookOf(dialect), doc: d, span: s, since: s.From, max: limit}
	w.b = make([]byte, 0, min(s.To-s.From, 4096)+64)
	for i := d.leafAt(s.From); i < len(d.leaves) && d.leaves[i].from < s.To; i++ {
		l := &d.leaves[i]
		runs := d.clip(l, s)
		if !l.shows(runs, s) {
			continue
		}
		w.leaf(i, l, runs)
		if w.full() {
			return nil, false
		}
	}
	w.closeQuote()
	return w.quiet(bytes.TrimRight(w.b, " \n")), true
}

// full says whether there is too much already. It stays so, even if blanks are trimmed afterwards.
func (w *writer) full() bool {
	w.over = w.over || w.max > 0 && len(w.b) > w.max
	return w.over
}

// leafAt is the leaf that holds the byte at.
func (d *Doc) leafAt(at int) int {
	i := sort.Search(len(d.leaves), func(i int) bool { return d.leaves[i].from > at })
	return max(i-1, 0)
}

// holds says whether a position is in s; the last span also has what stands at the very end.
func (d *Doc) holds(s Span, at int) bool {
	return at >= s.From && (at < s.To || at == s.To && s.To >= len(d.md))
}

// clip is the part of a leaf's runs that is in s.
func (d *Doc) clip(l *leaf, s Span) []run {
	first := runAt(l.runs, s.From)
	end := first
	for end < len(l.runs) && (l.runs[end].from < s.To || d.holds(s, l.runs[end].from)) {
		end++
	}
	if first == end {
		return nil
	}
	runs := l.runs[first:end]
	head, tail := &runs[0], &runs[len(runs)-1]
	if (head.whole || head.from >= s.From) && (tail.whole || tail.to <= s.To) {
		return runs
	}
	runs = append([]run(nil), runs...)
	if tail = &runs[len(runs)-1]; !tail.whole && tail.to > s.To {
		tail.text, tail.to = tail.text[:s.To-tail.from], s.To
	}
	if head = &runs[0]; !head.whole && head.from < s.From {
		head.text, head.from = head.text[s.From-head.from:], s.From
	}
	return runs
}

// runAt is the first run with something at or behind a position.
func runAt(runs []run, at int) int {
	i := sort.Search(len(runs), func(i int) bool { return runs[i].from >= at })
	if i > 0 && !runs[i-1].whole && runs[i-1].to > at {
		i--
	}
	return i
}

// shows says whether these runs of a leaf show anything.
func (l *leaf) shows(runs []run, s Span) bool {
	if l.empty && l.from >= s.From {
		return true
	}
	for i := range runs {
		if visible(runs[i].text) {
			return true
		}
	}
	return false
}

// leaf writes one block.
func (w *writer) leaf(i int, l *leaf, runs []run) {
	w.separate(l)
	w.prefixes(i, l)
	w.line()
	switch {
	case l.kind == code:
		w.block(l, func() { w.lines(runs) })
	case l.kind == table && !w.tables:
		w.block(l, func() { w.grid(l, runs) })
	case l.kind == table:
		w.rows(l, runs)
	case l.kind == rule:
		w.prefix()
		w.b = append(w.b, w.rule...)
	default:
		w.inline(l, runs)
	}
	w.last, w.outer = l, l.frames
}

// separate ends the last block.
func (w *writer) separate(l *leaf) {
	q := l.quote()
	same := w.family == html && q != nil && q == w.quote
	if !same {
		w.closeQuote()
	}
	if w.last != nil {
		w.b = append(bytes.TrimRight(w.b, " \n"), '\n')
		if w.blankBefore(l) {
			w.b = append(w.b, strings.TrimRight(w.common(l), " ")...)
			w.b = append(w.b, '\n')
		}
	}
	if w.family == html && q != nil && !same {
		w.b = append(w.b, "<blockquote>"...)
		w.quote = q
	}
}

// blankBefore says whether a blank line stands between the last block and l: where the source has one, and
// where the two would run together without.
func (w *writer) blankBefore(l *leaf) bool {
	switch {
	case l.gap || l.kind == heading || l.kind == rule:
		return true
	case w.family == html || w.family == bare:
		return false
	case w.last.kind == table && w.tables, l.kind == table && w.last.kind != code:
		return true
	case w.last.kind == paragraph && w.shifted(w.last) && w.begins(l):
		return true // "2." cannot interrupt a paragraph that is not seen to be in a list
	case l.kind == paragraph && w.last.kind != heading && w.last.kind != code:
		return !w.begins(l)
	default:
		return false
	}
}

// begins says whether a list item or quote begins with l in this part.
func (w *writer) begins(l *leaf) bool {
	for _, f := range l.frames {
		if f.from >= w.span.From && f.from >= l.from {
			return true
		}
	}
	return false
}

// shifted says whether l's indentation is left out.
func (w *writer) shifted(l *leaf) bool {
	for _, f := range l.frames {
		if w.shift && !f.quote && f.from < w.since {
			return true
		}
	}
	return false
}

func (w *writer) closeQuote() {
	if w.quote != nil {
		w.b = append(bytes.TrimRight(w.b, " \n"), "</blockquote>"...)
		w.quote = nil
	}
}

// quote is the outermost quote around l.
func (l *leaf) quote() *frame {
	for _, f := range l.frames {
		if f.quote {
			return f
		}
	}
	return nil
}

// common is the prefix of a blank line between the last block and l.
func (w *writer) common(l *leaf) string {
	var s strings.Builder
	for i, f := range l.frames {
		if i >= len(w.outer) || w.outer[i] != f {
			break
		}
		if f.quote {
			s.WriteString(w.quoteMark(l, f))
		} else {
			s.WriteString(w.indent(f))
		}
	}
	return s.String()
}

// prefixes prepares what l's lines begin with.
func (w *writer) prefixes(i int, l *leaf) {
	if !w.nested && (l.kind == code || l.kind == table) {
		w.unnested(i, l)
		return
	}
	var next, rest strings.Builder
	for _, f := range l.frames {
		if f.quote {
			next.WriteString(w.quoteMark(l, f))
			rest.WriteString(w.quoteMark(l, f))
			continue
		}
		rest.WriteString(w.indent(f))
		if f.leaf == i && l.from >= w.span.From {
			next.WriteString(w.marker(f))
		} else {
			next.WriteString(w.indent(f))
		}
	}
	w.next, w.rest = next.String(), rest.String()
}

// unnested begins a block that may not stand inside an item. An item that begins with it gets a line of its
// own for its marker, and the fence ends the list.
func (w *writer) unnested(i int, l *leaf) {
	var marks, quotes strings.Builder
	marked := false
	for _, f := range l.frames {
		switch {
		case f.quote:
			marks.WriteString(w.quoteMark(l, f))
			quotes.WriteString(w.quoteMark(l, f))
		case f.leaf == i && l.from >= w.span.From && !marked:
			marks.WriteString(w.marker(f)) // one only: several alone would be a rule
			marked = true
		}
	}
	if marked {
		w.b = append(w.b, strings.TrimRight(marks.String(), " ")...)
		w.b = append(w.b, '\n')
	}
	w.next, w.rest = quotes.String(), quotes.String()
	if len(l.runs) > 0 {
		w.since = l.runs[0].from + 1
	}
}

func (w *writer) quoteMark(l *leaf, f *frame) string {
	switch {
	case w.family != html:
		return "> "
	case f == l.quote():
		return ""
	case l.kind == code || l.kind == table:
		return ""
	default:
		return "&gt; "
	}
}

// indent stands for an item's marker on the lines after it.
func (w *writer) indent(f *frame) string {
	if w.shift && f.from < w.since {
		return ""
	}
	n := len(f.number)
	if n == 0 {
		n = 1
	}
	return strings.Repeat(" ", n+1)
}

func (w *writer) marker(f *frame) string {
	m := w.bullet
	if f.number != "" {
		m = f.number + " "
	}
	switch {
	case f.task == 0:
		return m
	case w.box:
		return m + "[" + string(f.task) + "] "
	case w.boxOnly && f.number == "":
		m = ""
	}
	if f.task == 'x' {
		return m + "☑ "
	}
	return m + "☐ "
}

// prefix begins a line if one is to begin.
func (w *writer) prefix() {
	if w.bol {
		w.b = append(w.b, w.next...)
		w.next, w.bol = w.rest, false
	}
}

func (w *writer) newline() {
	w.prefix()
	w.b = append(bytes.TrimRight(w.b, " "), '\n')
	w.line()
}

// line resets what is known of the line.
func (w *writer) line() {
	w.bol, w.text, w.digits, w.spaces, w.stop, w.brk = true, false, true, 0, 0, 0
}
