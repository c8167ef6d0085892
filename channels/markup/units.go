package markup

import (
	"unicode"
	"unicode/utf8"

	"parley/channels"
)

// joiner breaks up what a network would read as a mention or a delimiter. It is invisible.
const joiner = "\u200d"

// Units is the length of s as a network counts it. An unknown unit counts as bytes, the strictest.
func Units(s string, u channels.Unit) int {
	switch u {
	case channels.UTF16:
		n := 0
		for _, r := range s {
			n += utf16Len(r)
		}
		return n
	case channels.Runes:
		return utf8.RuneCountInString(s)
	default:
		return len(s)
	}
}

// utf16Len is 2 outside the basic plane; an invalid byte counts as the U+FFFD that replaces it.
func utf16Len(r rune) int {
	if r >= 0x10000 {
		return 2
	}
	return 1
}

// seenUnits counts HTML as Telegram does: after its tags and entities are parsed.
func seenUnits(html []byte, u channels.Unit) int {
	n := 0
	for i := 0; i < len(html); {
		switch c := html[i]; {
		case c == '<':
			for i < len(html) && html[i] != '>' {
				i++
			}
			i++
		case c == '&':
			for i < len(html) && html[i] != ';' {
				i++
			}
			i++
			n++
		case c < utf8.RuneSelf:
			i++
			n++
		default:
			r, size := utf8.DecodeRune(html[i:])
			i += size
			n += runeUnits(r, size, u)
		}
	}
	return n
}

// countUnits is Units of bytes.
func countUnits(b []byte, u channels.Unit) int {
	if u != channels.UTF16 && u != channels.Runes {
		return len(b)
	}
	n := 0
	for i := 0; i < len(b); {
		if b[i] < utf8.RuneSelf {
			i++
			n++
			continue
		}
		r, size := utf8.DecodeRune(b[i:])
		i += size
		n += runeUnits(r, size, u)
	}
	return n
}

func runeUnits(r rune, size int, u channels.Unit) int {
	switch u {
	case channels.UTF16:
		return utf16Len(r)
	case channels.Runes:
		return 1
	default:
		return size
	}
}

// clean is r as it may be shown: 0 leaves it out. Line feeds and tabs are the caller's to treat.
// The list of overrides is that of CVE-2021-42574; the marks U+200E, U+200F and U+061C, which only help a
// neighbouring character, stay.
func clean(r rune, size int) rune {
	switch {
	case r >= ' ' && r < 0x7f || r == '\t' || r == '\n':
		return r
	case r == '\r':
		return ' '
	case r < 0x20 || r >= 0x7f && r < 0xa0 || r == utf8.RuneError && size == 1:
		return utf8.RuneError
	case r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069:
		return 0
	case r == 0x2028 || r == 0x2029:
		return ' '
	default:
		return r
	}
}

// maxHidden is how many characters in a row may show nothing: a flag needs seven, hiding a message thousands.
const maxHidden = 16

// hidden says whether r shows nothing by itself. The letters are fillers that fonts leave blank.
func hidden(r rune) bool {
	switch {
	case r < 0x7f:
		return r <= ' '
	case r == 0x034f || r == 0x115f || r == 0x1160 || r == 0x2800 || r == 0x3164 || r == 0xffa0:
		return true
	default:
		return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Variation_Selector, r)
	}
}

// visible says whether s shows anything.
func visible(s string) bool {
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		i += size
		if r = clean(r, size); r != 0 && !hidden(r) {
			return true
		}
	}
	return false
}
