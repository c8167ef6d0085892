package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rivo/uniseg"
)

// card is one call of a tool, as it is shown: name, main argument, time and result, on one line.
type card struct {
	name, arg string
	since     time.Time
}

// mainArgs are the arguments that say most of a call, the most telling first.
func mainArgs() []string {
	return []string{"command", "path", "query", "url", "prompt", "name", "text", "id"}
}

// newCard reads a planned call.
func newCard(name string, args json.RawMessage, at time.Time) card {
	c := card{name: name, since: at}
	var fields map[string]any
	if json.Unmarshal(args, &fields) != nil {
		return c
	}
	for _, key := range mainArgs() {
		if s, ok := fields[key].(string); ok && s != "" {
			c.arg = s
			return c
		}
	}
	var keys []string
	for key := range fields {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		if s, ok := fields[key].(string); ok && s != "" {
			c.arg = s
			return c
		}
	}
	return c
}

// begun is the call while it runs.
func (c card) begun() string {
	return strings.TrimSpace(visible(c.name) + " " + cut(c.arg, 60))
}

// done is the call with its result.
func (c card) done(result string, failed bool, at time.Time) string {
	took := ""
	if !c.since.IsZero() {
		took = "  " + length(max(0, at.Sub(c.since))) // what is watched live may be a moment ahead of the record
	}
	lines := strings.Split(strings.TrimSpace(bare(result)), "\n")
	said := cut(lines[0], 60)
	switch more := len(lines) - 1; {
	case failed:
		said = "failed: " + said
	case more == 1:
		said += " (1 line more)"
	case more > 1:
		said += fmt.Sprintf(" (%d lines more)", more)
	}
	return strings.TrimRight(c.begun()+took+"  "+said, " ")
}

// length is a time as people read it.
func length(d time.Duration) string {
	switch {
	case d < 100*time.Millisecond:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// bare is a result without the lines that mark it as data for the model.
func bare(text string) string {
	first, rest, found := strings.Cut(text, "\n")
	if !found || !strings.HasPrefix(first, "<") || !strings.HasSuffix(first, ">") {
		return text
	}
	if i := strings.LastIndex(rest, "\n</"); i >= 0 {
		return rest[:i]
	}
	return strings.TrimPrefix(rest, "</")
}

// cut is the first line of text in at most so many columns.
func cut(text string, columns int) string {
	text = strings.ReplaceAll(visible(text), "\t", " ")
	line, more, _ := strings.Cut(text, "\n")
	width := 0
	for g := uniseg.NewGraphemes(line); g.Next(); {
		if width += g.Width(); width > columns {
			from, _ := g.Positions()
			return line[:from] + "…"
		}
	}
	if more != "" {
		line += " …"
	}
	return line
}
