package markup

import (
	"sort"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"

	"parley/channels"
)

// maxHTML is how many bytes of HTML a message may have: the Bot API refuses more than 32 KiB ("Text is too
// long") before it parses, whatever is seen of it.
const maxHTML = 32_000

// level is how fine a cut is.
type level int

const (
	blocks level = iota
	leaves
	lines
	sentences
	words
	graphemes
	runes // only within a grapheme that is longer than a message
	levels
)

// CutFrom is CutFrom for a parsed answer.
func (d *Doc) CutFrom(from int, t channels.Traits) []Span {
	c := cutter{Doc: d, t: t}
	var spans []Span
	for from < len(d.md) && c.shown(Span{from, len(d.md)}) {
		to := c.next(from)
		spans = append(spans, Span{from, to})
		from = to
	}
	if len(spans) > 0 {
		spans[len(spans)-1].To = len(d.md)
	}
	return spans
}

// cutter looks for cuts within one network's limits.
type cutter struct {
	*Doc
	t channels.Traits
}

// shown says whether a span shows anything.
func (c *cutter) shown(s Span) bool {
	for i := c.leafAt(s.From); i < len(c.leaves) && c.leaves[i].from < s.To; i++ {
		if l := &c.leaves[i]; l.shows(c.clip(l, s), s) {
			return true
		}
	}
	return false
}

// fits measures a span. A part must fit in its dialect and as plain text, since a network that refuses the
// one is sent the other.
func (c *cutter) fits(s Span) (units int, ok bool) {
	limit := 4 * c.t.MaxUnits // no unit is longer than four bytes
	plain, ok := c.write(s, channels.Plain, limit)
	if !ok {
		return 0, false
	}
	units = countUnits(plain, c.t.Unit)
	if c.t.Dialect == channels.Telegram {
		limit = maxHTML
	}
	if c.t.Dialect != channels.Plain && units <= c.t.MaxUnits {
		text, ok := c.write(s, c.t.Dialect, limit)
		if !ok || len(text) > limit {
			return 0, false
		}
		if c.t.Dialect == channels.Telegram {
			units = max(units, seenUnits(text, c.t.Unit))
		} else {
			units = max(units, countUnits(text, c.t.Unit))
		}
	}
	return units, units <= c.t.MaxUnits
}

// next is the end of the part that begins at from.
func (c *cutter) next(from int) int {
	lo, hi := from, len(c.md)
	if c.t.MaxUnits <= 0 {
		return hi
	}
	if _, ok := c.fits(Span{from, hi}); ok {
		return hi
	}
	beyond := c.beyond(from)
	for at := blocks; at < levels; at++ {
		marks := c.marks(at, lo, min(hi, beyond))
		k := sort.Search(len(marks), func(i int) bool {
			_, ok := c.fits(Span{from, marks[i]})
			return !ok
		})
		if k < len(marks) {
			hi = marks[k]
		}
		if k > 0 {
			lo = marks[k-1]
		}
		if lo > from && c.shown(Span{from, lo}) && c.good(from, lo, hi) {
			return lo
		}
	}
	if lo > from && c.shown(Span{from, lo}) {
		return lo
	}
	return c.least(from, hi)
}

// beyond is a place that is surely behind the end of the part, so that not all the rest is searched.
func (c *cutter) beyond(from int) int {
	for n := 2 * c.t.MaxUnits; from+n < len(c.md); n *= 2 {
		if _, ok := c.fits(Span{from, from + n}); !ok {
			return from + n
		}
	}
	return len(c.md)
}

// good says whether a part may end at lo: when what follows up to hi need not be cut, or when the part is
// half full.
func (c *cutter) good(from, lo, hi int) bool {
	if _, ok := c.fits(Span{lo, hi}); ok {
		return true
	}
	units, _ := c.fits(Span{from, lo})
	return units >= c.t.MaxUnits/2
}

// least is the smallest part there is: one character, which is too long for this limit.
func (c *cutter) least(from, hi int) int {
	for _, at := range c.marks(runes, from, len(c.md)) {
		if c.shown(Span{from, at}) {
			return at
		}
	}
	return max(hi, from+1)
}

// marks are the places between lo and hi where a cut of this level may fall, in order. There are never more
// than could fit one part.
func (c *cutter) marks(at level, lo, hi int) []int {
	m := &marker{look: lookOf(c.t.Dialect), level: at, lo: lo, hi: hi, most: c.t.MaxUnits + 1}
	for i := c.leafAt(lo); i < len(c.leaves) && c.leaves[i].from < hi && len(m.found) < m.most; i++ {
		l := &c.leaves[i]
		stranded := i > 0 && c.leaves[i-1].kind == heading // a heading stays with what it heads
		if at <= leaves && !stranded && (l.top || at == leaves) || at >= sentences {
			m.add(l.from)
		}
		if at >= lines {
			m.leaf(l)
		}
	}
	return m.found
}

// marker collects cuts.
type marker struct {
	look
	level  level
	lo, hi int
	most   int
	found  []int
	ended  bool // the last visible characters end a sentence
	blank  bool // the last character was a blank
}

func (m *marker) add(at int) {
	if at > m.lo && at < m.hi && (len(m.found) == 0 || at > m.found[len(m.found)-1]) {
		m.found = append(m.found, at)
	}
}

func (m *marker) leaf(l *leaf) {
	fixed := l.kind == code || l.kind == table
	if m.level == sentences && fixed {
		return
	}
	m.ended, m.blank = false, false
	for i := runAt(l.runs, m.lo); i < len(l.runs) && l.runs[i].from < m.hi && len(m.found) < m.most; i++ {
		r := &l.runs[i]
		switch r.kind {
		case breakRun:
			m.add(r.to)
		case rowRun:
			if i+1 < len(l.runs) {
				m.add(l.runs[i+1].from)
			}
		case textRun:
			m.run(r)
		}
	}
}

func (m *marker) run(r *run) {
	text, at := r.text, r.from
	if !r.whole && at < m.lo {
		text, at = text[m.lo-at:], m.lo
	}
	switch m.level {
	case lines:
		for i := 0; i < len(text) && !r.whole; i++ {
			if text[i] == '\n' {
				m.add(at + i + 1)
			}
		}
	case sentences, words:
		m.gaps(text, at, r)
	case graphemes, runes:
		m.characters(text, at, r)
	}
}

// gaps finds the begins of sentences or words.
func (m *marker) gaps(text string, at int, r *run) {
	for i, c := range text {
		if unicode.IsSpace(c) {
			m.blank = true
			continue
		}
		if m.blank && (m.level == words || m.ended) {
			if r.whole {
				m.add(r.from)
			} else {
				m.add(at + i)
			}
		}
		switch c {
		case '.', '!', '?', '…':
			m.ended = true
		case '。', '！', '？':
			// These need no blank after them.
			m.ended, m.blank = true, true
			continue
		case '"', '\'', ')', ']', '”', '’', '»':
		default:
			m.ended = false
		}
		m.blank = false
		if len(m.found) >= m.most || at+i > m.hi && !r.whole {
			return
		}
	}
}

// characters finds the borders of graphemes or runes. None falls before a blank, so that what begins there
// shows something.
func (m *marker) characters(text string, at int, r *run) {
	m.character(text, at)
	state := -1
	for !r.whole && len(text) > 0 && at < m.hi && len(m.found) < m.most {
		size := 0
		if m.level == runes {
			_, size = utf8.DecodeRuneInString(text)
			text = text[size:]
		} else {
			var cluster string
			cluster, text, _, state = uniseg.FirstGraphemeClusterInString(text, state)
			size = len(cluster)
		}
		at += size
		m.character(text, at)
	}
}

// character adds the place before text if a part may begin with it.
func (m *marker) character(text string, at int) {
	first, size := utf8.DecodeRuneInString(text)
	if first = clean(first, size); size == 0 || first == 0 || hidden(first) || unicode.IsMark(first) && m.level != runes {
		return
	}
	m.add(at)
}
