package markup

import (
	"strings"

	"github.com/rivo/uniseg"
	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
)

// maxPad is how wide a column is made: beyond, a cell stands out instead of widening every row.
const maxPad = 32

// column of a table.
type column struct {
	width int // in columns of a terminal
	align extast.Alignment
}

// table adds a table's cells with borders between them. Its columns are measured over the whole table, so
// that rows in different parts line up.
func (b *builder) table(n *extast.Table) {
	at := len(b.doc.leaves) - 1
	l := &b.doc.leaves[at]
	cols := make([]column, len(n.Alignments))
	for i := range cols {
		cols[i].align = n.Alignments[i]
	}
	widths := []int{} // of every cell in order
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		first, kind := len(l.runs), rowRun
		if row.Kind() == extast.KindTableHeader {
			kind = headRun
		}
		ws := b.row(row, l, kind)
		if kind == rowRun && !visible(runText(l.runs[first:])) {
			l.runs = l.runs[:first] // a row without text is left out
			continue
		}
		for i, w := range ws {
			cols[i].width = max(cols[i].width, min(w, maxPad))
		}
		widths = append(widths, ws...)
	}
	l.cols = cols
	i := 0
	for j := range l.runs {
		if r := &l.runs[j]; r.kind >= cellRun {
			r.pad = max(cols[r.col].width-widths[i], 0)
			i++
		}
	}
}

// row adds a row's cells and returns how wide they are.
func (b *builder) row(row ast.Node, l *leaf, end runKind) (widths []int) {
	for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
		if len(widths) > 0 {
			b.border(cellRun, len(widths)-1)
		}
		first, w := len(l.runs), 0
		b.inlines(cell, nil)
		for i := first; i < len(l.runs); i++ {
			l.runs[i].col = len(widths)
			w += uniseg.StringWidth(l.runs[i].text)
		}
		widths = append(widths, w)
	}
	b.border(end, len(widths)-1)
	return widths
}

// border adds what stands between cells.
func (b *builder) border(k runKind, col int) {
	b.add(run{from: b.at, kind: k, whole: true, col: col})
}

// ruler is the line below a table's head.
func ruler(cols []column) string {
	var s strings.Builder
	for i, c := range cols {
		if i > 0 {
			s.WriteString("-+-")
		}
		s.WriteString(strings.Repeat("-", max(c.width, 1)))
	}
	return s.String()
}

// delimiterRow is the same in Markdown.
func delimiterRow(cols []column) string {
	var s strings.Builder
	s.WriteString("|")
	for _, c := range cols {
		switch c.align {
		case extast.AlignLeft:
			s.WriteString(" :--- |")
		case extast.AlignRight:
			s.WriteString(" ---: |")
		case extast.AlignCenter:
			s.WriteString(" :---: |")
		default:
			s.WriteString(" --- |")
		}
	}
	return s.String()
}
