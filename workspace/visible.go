package workspace

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"parley/workspace/clip"
)

// Visible makes text of strangers (file content, file names, tool output) safe to show: control characters become
// their pictures (ESC is ␛), bidi controls and tag characters become ⟦U+202E⟧, bytes that are no UTF-8 become
// U+FFFD. Tab and line feed stay; CR LF becomes LF. Clean text is returned as it is.
func Visible(s string) string {
	if isVisible(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	for i, r := range s { // an invalid byte comes as U+FFFD
		switch {
		case r == '\r' && strings.HasPrefix(s[i+1:], "\n"):
		case !hidden(r):
			b.WriteRune(r)
		case r < 0x20:
			b.WriteRune(0x2400 + r)
		case r == 0x7f:
			b.WriteRune(0x2421)
		default:
			fmt.Fprintf(&b, "⟦U+%04X⟧", r)
		}
	}
	return b.String()
}

// Exact is Visible for what a person is asked to decide about: what takes no room, or looks like a space and is none, is
// made visible too. Other texts keep it, since names and emoji are written with it.
func Exact(s string) string {
	var b strings.Builder
	for _, r := range Visible(s) {
		if unseen(r) {
			fmt.Fprintf(&b, "⟦U+%04X⟧", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// unseen holds for format characters, spaces that are not the usual one, variation selectors and the fillers of Hangul.
func unseen(r rune) bool {
	switch {
	case r < 0x80:
		return false
	case unicode.In(r, unicode.Cf, unicode.Zs, unicode.Zl, unicode.Zp, unicode.Variation_Selector):
		return true
	}
	return r == 0x034f || r == 0x115f || r == 0x1160 || r == 0x2800 || r == 0x3164 || r == 0xffa0
}

// Line is Visible on one line of at most n characters and …, for labels: names, paths, titles.
func Line(s string, n int) string {
	return strings.ReplaceAll(strings.ReplaceAll(Visible(clip.Runes(s, n+1)), "\n", "␊"), "\t", "␉")
}

func isVisible(s string) bool {
	for _, r := range s {
		if r == utf8.RuneError || hidden(r) {
			return false
		}
	}
	return true
}

// hidden says that a reader or a terminal would act on r rather than show it.
func hidden(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < 0x20, r >= 0x7f && r <= 0x9f: // C0, DEL, C1
		return true
	}
	return isBidi(r) || r >= 0xe0000 && r <= 0xe007f // tags: letters that nobody sees
}

// isBidi: the marks, embeddings, overrides and isolates of Unicode's bidirectional algorithm (UAX #9 §2).
func isBidi(r rune) bool {
	return r == 0x061c || r == 0x200e || r == 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// Plural is a number of things.
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
