package agentloop

import (
	"strings"
	"unicode"

	"parley/workspace"
)

// Where several people write, each message begins with a line [Name] of the gateway's own. What people write can hold
// such a line as well, in their own name or in another's: it is told apart by a mark. No right hangs on a name, but a
// model that reads another's words as an owner's would be misled.

// speechMark stands before a line of a person's text that could pass for a line of the gateway's, or begins with this
// mark: without it the line is as it was written.
const speechMark = `\`

// brackets are the characters that begin a name's line, or look as if they did.
const brackets = "[［【〔〖〘〚⁅⟦⟬⦋⦍⦏❲⎡⎢⎣⌈⌊⸢⸤⹕⹗⹙⹛﹇﹝︗︹︻⊏⊑"

// nameLine is the line by which the message of one of several people begins.
func nameLine(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case strings.ContainsRune(brackets, r), unicode.Is(unicode.Ps, r):
			return '('
		case unicode.Is(unicode.Pe, r):
			return ')'
		}
		return r
	}, workspace.Line(name, 60))
	return "[" + name + "]\n"
}

// spoken is what a person wrote among several, in which no line can pass for another's name, nor for a block of material.
func spoken(text string) string {
	if strings.Contains(text, "<") {
		text = outsideTag().ReplaceAllString(text, "‹$1")
	}
	if !strings.ContainsAny(text, brackets+speechMark) {
		return text
	}
	var b strings.Builder
	for line := range lines(text) {
		if first := strings.TrimLeftFunc(line, blank); first != "" && strings.ContainsAny(firstRune(first), brackets+speechMark) {
			b.WriteString(speechMark)
		}
		b.WriteString(line)
	}
	return b.String()
}

// lines cuts a text behind all that anybody may take for the end of a line.
func lines(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for text != "" {
			i := strings.IndexFunc(text, endsLine)
			if i < 0 {
				yield(text)
				return
			}
			i += len(firstRune(text[i:]))
			if !yield(text[:i]) {
				return
			}
			text = text[i:]
		}
	}
}

func firstRune(s string) string {
	for i := range s {
		if i > 0 {
			return s[:i]
		}
	}
	return s
}

func endsLine(r rune) bool { return strings.ContainsRune("\n\r\v\f\u0085\u2028\u2029", r) }

// blank says that a character shows nothing before what stands behind it.
func blank(r rune) bool {
	return unicode.IsSpace(r) || unicode.In(r, unicode.Cf, unicode.Cc, unicode.Mn, unicode.Me, unicode.Zs) || strings.ContainsRune("\u115f\u1160\u2800\u3164\uffa0\ufffd", r)
}

// spokenPiece is spoken for a piece of a message: the first is its text, others are labels of files in the gateway's own
// words, and what was said in a recording.
func spokenPiece(i int, c workspace.Content) workspace.Content {
	label := i > 0 && strings.HasPrefix(c.Text, "[attached ") && !strings.ContainsFunc(c.Text, endsLine)
	if c.Kind == workspace.Text && !label {
		c.Text = spoken(c.Text)
	}
	return c
}
