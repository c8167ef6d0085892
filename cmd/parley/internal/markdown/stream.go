// An answer that grows.

package markdown

import (
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"

	"parley/channels/markup"
)

// Stream draws an answer while it grows: rows that nothing can change any more are handed over once, the others are drawn again
// each time. The zero value, with its options, is ready.
type Stream struct {
	Options
	text   string // from the begin of the newest block on
	given  int    // rows of it that were handed over
	above  string // the row above it
	apart  bool   // a blank row is due between them
	newest string // the newest row that was handed over
}

// Add takes more of the answer, and returns the rows that are final.
func (s *Stream) Add(text string) (rows []string) {
	if s.text += text; !strings.Contains(text, "\n") {
		return nil
	}
	whole := s.text[:strings.LastIndexByte(s.text, '\n')+1] // a line that is not whole may be read in another way yet
	if cut := between(whole, markup.Settled(whole)); cut > 0 {
		rows = s.finish(cut)
		whole = whole[cut:]
	}
	drawn, settled := s.draw(whole)
	return append(rows, s.hand(drawn[:settled])...)
}

// between is the begin of the line that holds the first byte of a block, or of the next where the block before ends in it.
func between(text string, at int) int {
	line := strings.LastIndexByte(text[:at], '\n') + 1
	rest, _, _ := strings.Cut(text[at:], "\n")
	if strings.TrimSpace(text[line:at]) != "" && strings.TrimSpace(rest) == "" {
		return min(at+len(rest)+1, len(text))
	}
	return line
}

// Rest is what is not final yet.
func (s *Stream) Rest() []string {
	drawn, _ := s.draw(s.text)
	return drawn[min(s.given, len(drawn)):]
}

// End is the end of an answer, or a break in it. In a block of code the rest goes on as code.
func (s *Stream) End() (rows []string) {
	fence := openFence(s.text)
	rows = s.finish(len(s.text))
	*s = Stream{Options: s.Options}
	if fence != "" {
		s.text = fence + "\n"
	}
	return rows
}

// Reset ends an answer for good: what follows is another.
func (s *Stream) Reset() (rows []string) {
	rows = s.finish(len(s.text))
	*s = Stream{Options: s.Options}
	return rows
}

// finish hands over the first bytes of the text.
func (s *Stream) finish(cut int) []string {
	text := s.text[:cut]
	drawn, _ := s.draw(text)
	rows := s.hand(drawn)
	if s.text, s.given, s.above = s.text[cut:], 0, s.newest; strings.TrimSpace(text) != "" {
		s.apart = blankEnd(text) || endsFixed(text)
	}
	return rows
}

// blankEnd says whether a blank line ends a text.
func blankEnd(text string) bool {
	lines := strings.Split(text, "\n")
	return len(lines) > 2 && strings.TrimSpace(lines[len(lines)-2]) == ""
}

// draw is a text, with the blank row before it.
func (s *Stream) draw(text string) (rows []string, settled int) {
	rows, settled = draw(text, s.Options)
	if len(rows) > 0 && s.above != "" && (s.apart || beginsApart(text)) {
		return slices.Insert(rows, 0, ""), settled + min(settled, 1)
	}
	return rows, settled
}

// hand is what of rows was not handed over yet.
func (s *Stream) hand(rows []string) []string {
	fresh := rows[min(s.given, len(rows)):]
	s.given = max(s.given, len(rows))
	if len(fresh) > 0 {
		s.newest = fresh[len(fresh)-1]
	}
	return fresh
}

// beginsApart says whether a text begins with a block that stands apart.
func beginsApart(text string) bool {
	n := markup.Tree([]byte(text))
	return n != nil && n.FirstChild() != nil && apart(n.FirstChild())
}

// endsFixed says whether a text ends with a block that stands apart from what follows.
func endsFixed(text string) bool {
	n := markup.Tree([]byte(text))
	return n != nil && n.LastChild() != nil && fixed(n.LastChild())
}

// openFence is the line that began a block of code whose end is missing; empty: there is none.
func openFence(text string) string {
	const probe = "\n\nx"
	n := markup.Tree([]byte(text + probe))
	if n == nil || n.LastChild() == nil || n.LastChild().Kind() != ast.KindFencedCodeBlock {
		return ""
	}
	fence := ""
	for line := range strings.Lines(text) {
		if bare := strings.TrimSpace(line); strings.HasPrefix(bare, "```") || strings.HasPrefix(bare, "~~~") {
			fence = bare
		}
	}
	return fence
}
