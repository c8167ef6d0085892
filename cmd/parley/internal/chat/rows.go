// Text broken into rows of a terminal.

package chat

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	"parley/cmd/parley/internal/cli"
	"parley/workspace/lazy"
)

// rows breaks text into rows of a terminal. What is whole is done and stays as it is; the last row may still grow. It is
// an io.Writer of notes, and by prose one of answers.
type rows struct {
	width int
	done  []string
	tail  string
	fence bool // within a block of code
	going bool // tail goes on with a line whose first rows are done
	plain bool // without styles
}

// prose is rows for answers: what is Markdown in them stands out.
type prose struct{ *rows }

// tabStop is how wide a tab is drawn: a terminal would draw it by its own stops, which a prompt before it moves.
const tabStop = "    "

// Write never fails.
func (r *rows) Write(p []byte) (int, error) {
	return r.write(p, func(row string, _ bool) string { return row })
}

// Write never fails.
func (r prose) Write(p []byte) (int, error) { return r.write(p, r.style) }

func (r *rows) write(p []byte, style func(row string, first bool) string) (int, error) {
	parts := strings.Split(r.tail+strings.ReplaceAll(string(p), "\t", tabStop), "\n")
	last := len(parts) - 1
	for i, line := range parts {
		list := r.wrap(line)
		keep := 0
		if i == last {
			keep = 1 // its last row may grow
		}
		for _, row := range list[:len(list)-keep] {
			r.done = append(r.done, style(row, !r.going))
			r.going = true
		}
		if i < last {
			r.going = false
			continue
		}
		r.tail = line
		if len(list) > 1 { // with the blanks at its end, which a row does not show: a word may follow them
			r.tail = line[strings.LastIndex(line, list[len(list)-1]):]
		}
	}
	return len(p), nil
}

var (
	boldText = lazy.Regexp(`\*\*([^*\s](?:[^*]*[^*\s])?)\*\*`)
	codeText = lazy.Regexp("`([^`]+)`")
	heading  = lazy.Regexp(`^#{1,6} `)
)

// style makes a row of Markdown stand out; what it does not know stays as it was written.
func (r prose) style(row string, first bool) string {
	if r.plain {
		return row
	}
	switch {
	case first && strings.HasPrefix(strings.TrimSpace(row), "```"):
		r.fence = !r.fence
		return cli.Paint(r.rows, cli.Dim, row)
	case r.fence:
		return cli.Paint(r.rows, cli.Cyan, row)
	case first && heading().MatchString(row):
		return cli.Paint(r.rows, cli.Bold, row)
	}
	row = codeText().ReplaceAllStringFunc(row, func(s string) string { return cli.Paint(r.rows, cli.Cyan, strings.Trim(s, "`")) })
	return boldText().ReplaceAllStringFunc(row, func(s string) string { return cli.Paint(r.rows, cli.Bold, strings.Trim(s, "*")) })
}

func (r *rows) wrap(line string) []string {
	if r.width < 1 || ansi.StringWidth(line) <= r.width {
		return []string{line}
	}
	var list []string
	for row := range strings.SplitSeq(ansi.Wrap(line, r.width, ""), "\n") {
		if ansi.StringWidth(row) > r.width { // a blank beside the break may be one too many
			row = strings.TrimRight(row, " ")
		}
		list = append(list, strings.Split(ansi.Hardwrap(row, r.width, true), "\n")...)
	}
	return list
}

// Styled says that what is written stands out by styles, as on the terminal that the rows are for.
func (r *rows) Styled() bool { return true }

// take hands over what is done.
func (r *rows) take() []string {
	done := r.done
	r.done = nil
	return done
}
