// Package markdown draws an answer's Markdown on a terminal.
package markdown

import (
	"strconv"
	"strings"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"

	"parley/channels/markup"
	"parley/cmd/parley/internal/cli"
	"parley/workspace"
)

// Options say how it is drawn.
type Options struct {
	Width int  // in columns; 0: rows are not broken
	Plain bool // without styles: what is Markdown inside a line stays as it was written
	// Code, if it is set, changes what stands between backticks in a line, such as the name of a command.
	Code func(string) string
}

// draw is md as rows, of which those before settled stay the same whatever whole lines follow. Code is drawn as it is, from the
// first column, and neither it nor a word that is wider than a row, such as an address, is broken: the terminal does that, so that
// what is copied from it is whole and nothing else.
func draw(md string, o Options) (rows []string, settled int) {
	d := &drawer{Options: o, src: []byte(md)}
	tree := markup.Tree(d.src)
	if tree == nil {
		d.raw(md, "")
		return d.rows, len(d.rows)
	}
	d.blocks(tree)
	return d.rows, d.settled
}

// drawer draws one tree.
type drawer struct {
	Options
	src         []byte
	rows        []string
	settled     int
	first, rest string // what the next row of a block begins with, and those after it
}

// blocks draws what a container holds.
func (d *drawer) blocks(parent ast.Node) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		if !holdsBlocks(n) {
			d.settled = len(d.rows)
		}
		if prev := n.PreviousSibling(); prev != nil && (n.HasBlankPreviousLines() || apart(n) || fixed(prev)) {
			d.gap()
		}
		d.block(n)
	}
}

func holdsBlocks(n ast.Node) bool {
	switch n.Kind() {
	case ast.KindBlockquote, ast.KindList, ast.KindListItem:
		return true
	}
	return false
}

// apart says whether a block stands between blank rows wherever it is.
func apart(n ast.Node) bool {
	switch n.Kind() {
	case ast.KindFencedCodeBlock, ast.KindCodeBlock, extast.KindTable, ast.KindHeading, ast.KindThematicBreak:
		return true
	}
	return false
}

// fixed says whether what follows a block stands apart from it; below a heading it need not.
func fixed(n ast.Node) bool { return apart(n) && n.Kind() != ast.KindHeading }

// gap ends with a blank row.
func (d *drawer) gap() {
	blank := strings.TrimRight(d.rest, " ")
	if n := len(d.rows); n > 0 && d.rows[n-1] != blank {
		d.rows = append(d.rows, blank)
	}
}

func (d *drawer) block(n ast.Node) {
	switch n := n.(type) {
	case *ast.Blockquote:
		d.inside("│ ", "│ ", n)
	case *ast.List:
		d.list(n)
	case *ast.Heading:
		d.heading(n)
	case *ast.Paragraph, *ast.TextBlock:
		d.flow(n, 0)
	case *ast.CodeBlock:
		d.code(n.Lines(), false)
	case *ast.FencedCodeBlock:
		d.code(n.Lines(), n.NextSibling() == nil)
	case *ast.ThematicBreak:
		d.put(d.paint(dim, strings.Repeat("─", min(d.room(), 40))))
	case *extast.Table:
		d.table(n)
	default: // what is too wild to be read
		d.raw(string(n.Lines().Value(d.src)), d.rest)
	}
}

// inside draws a container whose rows begin with something.
func (d *drawer) inside(first, rest string, n ast.Node) {
	outer, before := d.rest, len(d.rows)
	d.first, d.rest = d.first+first, d.rest+rest
	if d.blocks(n); len(d.rows) == before {
		d.put("") // an item without text
	}
	d.first, d.rest = outer, outer
}

func (d *drawer) list(n *ast.List) {
	number := n.Start
	for item := n.FirstChild(); item != nil; item = item.NextSibling() {
		if item.PreviousSibling() != nil && item.HasBlankPreviousLines() {
			d.gap()
		}
		mark := "• "
		if n.IsOrdered() {
			mark = strconv.Itoa(number) + string(n.Marker) + " "
			number++
		}
		width := len([]rune(mark))
		if box := checkbox(item); box != nil {
			if mark = "☐ "; box.IsChecked {
				mark = "☑ "
			}
		}
		d.inside(mark, strings.Repeat(" ", width), item)
	}
}

// checkbox is what an item of a task list begins with; nil: it is another's.
func checkbox(item ast.Node) *extast.TaskCheckBox {
	if item.FirstChild() == nil {
		return nil
	}
	box, _ := item.FirstChild().FirstChild().(*extast.TaskCheckBox)
	return box
}

func (d *drawer) heading(n *ast.Heading) {
	if d.Plain {
		d.first += strings.Repeat("#", n.Level) + " "
	}
	style := bold
	if n.Level == 1 {
		style |= underline
	}
	d.flow(n, style)
}

// code draws lines as they are. Those of a block that may go on stay, too.
func (d *drawer) code(lines *text.Segments, open bool) {
	if d.first != d.rest {
		d.put("") // the item's own row
	}
	if lines.Len() > 0 {
		code := strings.TrimSuffix(string(lines.Value(d.src)), "\n")
		for line := range strings.SplitSeq(workspace.Exact(code), "\n") {
			d.rows = append(d.rows, d.paint(cyan, line))
		}
	}
	if open {
		d.settled = len(d.rows)
	}
}

// raw draws text as it stands.
func (d *drawer) raw(text, begin string) {
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		d.rows = append(d.rows, begin+cli.Visible(line))
	}
}

// put adds a row behind what it begins with.
func (d *drawer) put(row string) {
	d.rows = append(d.rows, strings.TrimRight(d.first+row, " "))
	d.first = d.rest
}

// room is how many columns a row has behind what it begins with.
func (d *drawer) room() int {
	if d.Width == 0 {
		return 1 << 20
	}
	return max(8, d.Width-width(d.rest))
}
