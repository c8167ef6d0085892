package workspace

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// A text can carry a secret that no reader and no program would miss there: with marks of Markdown or characters that take
// no room in between, in other letters of the same look, in capitals, each character escaped by number. So what is looked
// through a second time is the text reduced: escapes are resolved, letters and digits of ASCII are kept in lower case, and
// all else is left out.

// minReduced is the shortest reduced secret that is looked for, in characters: a shorter one would be found across words.
const minReduced = 16

// kept is what is kept of a byte; 0: nothing; special: it must be looked at with those behind it.
var kept = func() (t [256]byte) {
	for c := range t {
		if c >= utf8.RuneSelf || strings.IndexByte(`%\&`, byte(c)) >= 0 {
			t[c] = special
		}
	}
	for c := byte('0'); c <= '9'; c++ {
		t[c] = c
	}
	for c := byte('a'); c <= 'z'; c++ {
		t[c], t[c-'a'+'A'] = c, c
	}
	return t
}()

const special = 0xff

var reducing = sync.Pool{New: func() any { b := make([]byte, 0, 4096); return &b }}

// reduce is the reduced text, in b as far as it has room.
func reduce(b []byte, text string) []byte {
	b = slices.Grow(b[:0], len(text))[:len(text)]
	j := 0
	for i := 0; i < len(text); {
		k := kept[text[i]]
		if k != special {
			b[j] = k
			if i++; k != 0 {
				j++
			}
			continue
		}
		var n int
		b, n = reduceSpecial(b[:j], text[i:])
		j, i = len(b), i+n
		b = slices.Grow(b, len(text)-i)[:j+len(text)-i] // a character may stand for several letters
	}
	return b[:j]
}

// places are where in text each byte of the reduced text comes from.
func places(text string) (list [][2]int) {
	for i := 0; i < len(text); {
		k, n := kept[text[i]], 1
		if k == special {
			var out []byte
			out, n = reduceSpecial(nil, text[i:])
			for range out {
				list = append(list, [2]int{i, i + n})
			}
		} else if k != 0 {
			list = append(list, [2]int{i, i + 1})
		}
		i += n
	}
	return list
}

// reduceSpecial appends what is kept of the escape or the character outside of ASCII at the beginning of text, which takes n bytes.
func reduceSpecial(b []byte, text string) (_ []byte, n int) {
	r, n := escape(text)
	if text[0] >= utf8.RuneSelf {
		r, n = utf8.DecodeRuneInString(text)
	}
	var in, out [64]byte
	for _, c := range norm.NFKC.Append(out[:0], utf8.AppendRune(in[:0], r)...) { // full-width, mathematical and enclosed letters are letters
		if k := kept[c]; k != special && k != 0 {
			b = append(b, k)
		}
	}
	return b, n
}

// escape is the character that an escape at the beginning of text stands for, and its length: %2d, \x2d, \u002d, &#45; and
// &#x2d;. What is none stands for itself. A name such as &quot; is not a letter.
func escape(text string) (r rune, n int) {
	number := func(from, to, base int) (rune, bool) {
		if to > len(text) || from >= to {
			return 0, false
		}
		v, err := strconv.ParseUint(text[from:to], base, 21)
		return rune(v), err == nil
	}
	switch text[0] {
	case '%':
		if r, ok := number(1, 3, 16); ok {
			return r, 3
		}
	case '\\':
		if len(text) > 1 && text[1] == 'x' {
			if r, ok := number(2, 4, 16); ok {
				return r, 4
			}
		}
		if len(text) > 1 && text[1] == 'u' {
			if r, ok := number(2, 6, 16); ok {
				return r, 6
			}
		}
	case '&':
		end := strings.IndexByte(text[:min(len(text), 12)], ';')
		switch {
		case end < 2:
		case text[1] != '#':
			if strings.Trim(text[1:end], letters) == "" {
				return '&', end + 1
			}
		case text[2]|0x20 == 'x':
			if r, ok := number(3, end, 16); ok {
				return r, end + 1
			}
		default:
			if r, ok := number(2, end, 10); ok {
				return r, end + 1
			}
		}
	}
	return rune(text[0]), 1
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// reducedForms are forms as they are when they are reduced.
func reducedForms(known map[string]bool) map[string]bool {
	out := map[string]bool{}
	for form := range known {
		if r := reduce(nil, form); len(r) >= minReduced {
			out[string(r)] = true
		}
	}
	return out
}

// revealed masks what a text holds of secrets once it is reduced.
func (n *needles) revealed(text string) string {
	if n.reduced == nil || len(text) < minReduced {
		return text
	}
	buf := reducing.Get().(*[]byte)
	*buf = reduce(*buf, text)
	hit := may(n.reduced, *buf)
	if cap(*buf) <= 1<<20 {
		reducing.Put(buf)
	}
	if !hit {
		return text
	}
	at, flat := places(text), string(reduce(nil, text))
	var b strings.Builder
	done := 0
	for i := 0; i < len(flat); {
		from, to := n.reduced.next(flat[i:])
		if to == 0 {
			break
		}
		begin, end := at[i+from][0], at[i+to-1][1]
		if begin >= done {
			b.WriteString(text[done:begin])
			b.WriteString(Masked)
		}
		done, i = end, i+to
	}
	if done == 0 {
		return text
	}
	return b.String() + text[done:]
}

// next is where the first form begins and ends in text; to is 0: there is none.
func (n *needles) next(text string) (from, to int) {
	for i := range len(text) {
		for _, form := range n.starts[text[i]] {
			if strings.HasPrefix(text[i:], form) && len(form) > to-from {
				from, to = i, i+len(form)
			}
		}
		if to > 0 {
			return from, to
		}
	}
	return 0, 0
}
