// Package clip shortens text that people see: labels, titles, quotes, errors, log lines. It cuts between characters as people
// see them, so that neither half a letter of UTF-8 nor half an emoji is left. It knows nothing of Parley; every package may use it.
package clip

import (
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// lookBack is how far before a limit the end of a character is looked for. What is longer is not a character that people write,
// and is cut between its code points.
const lookBack = 256

// Runes is s in at most n code points, with … as the last of them where something was cut off.
func Runes(s string, n int) string {
	if len(s) <= n || utf8.RuneCountInString(s) <= n {
		return s
	}
	if n <= 0 {
		return ""
	}
	return First(s, n-1) + "…"
}

// First is the beginning of s in at most n code points.
func First(s string, n int) string {
	end := 0
	for ; n > 0 && end < len(s); n-- {
		_, size := utf8.DecodeRuneInString(s[end:])
		end += size
	}
	return Bytes(s, end)
}

// Bytes is the beginning of s in at most n bytes.
func Bytes(s string, n int) string {
	if n = max(n, 0); len(s) <= n {
		return s
	}
	from := runeStart(s, n-lookBack)
	limit := runeStart(s, n)
	if limit <= from || isPlain(s, limit) {
		return s[:limit]
	}
	end, state := from, -1
	for rest := s[from:min(len(s), runeStart(s, n+lookBack))]; rest != ""; {
		var cluster string
		cluster, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if end+len(cluster) > limit {
			break
		}
		end += len(cluster)
	}
	if end == from && limit-from > lookBack/2 { // one character all the way: so long a one is nobody's
		return s[:limit]
	}
	return s[:end]
}

// isPlain says that a character ends before s[at], as it does between two of ASCII unless they are CR LF.
func isPlain(s string, at int) bool {
	return s[at-1] < utf8.RuneSelf && s[at] < utf8.RuneSelf && s[at-1] != '\r'
}

// runeStart is the start of the code point that s[at] belongs to.
func runeStart(s string, at int) int {
	if at >= len(s) {
		return len(s)
	}
	at = max(at, 0)
	for back := at; back >= 0 && at-back < utf8.UTFMax; back-- {
		if utf8.RuneStart(s[back]) {
			return back
		}
	}
	return at // no UTF-8
}
