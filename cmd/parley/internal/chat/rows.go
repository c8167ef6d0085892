// Text broken into rows of a terminal.

package chat

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	"parley/cmd/parley/internal/cli"
	"parley/cmd/parley/internal/markdown"
)

// rows is what goes up the screen: notes, broken into rows, and answers, drawn as Markdown. What is done stays as it is. It is an
// io.Writer of notes, which come in whole lines, and by prose one of answers, which come in pieces.
type rows struct {
	width  int
	done   []string
	answer markdown.Stream
}

// prose is rows for answers.
type prose struct{ *rows }

// tabStop is how wide a tab is drawn: a terminal would draw it by its own stops, which a prompt before it moves.
const tabStop = "    "

// Write never fails.
func (r *rows) Write(p []byte) (int, error) {
	r.done = append(r.done, r.answer.End()...)
	for line := range strings.SplitSeq(strings.TrimSuffix(untabbed(p), "\n"), "\n") {
		r.done = append(r.done, r.wrap(line)...)
	}
	return len(p), nil
}

// Write never fails.
func (r prose) Write(p []byte) (int, error) {
	r.done = append(r.done, r.answer.Add(untabbed(p))...)
	return len(p), nil
}

func untabbed(p []byte) string { return strings.ReplaceAll(string(p), "\t", tabStop) }

// whole adds rows that the terminal breaks, and nobody else: what is copied from them is what was written.
func (r *rows) whole(text string, s cli.Style) {
	r.done = append(r.done, r.answer.End()...)
	for line := range strings.SplitSeq(untabbed([]byte(text)), "\n") {
		r.done = append(r.done, cli.Paint(r, s, line))
	}
}

// endAnswer says that what comes next is another answer.
func (r *rows) endAnswer() { r.done = append(r.done, r.answer.Reset()...) }

// growing is the end of an answer that may still change, at most so many rows of it.
func (r *rows) growing(most int) []string {
	var list []string
	for _, row := range r.answer.Rest() {
		list = append(list, r.hard(row)...)
	}
	return list[max(0, len(list)-most):]
}

// resize begins to break rows at another width. What has grown so far stays as it is.
func (r *rows) resize(width int) {
	if width != r.width && r.width > 0 {
		r.done = append(r.done, r.answer.End()...)
	}
	r.width, r.answer.Width = width, width
}

// wrap breaks a line between words.
func (r *rows) wrap(line string) []string {
	if r.width < 1 || ansi.StringWidth(line) <= r.width {
		return []string{line}
	}
	var list []string
	for row := range strings.SplitSeq(ansi.Wrap(line, r.width, ""), "\n") {
		if ansi.StringWidth(row) > r.width { // a blank beside the break may be one too many
			row = strings.TrimRight(row, " ")
		}
		list = append(list, r.hard(row)...)
	}
	return list
}

// hard breaks a row wherever the screen ends.
func (r *rows) hard(row string) []string {
	if r.width < 1 || ansi.StringWidth(row) <= r.width {
		return []string{row}
	}
	return strings.Split(ansi.Hardwrap(row, r.width, true), "\n")
}

// Styled says that what is written stands out by styles, as on the terminal that the rows are for.
func (r *rows) Styled() bool { return true }

// take hands over what is done.
func (r *rows) take() []string {
	done := r.done
	r.done = nil
	return done
}
