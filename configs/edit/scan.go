// Where scalars and flows end. A parsed node tells only where it begins.

package edit

import "strings"

// flows are the entries of a [ ] or { }, and where it ends.
type flows struct {
	entries []span
	end     int
}

// scanFlow reads the flow collection that begins at a byte.
func scanFlow(text string, at int) (f flows) {
	depth, from, last := 0, -1, -1
	close := func() {
		if from >= 0 {
			f.entries = append(f.entries, span{from, last})
		}
		from = -1
	}
	touch := func(a, b int) {
		if from < 0 {
			from = a
		}
		last = b
	}
	for i := at; i < len(text); {
		c := text[i]
		switch {
		case c == ' ' || c == '\t' || c == '\n':
			i++
		case c == '#' && i > 0 && strings.IndexByte(" \t\n", text[i-1]) >= 0:
			for i < len(text) && text[i] != '\n' {
				i++
			}
		case c == '[' || c == '{':
			depth++
			if depth > 1 {
				touch(i, i+1)
			}
			i++
		case c == ']' || c == '}':
			depth--
			i++
			if depth == 0 {
				close()
				f.end = i
				return f
			}
			touch(i-1, i)
		case c == ',':
			if depth == 1 {
				close()
			}
			i++
		default:
			end := max(i+1, scalarEnd(text, i, false))
			touch(i, end)
			i = end
		}
	}
	f.end = len(text)
	return f
}

// scalarEnd is where a scalar ends: a quoted one behind its quote, a plain one on its line before what cannot belong to it.
func scalarEnd(text string, at int, inBlock bool) int {
	if at >= len(text) {
		return at
	}
	switch text[at] {
	case '"':
		for i := at + 1; i < len(text); i++ {
			switch text[i] {
			case '\\':
				i++
			case '"':
				return i + 1
			}
		}
		return len(text)
	case '\'':
		for i := at + 1; i < len(text); i++ {
			if text[i] == '\'' {
				if i+1 < len(text) && text[i+1] == '\'' {
					i++
					continue
				}
				return i + 1
			}
		}
		return len(text)
	}
	for i := at; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\n':
			return plainEnd(text, at, i)
		case c == '#' && i > at && (text[i-1] == ' ' || text[i-1] == '\t'):
			return plainEnd(text, at, i)
		case c == ':' && (i+1 == len(text) || strings.IndexByte(" \t\n", text[i+1]) >= 0 ||
			!inBlock && strings.IndexByte(",[]{}", text[i+1]) >= 0):
			if i == at {
				return at + 1
			}
			return plainEnd(text, at, i)
		case !inBlock && strings.IndexByte(",[]{}", c) >= 0:
			return plainEnd(text, at, i)
		}
	}
	return plainEnd(text, at, len(text))
}

// plainEnd is where plain text between two bytes of one line ends: before a comment and the blanks in front of it.
func plainEnd(text string, from, to int) int {
	line := text[from:to]
	for i := 1; i < len(line); i++ {
		if line[i] == '#' && (line[i-1] == ' ' || line[i-1] == '\t') {
			line = line[:i]
			break
		}
	}
	return from + len(strings.TrimRight(line, " \t"))
}
