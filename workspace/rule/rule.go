// Package rule is what a person may allow for a session: a command that runs again there without a question; and what of a command
// they should look at first. These are values; who may give one, and what it covers, is decided elsewhere.
package rule

import (
	"path"
	"strings"
	"time"
)

// Most is how long a rule for a session lasts at most.
const Most = 8 * time.Hour

// Command is one program with its literal first arguments.
type Command struct {
	Program string        `json:"program"` // as it was resolved
	Stamp   string        `json:"stamp"`   // tells the program's file from one that takes its place
	Args    []string      `json:"args"`    // word for word
	Rest    bool          `json:"rest"`    // any arguments may follow
	For     time.Duration `json:"for"`
	Shown   string        `json:"shown"` // Text, with what is invisible made visible
}

// Granted is a rule that holds, by the approval that it came with.
type Granted struct {
	Approval string
	Command
}

// Danger is a piece of a command that a person should look at twice before they allow it.
type Danger struct {
	Kind string `json:"kind"`           // pipe, remove, outside, network, root, rights, disk, machine, environment, computed, bomb …
	What string `json:"what,omitempty"` // the piece
	Why  string `json:"why"`            // what it does, as the end of a sentence
}

// In is a danger in words, with its piece between quotes, which it cannot end, where it is not the whole command: "removes folders
// with all that is in them: rm -rf build".
func (d Danger) In(whole, quote string) string {
	if d.What == "" || d.What == strings.TrimSpace(whole) {
		return d.Why
	}
	if quote == "`" {
		d.What = strings.ReplaceAll(d.What, quote, "ˋ")
	}
	return d.Why + ": " + quote + d.What + quote
}

// Lasts is for how long the rule is good.
func (c Command) Lasts() time.Duration { return min(c.For, Most) }

// Until is when a rule is over that was given at a time; zero: there is none, or not given yet.
func (c *Command) Until(given time.Time) time.Time {
	if c == nil || given.IsZero() {
		return time.Time{}
	}
	return given.Add(c.Lasts())
}

// Says is what the rule lets run, in words; empty: there is none.
func (c *Command) Says() string {
	if c == nil {
		return ""
	}
	return c.Shown
}

// Text is the rule as people read it: git status …
func (c Command) Text() string {
	var b strings.Builder
	b.WriteString(Word(path.Base(c.Program)))
	for _, a := range c.Args {
		b.WriteString(" " + Word(a))
	}
	if c.Rest {
		b.WriteString(" …")
	}
	return b.String()
}

const bare = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/:=,@+%-"

// Word is a text as one word of a command line.
func Word(s string) string {
	if s != "" && strings.Trim(s, bare) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// Span is a length of time for people: 8h, 30m, 1m30s.
func Span(d time.Duration) string {
	s := d.Round(time.Second).String()
	if t, ok := strings.CutSuffix(s, "m0s"); ok {
		s = t + "m"
	}
	if t, ok := strings.CutSuffix(s, "h0m"); ok {
		s = t + "h"
	}
	return s
}
