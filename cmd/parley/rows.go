package main

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// rows breaks text into rows of a terminal. What is whole is done and stays as it is; the last row may still grow. It is
// an io.Writer for a printer.
type rows struct {
	width int
	done  []string
	tail  string
}

// tabStop is how wide a tab is drawn: a terminal would draw it by its own stops, which a prompt before it moves.
const tabStop = "    "

// Write never fails.
func (r *rows) Write(p []byte) (int, error) {
	parts := strings.Split(r.tail+strings.ReplaceAll(string(p), "\t", tabStop), "\n")
	last := len(parts) - 1
	for _, line := range parts[:last] {
		r.done = append(r.done, r.wrap(line)...)
	}
	r.tail = parts[last]
	if tail := r.wrap(r.tail); len(tail) > 1 {
		r.done = append(r.done, tail[:len(tail)-1]...)
		// with the blanks at its end, which a row does not show: a word may follow them
		r.tail = r.tail[strings.LastIndex(r.tail, tail[len(tail)-1]):]
	}
	return len(p), nil
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

// take hands over what is done.
func (r *rows) take() []string {
	done := r.done
	r.done = nil
	return done
}
