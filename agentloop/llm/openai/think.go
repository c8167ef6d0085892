package openai

import "strings"

// thinkTag takes private reasoning out of an answer that begins with <think>…</think>, as local servers send it
// that do not know the model's template. A tag anywhere else is text.
type thinkTag struct {
	state thinkState
	held  string // may be the beginning of a tag
}

type thinkState int

const (
	thinkStart  thinkState = iota // nothing but white space yet
	thinkInside                   // after <think>
	thinkAfter                    // after </think>: white space is dropped
	thinkOver                     // the rest is text
)

const (
	thinkOpen  = "<think>"
	thinkClose = "</think>"
)

// split says which part of the next piece is text and which is reasoning.
func (t *thinkTag) split(s string) (text, thought string) {
	if t.state == thinkOver || s == "" {
		return s, ""
	}
	s, t.held = t.held+s, ""
	if t.state == thinkStart {
		lead := strings.TrimLeft(s, " \t\r\n")
		switch {
		case strings.HasPrefix(lead, thinkOpen):
			t.state, s = thinkInside, lead[len(thinkOpen):]
		case strings.HasPrefix(thinkOpen, lead):
			t.held = s
			return "", ""
		default:
			t.state = thinkOver
			return s, ""
		}
	}
	if t.state == thinkInside {
		before, after, found := strings.Cut(s, thinkClose)
		if !found {
			keep := overlap(s, thinkClose)
			t.held = s[len(s)-keep:]
			return "", s[:len(s)-keep]
		}
		t.state, thought, s = thinkAfter, before, after
	}
	if s = strings.TrimLeft(s, " \t\r\n"); s != "" {
		t.state = thinkOver
	}
	return s, thought
}

// rest is what was held back when the answer ended.
func (t *thinkTag) rest() (text, thought string) {
	s := t.held
	t.held = ""
	if t.state == thinkInside {
		return "", s
	}
	return s, ""
}

// overlap is the length of the longest end of s that tag begins with.
func overlap(s, tag string) int {
	for n := min(len(s), len(tag)-1); n > 0; n-- {
		if strings.HasSuffix(s, tag[:n]) {
			return n
		}
	}
	return 0
}
