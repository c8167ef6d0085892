package markup

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// maxFrames is how many quotes and list items around a text are shown; deeper ones are flattened.
const maxFrames = 8

// Parse reads md. It never fails: what is not Markdown is text.
func Parse(md string) *Doc {
	d := &Doc{md: md}
	b := &builder{doc: d, src: []byte(md)}
	if tooWild(md) {
		b.literal(0, len(md))
		return d
	}
	b.children(newParser().Parse(text.NewReader(b.src)), true)
	return d
}

// Tree is md as its tree, for a surface that draws by itself; nil: it is to be shown as it stands.
func Tree(md []byte) ast.Node {
	if tooWild(string(md)) {
		return nil
	}
	return newParser().Parse(text.NewReader(md))
}

// newParser is CommonMark without raw HTML and without reference definitions (both are text here), plus
// tables, strikethrough, bare links and task lists. The priorities are goldmark's own.
func newParser() parser.Parser {
	return parser.NewParser(
		parser.WithBlockParsers(
			util.Prioritized(parser.NewSetextHeadingParser(), 100),
			util.Prioritized(parser.NewThematicBreakParser(), 200),
			util.Prioritized(parser.NewListParser(), 300),
			util.Prioritized(parser.NewListItemParser(), 400),
			util.Prioritized(parser.NewCodeBlockParser(), 500),
			util.Prioritized(parser.NewATXHeadingParser(), 600),
			util.Prioritized(parser.NewFencedCodeBlockParser(), 700),
			util.Prioritized(parser.NewBlockquoteParser(), 800),
			util.Prioritized(parser.NewParagraphParser(), 1000),
		),
		parser.WithInlineParsers(
			util.Prioritized(extension.NewTaskCheckBoxParser(), 0),
			util.Prioritized(parser.NewCodeSpanParser(), 100),
			util.Prioritized(parser.NewLinkParser(), 200),
			util.Prioritized(parser.NewAutoLinkParser(), 300),
			util.Prioritized(parser.NewEmphasisParser(), 500),
			util.Prioritized(extension.NewStrikethroughParser(), 500),
			util.Prioritized(extension.NewLinkifyParser(), 999),
		),
		parser.WithParagraphTransformers(
			util.Prioritized(guard{}, 100),
		),
		parser.WithASTTransformers(
			util.Prioritized(extension.NewTableASTTransformer(), 0),
		),
	)
}

// builder flattens the tree to leaves.
type builder struct {
	doc    *Doc
	src    []byte
	frames []*frame
	at     int  // how far the source is used up: positions only grow
	begin  int  // where the outermost container begins that has no leaf yet; -1: none
	gap    bool // … and whether a blank line stands before it
	top    bool // the next leaf begins a top-level block
}

func (b *builder) children(n ast.Node, top bool) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if top {
			b.top, b.begin = true, -1
		}
		b.block(c)
	}
}

func (b *builder) block(n ast.Node) {
	switch n := n.(type) {
	case *ast.Blockquote:
		b.inside(&frame{quote: true}, n)
	case *ast.List:
		b.list(n)
	case *ast.Heading:
		b.start(n, heading).level = n.Level
		b.inlines(n, nil)
	case *ast.Paragraph, *ast.TextBlock:
		b.start(n, paragraph)
		b.inlines(n, nil)
	case *ast.CodeBlock:
		b.start(n, code)
		b.lines(n.Lines())
	case *ast.FencedCodeBlock:
		b.start(n, code).lang = language(n.Language(b.src))
		b.lines(n.Lines())
	case *ast.ThematicBreak:
		l := b.start(n, rule)
		b.add(run{from: l.from, to: l.from + 1, text: "———", whole: true})
	case *extast.Table:
		b.start(n, table)
		b.table(n)
	case *literalBlock:
		b.start(n, paragraph)
		b.lines(n.Lines())
	}
}

func (b *builder) list(n *ast.List) {
	i := 0
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		f := &frame{task: task(c)}
		if n.IsOrdered() {
			f.number = strconv.Itoa(n.Start+i) + string(n.Marker)
		}
		b.inside(f, c)
		i++
	}
}

// task is the state of the checkbox that an item begins with.
func task(item ast.Node) byte {
	if item.FirstChild() == nil {
		return 0
	}
	box, ok := item.FirstChild().FirstChild().(*extast.TaskCheckBox)
	if !ok {
		return 0
	}
	if box.IsChecked {
		return 'x'
	}
	return ' '
}

// inside flattens a container. An item without text still shows its marker.
func (b *builder) inside(f *frame, n ast.Node) {
	f.from = max(n.Pos(), b.at)
	f.leaf = len(b.doc.leaves)
	if b.begin < 0 {
		b.begin, b.gap = f.from, n.HasBlankPreviousLines()
	}
	shown := len(b.frames) < maxFrames
	if shown {
		b.frames = append(b.frames, f)
	}
	b.children(n, false)
	if len(b.doc.leaves) == f.leaf && !f.quote {
		b.start(n, paragraph)
	}
	if shown {
		b.frames = b.frames[:len(b.frames)-1]
	}
	if l := len(b.doc.leaves); l > f.leaf && !f.quote {
		first := &b.doc.leaves[f.leaf]
		first.empty = first.empty || len(first.runs) == 0 && l == f.leaf+1
	}
}

// start begins a leaf.
func (b *builder) start(n ast.Node, k leafKind) *leaf {
	from := n.Pos()
	if from < 0 && n.Lines() != nil && n.Lines().Len() > 0 {
		from = n.Lines().At(0).Start
	}
	gap := n.HasBlankPreviousLines()
	if b.begin >= 0 {
		from, gap = b.begin, b.gap
	}
	from = max(from, b.at)
	b.begin = -1
	b.doc.leaves = append(b.doc.leaves, leaf{
		kind: k, top: b.top, gap: gap, from: from, frames: append([]*frame(nil), b.frames...),
	})
	b.top = false
	return b.leaf()
}

func (b *builder) leaf() *leaf {
	return &b.doc.leaves[len(b.doc.leaves)-1]
}

// add appends a run, keeping positions in order whatever the parser says.
func (b *builder) add(r run) {
	if r.from < b.at {
		r.from, r.whole = b.at, true
	}
	r.to = max(r.to, r.from)
	b.at = r.to
	l := b.leaf()
	l.runs = append(l.runs, r)
}

// lines adds raw lines with their line feeds.
func (b *builder) lines(lines *text.Segments) {
	for i := range lines.Len() {
		s := lines.At(i)
		if s.Padding > 0 {
			b.add(run{from: s.Start, to: s.Start, text: strings.Repeat(" ", s.Padding), whole: true})
		}
		b.raw(s.Start, s.Stop, nil)
	}
}

// raw adds a stretch of source that is seen as it stands, to the run before if it continues that.
func (b *builder) raw(from, to int, m *mark) {
	if from >= to {
		return
	}
	if l := b.leaf(); len(l.runs) > 0 && l.kind != code {
		last := &l.runs[len(l.runs)-1]
		if last.kind == textRun && !last.whole && last.to == from && last.mark == m {
			last.to, last.text = to, b.doc.md[last.from:to]
			b.at = to
			return
		}
	}
	b.add(run{from: from, to: to, text: b.doc.md[from:to], mark: m})
}

// literal takes a stretch of the source as paragraphs without any markup.
func (b *builder) literal(from, to int) {
	gap := false
	for from < to {
		end := to
		if i := strings.Index(b.doc.md[from:to], "\n\n"); i >= 0 {
			end = from + i + 2
		}
		if visible(b.doc.md[from:end]) {
			b.doc.leaves = append(b.doc.leaves, leaf{kind: paragraph, top: true, gap: gap, from: from})
			b.at = from
			b.raw(from, end, nil)
			gap = true
		}
		from = end
	}
}

func (b *builder) inlines(n ast.Node, m *mark) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		switch c := c.(type) {
		case *ast.Text:
			b.text(c, m)
		case *ast.CodeSpan:
			b.codeSpan(c, in(m, inlineCode))
		case *ast.Emphasis:
			k := italic
			if c.Level == 2 {
				k = bold
			}
			b.inlines(c, in(m, k))
		case *extast.Strikethrough:
			b.inlines(c, in(m, strike))
		case *ast.Link:
			b.link(c, c.Destination, m)
		case *ast.Image:
			b.link(c, c.Destination, m)
		case *ast.AutoLink:
			b.autoLink(c, m)
		}
	}
}

// in is m with one more look, unless it has it already.
func in(m *mark, k markKind) *mark {
	if m.within(k) {
		return m
	}
	return &mark{up: m, kind: k}
}

// text adds a text node and the line break after it.
func (b *builder) text(n *ast.Text, m *mark) {
	s := n.Segment
	if n.IsRaw() {
		b.raw(s.Start, s.Stop, m)
	} else {
		b.unescape(s.Start, s.Stop, m)
	}
	if n.HardLineBreak() || n.SoftLineBreak() {
		b.add(run{from: s.Stop, to: s.Stop + 1, kind: breakRun, whole: true, hard: n.HardLineBreak(), mark: m})
	}
}

// unescape adds a stretch of source with its backslash escapes and entities resolved.
func (b *builder) unescape(from, to int, m *mark) {
	done := from
	for i := from; i < to; {
		size, seen := 0, ""
		switch c := b.src[i]; {
		case c == '\\' && i+1 < to && util.IsPunct(b.src[i+1]):
			size, seen = 2, b.doc.md[i+1:i+2]
		case c == '&':
			size, seen = entity(b.src[i:to])
		}
		if size == 0 {
			i++
			continue
		}
		b.raw(done, i, m)
		b.add(run{from: i, to: i + size, text: seen, whole: true, mark: m})
		i += size
		done = i
	}
	b.raw(done, to, m)
}

// entity is a reference in a text: a line feed written that way must not begin a line, so it is a space.
func entity(s []byte) (size int, seen string) {
	if size, seen = Reference(s); seen == "\n" || seen == "\r" || seen == "\t" {
		seen = " "
	}
	return size, seen
}

func (b *builder) codeSpan(n ast.Node, m *mark) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		t, ok := c.(*ast.Text)
		if !ok {
			continue
		}
		s := t.Segment
		if s.Stop > s.Start && b.src[s.Stop-1] == '\n' {
			b.raw(s.Start, s.Stop-1, m)
			b.add(run{from: s.Stop - 1, to: s.Stop, text: " ", whole: true, mark: m})
			continue
		}
		b.raw(s.Start, s.Stop, m)
	}
}

// language is the first word of a fence's info string if it can be the name of a language.
func language(info []byte) string {
	if len(info) == 0 || len(info) > 20 || !utf8.Valid(info) {
		return ""
	}
	for _, c := range info {
		ok := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("+#-_.", c) >= 0
		if !ok {
			return ""
		}
	}
	return string(info)
}
