// One call of a tool on one line.

package printer

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/cmd/parley/internal/cli"
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
	return strings.TrimSpace(cli.Visible(c.name) + " " + cli.Cut(c.arg, 60))
}

// done is the call with its result.
func (c card) done(result string, failed bool, at time.Time) string {
	took := ""
	if !c.since.IsZero() {
		took = "  " + cli.Length(max(0, at.Sub(c.since))) // what is watched live may be a moment ahead of the record
	}
	lines := strings.Split(strings.TrimSpace(cli.Bare(result)), "\n")
	said := cli.Cut(lines[0], 60)
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
