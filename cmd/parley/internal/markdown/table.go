// Tables.

package markdown

import (
	"slices"
	"strings"

	"charm.land/lipgloss/v2"
	"charm.land/lipgloss/v2/table"
	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
)

// narrowest is how many columns a column of a table needs to be read. One with less room is as wide as it wants to be.
const narrowest = 8

// table draws a table as wide as what is in it, and broken within its cells where the terminal is narrower.
func (d *drawer) table(n *extast.Table) {
	t := table.New().Border(lipgloss.NormalBorder()).BorderTop(false).BorderBottom(false).BorderLeft(false).BorderRight(false).
		StyleFunc(func(row, col int) lipgloss.Style { return d.cell(n, row, col) })
	wide := make([]int, len(n.Alignments))
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		var cells []string
		for c := row.FirstChild(); c != nil && len(cells) < len(wide); c = c.NextSibling() {
			text := d.line(c)
			wide[len(cells)] = max(wide[len(cells)], lipgloss.Width(text))
			cells = append(cells, text)
		}
		if row.Kind() == extast.KindTableHeader {
			t.Headers(cells...)
		} else if slices.ContainsFunc(cells, func(text string) bool { return text != "" }) {
			t.Row(cells...)
		}
	}
	want := 3*len(wide) - 1 // paddings and the lines between
	for _, w := range wide {
		want += w
	}
	if want > d.room() && d.room() >= narrowest*len(wide) {
		t.Width(d.room())
	}
	for row := range strings.SplitSeq(t.String(), "\n") {
		d.put(row)
	}
}

// cell is how a cell stands in its column.
func (d *drawer) cell(n *extast.Table, row, col int) lipgloss.Style {
	s := lipgloss.NewStyle().Padding(0, 1)
	if row == table.HeaderRow && !d.Plain {
		s = s.Bold(true)
	}
	if col >= len(n.Alignments) {
		return s
	}
	switch n.Alignments[col] {
	case extast.AlignRight:
		return s.Align(lipgloss.Right)
	case extast.AlignCenter:
		return s.Align(lipgloss.Center)
	}
	return s
}

// line is what a node says, on one line.
func (d *drawer) line(n ast.Node) string {
	var w words
	d.inlines(n, 0, &w)
	var b strings.Builder
	for i, x := range w.list {
		if i > 0 && (x.space || x.line) {
			b.WriteByte(' ')
		}
		for _, p := range x.pieces {
			b.WriteString(d.paint(p.style, p.text))
		}
	}
	return b.String()
}
