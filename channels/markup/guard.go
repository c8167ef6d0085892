package markup

import (
	"bytes"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// The parser is linear for what people and models write and quadratic for what is made to be slow. These are
// the bounds beyond which text is shown literally; they are wide: the largest honest answer stays far below.
const (
	maxParse   = 1 << 20 // bytes of an answer
	maxNesting = 100     // quote and list markers at the begin of one line
	maxHeading = 4096    // bytes of a line that begins with '#'
	maxEffort  = 1 << 24 // bytes of a paragraph times the delimiters in it
	maxColumns = 32      // of a table
)

// tooWild finds what no paragraph bound catches: size, nesting within a line, endless heading lines.
func tooWild(md string) bool {
	if len(md) > maxParse {
		return true
	}
	for i := 0; i < len(md); {
		end := i
		for end < len(md) && md[end] != '\n' {
			end++
		}
		if end-i > maxNesting && (nesting(md[i:end]) > maxNesting || end-i > maxHeading && isHeading(md[i:end])) {
			return true
		}
		i = end + 1
	}
	return false
}

// nesting counts the container markers that a line begins with.
func nesting(line string) int {
	n := 0
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '>':
			n++
		case c == ' ' || c == '\t' || c >= '0' && c <= '9':
		case c == '-' || c == '*' || c == '+' || c == '.' || c == ')':
			if i+1 >= len(line) || line[i+1] != ' ' && line[i+1] != '\t' {
				return n
			}
			n++
		default:
			return n
		}
	}
	return n
}

func isHeading(line string) bool {
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '#':
			return true
		case c == ' ' || c == '\t' || c == '>' || c == '-' || c == '*' || c == '+' || c == '.' || c == ')' || c >= '0' && c <= '9':
		default:
			return false
		}
	}
	return false
}

// literalBlock is a paragraph that is not parsed any further.
type literalBlock struct {
	ast.BaseBlock
}

// IsRaw keeps the inline parsers away.
func (*literalBlock) IsRaw() bool { return true }

// Kind names the node for the parser's own diagnostics.
func (*literalBlock) Kind() ast.NodeKind { return ast.KindTextBlock }

// Dump is for the parser's own diagnostics.
func (n *literalBlock) Dump(source []byte, level int) { ast.DumpHelper(n, source, level, nil, nil) }

// guard sees every paragraph before it is parsed further. It makes tables, but only of rows that lose no text
// and of a size that cannot explode, and it takes paragraphs that would be slow literally.
type guard struct{}

// Transform implements parser.ParagraphTransformer.
func (guard) Transform(n *ast.Paragraph, r text.Reader, pc parser.Context) {
	size, delimiters := 0, 0
	for i := range n.Lines().Len() {
		s := n.Lines().At(i)
		line := s.Value(r.Source())
		size += len(line)
		for _, c := range line {
			switch c {
			case '[', '(', '*', '_', '~', '`', '<', '&', '@':
				delimiters++
			}
		}
	}
	gap := n.HasBlankPreviousLines()
	parent, prev := n.Parent(), n.PreviousSibling()
	if size*delimiters > maxEffort {
		l := &literalBlock{}
		l.SetLines(n.Lines())
		l.SetPos(n.Pos())
		l.SetBlankPreviousLines(gap)
		parent.ReplaceChild(parent, n, l)
		return
	}
	if !keepsCells(n, r.Source()) {
		return
	}
	extension.NewTableParagraphTransformer().Transform(n, r, pc)
	if n.Parent() != nil {
		return
	}
	made := parent.FirstChild()
	if prev != nil {
		made = prev.NextSibling()
	}
	if made != nil {
		made.SetBlankPreviousLines(gap)
	}
}

// keepsCells says whether a paragraph, read as a table, has no row that is longer than its head or
// ends in an escaped border: the parser would drop that text.
func keepsCells(n *ast.Paragraph, src []byte) bool {
	for i := 1; i < n.Lines().Len(); i++ {
		s := n.Lines().At(i)
		line := s.Value(src)
		if !isDelimiterRow(line) {
			continue
		}
		cols := cells(line)
		if cols > maxColumns {
			return false
		}
		for j := i + 1; j < n.Lines().Len(); j++ {
			s := n.Lines().At(j)
			row := s.Value(src)
			if cells(row) > cols || bytes.HasSuffix(bytes.TrimSpace(row), []byte(`\|`)) {
				return false
			}
		}
		return true
	}
	return false
}

func isDelimiterRow(line []byte) bool {
	dash := false
	for _, c := range bytes.TrimSpace(line) {
		switch c {
		case '-':
			dash = true
		case '|', ':', ' ', '\t':
		default:
			return false
		}
	}
	return dash
}

// cells counts a row's cells as the table parser does.
func cells(line []byte) int {
	line = bytes.TrimSpace(line)
	line = bytes.TrimPrefix(line, []byte("|"))
	n := 1
	for i, c := range line {
		if c == '|' && (i == 0 || line[i-1] != '\\') && i < len(line)-1 {
			n++
		}
	}
	return n
}
