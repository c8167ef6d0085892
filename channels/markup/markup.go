// Package markup turns an answer's Markdown into what each network reads, cut into messages of its size.
//
// An answer is stored once, as Markdown; its parts are stored as byte offsets into it. Cut makes the offsets
// and Render makes one part's text from them, so a part can be rendered again after a restart. Cut is a pure
// function of its arguments; its spans tile the text, and Render accepts any span, so rows written by an
// earlier version stay readable even if a later one would cut elsewhere.
//
// Nothing of the source is ever copied to a network as markup. The text is parsed (CommonMark with tables,
// strikethrough, bare links and task lists), flattened to runs of text with their look and their place in the
// source, and every dialect is written again from those runs. So a part always parses alone: what is open at
// its end is closed, and what was open at its begin is opened again. Unfinished Markdown (an unclosed fence,
// an unclosed **) is as good as any, which is what a half-streamed answer needs; an append-only stream sends
// up to Settled.
//
// What a stranger's text cannot do here: raw HTML is text; only http, https and mailto are links, others are
// shown as text with their target; a link whose text looks like another address shows its real target; mass
// mentions are broken up on networks that have them; control characters and invalid UTF-8 become U+FFFD, and
// bidirectional overrides are left out. Reference definitions ("[a]: http://…") are not resolved but shown:
// what the model says is never hidden. Text that is made to be slow to parse is shown literally.
//
// The package decides nothing about delivery: whether many parts go as a file is the caller's (Traits.MaxParts).
// It owns no goroutine and keeps no state.
package markup

import (
	"strings"

	"parley/channels"
)

// Span is a part of an answer: byte offsets into its Markdown, From inclusive, To exclusive.
type Span struct {
	From, To int
}

// Cut divides md into parts that fit t.MaxUnits after rendering in t.Dialect, and as plain text too. The spans
// tile md; each shows at least one visible character, so md without any yields nil. A MaxUnits of 0 means one
// part. Limits from 1,500 units on are always kept; below, a part holds at least one character (with its link)
// even if that is too long.
//
// Cuts fall between top-level blocks, else between list items and paragraphs, else after a line, a sentence, a
// space, a grapheme. A finer cut is taken only where a block must be cut anyway and the part would be less
// than half full without it.
func Cut(md string, t channels.Traits) []Span {
	return CutFrom(md, 0, t)
}

// CutFrom cuts what follows the byte offset from, for answers whose begin was already sent.
func CutFrom(md string, from int, t channels.Traits) []Span {
	if from == 0 && literalIsRendered(md) && (t.MaxUnits <= 0 || len(md) <= t.MaxUnits) {
		return []Span{{0, len(md)}}
	}
	return Parse(md).CutFrom(from, t)
}

// Render writes one span of md in dialect d; plain is the same without markup, for a network that refuses ours.
// Telegram's limit of 4,096 counts what is seen, not the tags, and so does Cut; the HTML itself stays below
// the 32 KiB that the Bot API takes.
func Render(md string, s Span, d channels.Dialect) (text, plain string) {
	if s.From == 0 && s.To == len(md) && literalIsRendered(md) {
		return md, md
	}
	return Parse(md).Render(s, d)
}

// Settled is the offset up to which more text appended to md cannot change how md is read: the begin of its
// last top-level block. Text before it can be sent where nothing can be taken back.
func Settled(md string) int {
	doc := Parse(md)
	if len(doc.leaves) == 0 {
		return 0
	}
	last := len(doc.leaves) - 1
	for last > 0 && !doc.leaves[last].top {
		last--
	}
	return doc.leaves[last].from
}

// Doc is a parsed answer, for callers that both cut and render it. It is safe for concurrent use.
type Doc struct {
	md     string
	leaves []leaf
}

// Render is Render for a parsed answer.
func (d *Doc) Render(s Span, dialect channels.Dialect) (text, plain string) {
	b, _ := d.write(s, channels.Plain, 0)
	plain = string(b)
	if dialect == channels.Plain {
		return plain, plain
	}
	b, _ = d.write(s, dialect, 0)
	return string(b), plain
}

// leafKind is what a leaf block is.
type leafKind uint8

const (
	paragraph leafKind = iota
	heading
	code
	table
	rule
)

// leaf is a block that holds text, in the order of the source.
type leaf struct {
	kind   leafKind
	top    bool // it begins a top-level block
	gap    bool // a blank line stands before it in the source
	empty  bool // it has no text but is seen: an empty list item
	level  int  // of a heading: 1–6
	lang   string
	from   int // where it begins in the source, with its list marker
	frames []*frame
	runs   []run
	cols   []column // of a table
}

// frame is a container around leaves: a quote or a list item.
type frame struct {
	quote  bool
	from   int    // where it begins in the source
	leaf   int    // index of its first leaf
	number string // "3." of an ordered item; empty: a bullet
	task   byte   // 0, or ' ' and 'x' of a task list item
}

// runKind is what a run is.
type runKind uint8

const (
	textRun  runKind = iota
	breakRun         // a line break
	cellRun          // the border between two cells of a table
	rowRun           // the end of a table's row
	headRun          // the end of a table's head
)

// run is text of one look. If it is not whole, its text is the source between from and to and may be cut at
// any byte that begins a character; a whole run belongs to the span that holds from.
type run struct {
	from, to int
	text     string
	kind     runKind
	whole    bool
	hard     bool // of breakRun: it was asked for
	col      int  // in tables: the column
	pad      int  // of cellRun: how many columns its cell is short of its column's width
	mark     *mark
}

// markKind is an inline look.
type markKind uint8

const (
	bold markKind = iota
	italic
	strike
	inlineCode
	linked
)

// mark is an inline look and those around it. Kinds do not repeat in a chain.
type mark struct {
	up   *mark
	kind markKind
	link *link
}

// within says whether m or one around it is of a kind.
func (m *mark) within(k markKind) bool {
	for ; m != nil; m = m.up {
		if m.kind == k {
			return true
		}
	}
	return false
}

// target is the link that m is in, or nil.
func (m *mark) target() *link {
	for ; m != nil; m = m.up {
		if m.kind == linked {
			return m.link
		}
	}
	return nil
}

// link is where a link leads. Its text is its address.
type link struct {
	href string // cleaned; empty: never written as a link
}

// literalIsRendered says that md needs no parser: every dialect shows it as it stands. It is the fast path of
// short answers and must say no in doubt.
func literalIsRendered(md string) bool {
	if md == "" || len(md) > 4096 || md[len(md)-1] == ' ' || md[len(md)-1] == '\n' {
		return false
	}
	bol, newlines, digits := true, 0, true
	for i := 0; i < len(md); i++ {
		c := md[i]
		if c == '\n' {
			newlines++
			if newlines > 2 || bol && newlines == 1 || md[max(i-1, 0)] == ' ' {
				return false
			}
			bol, digits = true, true
			continue
		}
		newlines = 0
		switch {
		case 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z':
			if c == 'w' && strings.HasPrefix(md[i:], "www.") {
				return false
			}
			digits = false
		case '0' <= c && c <= '9':
		case c == ' ' || c == ',' || c == '?' || c == '\'' || c == ';' || c == '/' || c == '%' || c == '$':
			if bol {
				return false
			}
			digits = false
		case c == '.' || c == ')' || c == '(' || c == '-' || c == '!':
			// "12." and "12)" begin a list.
			if bol || digits {
				return false
			}
			digits = false
		case c == ':':
			if bol || strings.HasPrefix(md[i:], "://") {
				return false
			}
			digits = false
		default:
			return false
		}
		bol = false
	}
	return true
}
