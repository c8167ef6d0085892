// What stands in a line: looks, links, and how it is broken into rows.

package markdown

import (
	"strings"

	"github.com/rivo/uniseg"
	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/util"

	"parley/channels/markup"
	"parley/cmd/parley/internal/cli"
	"parley/workspace"
)

// style is a set of looks.
type style uint8

const (
	bold style = 1 << iota
	italic
	underline
	strike
	cyan
	dim
)

// sgr are the looks as parameters of SGR (ECMA-48 §8.3.117).
var sgr = []string{"1", "3", "4", "9", "36", "2"}

// paint styles text, unless nothing is styled.
func (d *drawer) paint(s style, text string) string {
	if text == "" || s == 0 || d.Plain {
		return text
	}
	var list []string
	for i, one := range sgr {
		if s&(1<<i) != 0 {
			list = append(list, one)
		}
	}
	return "\x1b[" + strings.Join(list, ";") + "m" + text + "\x1b[0m"
}

// piece is text of one look. A whole one is never broken into rows, and its blanks part no words.
type piece struct {
	text  string
	style style
	whole bool
}

// word is what stands between two blanks or ends of lines.
type word struct {
	pieces []piece
	width  int
	space  bool // a blank stands before it
	line   bool // it begins a line
}

// words collects what a block says.
type words struct {
	list  []word
	space bool
	line  bool
}

func (w *words) add(p piece) {
	if p.text == "" {
		return
	}
	if n := len(w.list); n == 0 || w.space || w.line {
		w.list = append(w.list, word{space: w.space, line: w.line})
	}
	last := &w.list[len(w.list)-1]
	last.pieces, last.width = append(last.pieces, p), last.width+width(p.text)
	w.space, w.line = false, false
}

// text adds text whose blanks part words.
func (w *words) text(s string, look style) {
	for i, part := range strings.Split(s, " ") {
		if i > 0 {
			w.space = true
		}
		w.add(piece{text: part, style: look})
	}
}

// flow draws a paragraph, broken between words.
func (d *drawer) flow(n ast.Node, look style) {
	var w words
	d.inlines(n, look, &w)
	d.fill(w.list)
}

// fill makes rows of words.
func (d *drawer) fill(list []word) {
	var row strings.Builder
	used, begun := 0, false
	flush := func() {
		d.put(row.String())
		row.Reset()
		used, begun = 0, false
	}
	for _, x := range list {
		room := d.room()
		if x.line && begun {
			flush()
		}
		blank := 0
		if x.space && begun {
			blank = 1
		}
		if begun && used+blank+x.width > room && (x.width <= room || x.whole()) {
			flush()
			blank = 0
		}
		row.WriteString(strings.Repeat(" ", blank))
		used += blank
		begun = true
		if x.width > room && !x.whole() {
			used = d.cut(x, &row, used, room)
			continue
		}
		for _, p := range x.pieces {
			row.WriteString(d.paint(p.style, p.text))
		}
		used += x.width
	}
	if begun {
		flush()
	}
}

func (x word) whole() bool {
	for _, p := range x.pieces {
		if p.whole {
			return true
		}
	}
	return false
}

// cut writes a word that is wider than a row, such as a sentence without blanks, and returns how much of the last row it takes.
func (d *drawer) cut(x word, row *strings.Builder, used, room int) int {
	for _, p := range x.pieces {
		part := strings.Builder{}
		for g := uniseg.NewGraphemes(p.text); g.Next(); {
			if used+g.Width() > room && used > 0 {
				row.WriteString(d.paint(p.style, part.String()))
				d.put(row.String())
				row.Reset()
				part.Reset()
				used = 0
			}
			part.WriteString(g.Str())
			used += g.Width()
		}
		row.WriteString(d.paint(p.style, part.String()))
	}
	return used
}

// inlines collects what a node says.
func (d *drawer) inlines(n ast.Node, look style, w *words) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		switch c := c.(type) {
		case *ast.Text:
			seen := string(c.Segment.Value(d.src))
			if !c.IsRaw() {
				seen = unescape(seen)
			}
			w.text(strings.ReplaceAll(cli.Visible(seen), "\n", " "), look)
			if c.HardLineBreak() || c.SoftLineBreak() {
				w.line, w.space = true, false
			}
		case *ast.CodeSpan:
			d.span(c, look, w)
		case *ast.Emphasis:
			if c.Level == 2 {
				d.marked("**", bold, c, look, w)
			} else {
				d.marked("*", italic, c, look, w)
			}
		case *extast.Strikethrough:
			d.marked("~~", strike, c, look, w)
		case *ast.Link:
			d.link(c, c.Destination, look, w)
		case *ast.Image:
			d.link(c, c.Destination, look, w)
		case *ast.AutoLink:
			w.add(piece{cli.Visible(string(c.Label(d.src))), look | underline, true})
		}
	}
}

// marked is text that stands out; without styles its marks stay.
func (d *drawer) marked(mark string, s style, n ast.Node, look style, w *words) {
	if !d.Plain {
		d.inlines(n, look|s, w)
		return
	}
	w.add(piece{text: mark})
	d.inlines(n, look, w)
	w.add(piece{text: mark})
}

// span is code in a line. What takes no room in it is made visible: it may be a command that somebody copies.
func (d *drawer) span(n ast.Node, look style, w *words) {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			b.Write(t.Segment.Value(d.src))
		}
	}
	code := workspace.Exact(strings.ReplaceAll(b.String(), "\n", " "))
	if d.Code != nil {
		code = d.Code(code)
	}
	if d.Plain {
		code = "`" + code + "`"
	}
	w.add(piece{code, look | cyan, true})
}

// link is a text and, where that is another, the address that it leads to: nobody is led where they do not see.
func (d *drawer) link(n ast.Node, dest []byte, look style, w *words) {
	var seen words
	d.inlines(n, look, &seen)
	target := strings.ReplaceAll(cli.Visible(unescape(string(dest))), "\n", " ")
	address := strings.TrimPrefix(target, "mailto:")
	if text := seen.String(); text == "" || text == target || text == address {
		w.add(piece{address, look | underline, true})
		return
	}
	d.inlines(n, look, w)
	if address != "" {
		w.space = true
		w.add(piece{text: "(", style: look})
		w.add(piece{address, look | underline, true})
		w.add(piece{text: ")", style: look})
	}
}

// String is the words without their looks.
func (w *words) String() string {
	var b strings.Builder
	for i, x := range w.list {
		if i > 0 && (x.space || x.line) {
			b.WriteByte(' ')
		}
		for _, p := range x.pieces {
			b.WriteString(p.text)
		}
	}
	return b.String()
}

// unescape resolves backslashes and character references, once.
func unescape(s string) string {
	if !strings.ContainsAny(s, `\&`) {
		return s
	}
	var b strings.Builder
	src := []byte(s)
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			if i+1 < len(s) && util.IsPunct(s[i+1]) {
				i++
			}
		case '&':
			if size, seen := markup.Reference(src[i:]); size > 0 {
				b.WriteString(seen)
				i += size - 1
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func width(s string) int { return uniseg.StringWidth(s) }
