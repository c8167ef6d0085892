package markup

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"parley/channels"
)

// breaking is a line break that is held back until text follows.
type breaking uint8

const (
	soft breaking = iota + 1
	hard
)

// inline writes a paragraph or a heading.
func (w *writer) inline(l *leaf, runs []run) {
	var base *mark
	if l.kind == heading {
		w.single = l.level <= w.levels
		if w.single {
			w.next += strings.Repeat("#", l.level) + " "
		} else {
			base = &mark{kind: bold}
		}
	}
	if len(runs) == 0 {
		w.prefix()
	}
	for i := 0; i < len(runs) && !w.full(); i++ {
		i = w.one(runs, i, base)
	}
	w.end()
	w.single = false
}

// end closes all looks and forgets the blanks after them.
func (w *writer) end() {
	for len(w.open) > 0 {
		w.pop()
	}
	w.spaces, w.brk, w.stop = 0, 0, 0
}

// one writes runs[i], and with it all that must be written in one go. It returns the last run it wrote.
func (w *writer) one(runs []run, i int, base *mark) int {
	r := &runs[i]
	switch r.kind {
	case breakRun:
		w.lineBreak(r.hard)
		return i
	}
	if r.mark.within(inlineCode) {
		end := i
		for end < len(runs) && runs[end].kind == textRun && runs[end].mark == r.mark {
			end++
		}
		w.looks(r.mark, base)
		w.codeSpan(runText(runs[i:end]))
		return end - 1
	}
	w.looks(r.mark, base)
	if l := r.mark.target(); l != nil && w.family == marked && l.href == r.text {
		w.settle()
		w.b = append(append(append(w.b, '<'), r.text...), '>')
		w.text, w.digits, w.stop = true, false, 0
		return i
	}
	w.str(r.text)
	return i
}

func (w *writer) lineBreak(asked bool) {
	switch {
	case w.single || w.cell:
		w.spaces++
	case asked:
		w.brk = hard
	default:
		w.brk = max(w.brk, soft)
	}
}

// looks sets how the text that follows is to look.
func (w *writer) looks(m, base *mark) {
	w.want = w.want[:0]
	for ; m != nil; m = m.up {
		switch m.kind {
		case inlineCode, linked:
		case bold:
			if base == nil && w.bold != "" {
				w.want = append(w.want, m)
			}
		case italic:
			if w.italic != "" {
				w.want = append(w.want, m)
			}
		case strike:
			if w.strike != "" {
				w.want = append(w.want, m)
			}
		}
	}
	if base != nil && w.bold != "" {
		w.want = append(w.want, base)
	}
	for i, j := 0, len(w.want)-1; i < j; i, j = i+1, j-1 {
		w.want[i], w.want[j] = w.want[j], w.want[i]
	}
}

// settle writes what was held back and opens and closes looks, so that text can follow.
func (w *writer) settle() {
	keep := 0
	for keep < len(w.open) && keep < len(w.want) && alike(w.open[keep], w.want[keep]) {
		keep++
	}
	if w.brk != 0 && w.perLine {
		keep = 0
	}
	for len(w.open) > keep {
		w.pop()
	}
	if w.brk != 0 && w.text {
		if w.brk == hard && w.dialect == channels.Markdown {
			w.b = append(w.b, '\\')
		}
		w.newline()
	}
	w.brk = 0
	w.prefix()
	if w.spaces > 0 {
		w.b = append(w.b, strings.Repeat(" ", w.spaces)...)
		w.spaces, w.stop, w.digits = 0, 0, false
	}
	for _, m := range w.want[keep:] {
		w.push(m)
	}
}

func alike(a, b *mark) bool {
	return a.kind == b.kind && a.link == b.link
}

func (w *writer) delimiter(k markKind) string {
	switch k {
	case bold:
		return w.bold
	case italic:
		return w.italic
	default:
		return w.strike
	}
}

func (w *writer) push(m *mark) {
	w.open, w.stop = append(w.open, m), 0
	switch {
	case w.family == html:
		w.b = append(w.b, "<"+w.delimiter(m.kind)+">"...)
	default:
		w.b = append(w.b, w.delimiter(m.kind)...)
	}
}

func (w *writer) pop() {
	m := w.open[len(w.open)-1]
	w.open, w.stop = w.open[:len(w.open)-1], 0
	switch {
	case w.family == html:
		w.b = append(w.b, "</"+w.delimiter(m.kind)+">"...)
	default:
		w.b = append(w.b, w.delimiter(m.kind)...)
	}
}

// codeSpan writes code within a line. In Telegram code can neither hold nor be part of another look.
func (w *writer) codeSpan(s string) {
	s = strings.ReplaceAll(cleaned(s), "\n", " ")
	switch {
	case !visible(s) || w.code == 0 || w.family == bare && strings.Contains(s, "`"):
		w.str(s)
		return
	case w.family == html:
		w.want = w.want[:0]
		w.settle()
		w.b = append(w.b, "<code>"...)
		for _, r := range s {
			w.htmlRune(r)
		}
		w.b = append(w.b, "</code>"...)
	default:
		w.settle()
		if w.cell {
			s = strings.ReplaceAll(s, "|", `\|`)
		}
		fence, s := ticks(s, 1, w.code)
		if s[0] == '`' || s[len(s)-1] == '`' || s[0] == ' ' && s[len(s)-1] == ' ' {
			s = " " + s + " "
		}
		w.b = append(append(append(w.b, fence...), s...), fence...)
	}
	w.text, w.digits, w.stop = true, false, 0
}

// ticks is a fence of at least least backticks that s does not end. Where that would need more than most,
// long runs of backticks in s are broken up.
func ticks(s string, least, most int) (fence, safe string) {
	longest, n := 0, 0
	for i := 0; i < len(s); i++ {
		if s[i] != '`' {
			n = 0
			continue
		}
		n++
		longest = max(longest, n)
	}
	if longest < least {
		return strings.Repeat("`", least), s
	}
	if longest < most {
		return strings.Repeat("`", longest+1), s
	}
	run := strings.Repeat("`", most)
	for strings.Contains(s, run) {
		s = strings.ReplaceAll(s, run, run[1:]+joiner+"`")
	}
	return run, s
}

// str writes text, escaped.
func (w *writer) str(s string) {
	for i := 0; i < len(s); {
		if n := word(s[i:]); n > 0 {
			w.settle()
			w.b = append(w.b, s[i:i+n]...)
			w.text, w.hidden, w.stop = true, 0, 0
			w.digits = w.digits && strings.Trim(s[i:i+n], "0123456789") == ""
			i += n
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		i += size
		switch r = clean(r, size); r {
		case 0:
			continue
		case '\n':
			w.lineBreak(false)
			continue
		case ' ', '\t':
			if w.text && w.brk == 0 {
				w.spaces++
			}
			continue
		}
		if !hidden(r) {
			w.hidden = 0
		} else if w.hidden++; w.hidden > maxHidden {
			continue
		}
		w.settle()
		switch w.family {
		case html:
			w.htmlRune(r)
		case marked:
			w.markedRune(r, s[i:])
		default:
			// There are no escapes here: a stray fence would swallow the next block.
			if r == '`' && w.fence > 0 && bytes.HasSuffix(w.b, []byte("``")) {
				w.b = append(w.b, joiner...)
			}
			w.b = utf8.AppendRune(w.b, r)
		}
		w.text, w.digits = true, false
	}
}

// word is how many letters and digits s begins with: they are the same in every dialect.
func word(s string) int {
	n := 0
	for n < len(s) && s[n] < utf8.RuneSelf && isAlnum(s[n]) {
		n++
	}
	return n
}

func (w *writer) htmlRune(r rune) {
	switch r {
	case '&':
		w.b = append(w.b, "&amp;"...)
	case '<':
		w.b = append(w.b, "&lt;"...)
	case '>':
		w.b = append(w.b, "&gt;"...)
	default:
		w.b = utf8.AppendRune(w.b, r)
	}
}

// markedRune writes a character of text, escaped where it could be read as markup. rest is what follows in
// its run; what follows the run is not known.
func (w *writer) markedRune(r rune, rest string) {
	stop := w.stop
	w.stop = 0
	if r >= utf8.RuneSelf {
		w.b = utf8.AppendRune(w.b, r)
		return
	}
	var next byte
	if rest != "" {
		next = rest[0]
	}
	c := byte(r)
	switch {
	case c == '<' && w.dialect == channels.Slack:
		w.b = append(w.b, "&lt;"...)
		return
	case c == '>' && w.dialect == channels.Slack && !w.text:
		w.b = append(w.b, "&gt;"...)
		return
	case c == '&' && w.dialect != channels.Discord && (next == 0 || next == '#' || isAlnum(next)):
		w.b = append(w.b, "&amp;"...)
		return
	case w.escapes(c, next) || c == '(' && stop == ']':
		w.b = append(w.b, '\\', c)
		return
	}
	w.b = append(w.b, c)
	w.stop = c
}

// escapes says whether a character needs a backslash before it. next is 0 if it is not known.
func (w *writer) escapes(c, next byte) bool {
	var prev byte = '\n'
	if w.text && len(w.b) > 0 {
		prev = w.b[len(w.b)-1]
	}
	blankNext := next == 0 || next == ' ' || next == '\t'
	switch c {
	case '\\':
		return next == 0 || isPunct(next)
	case '`':
		return true
	case '*', '~':
		return prev != ' ' || next != ' '
	case '_':
		return !(isAlnum(prev) && isAlnum(next)) && (prev != ' ' || next != ' ')
	case '[':
		return !w.text
	case ']':
		return next == '(' || next == '[' || next == ':'
	case '<':
		return next == 0 || isAlnum(next) || strings.IndexByte("/!?@#:&", next) >= 0
	case '>':
		return !w.text
	case '#':
		return !w.text || w.single && next == 0
	case '+':
		return !w.text && blankNext
	case '-', '=':
		return !w.text && (blankNext || next == c || next == '#')
	case '.', ')':
		return w.text && w.digits && blankNext
	case '|':
		return w.cell || !w.text || prev == '|' || next == '|'
	case ':':
		return !w.text && (next == '-' || next == 0)
	}
	return false
}

func isAlnum(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= utf8.RuneSelf
}

func isPunct(c byte) bool {
	return c > ' ' && c < 0x7f && !isAlnum(c)
}

// quiet breaks up mass mentions: everything that Slack and Discord would read as one, wherever it stands,
// since neither asks whether it stands in code.
func (w *writer) quiet(b []byte) []byte {
	if w.dialect != channels.Slack && w.dialect != channels.Discord || bytes.IndexByte(b, '@') < 0 && bytes.IndexByte(b, '!') < 0 {
		return b
	}
	out := make([]byte, 0, len(b)+16)
	for i, c := range b {
		out = append(out, c)
		rest := b[i+1:]
		switch {
		case c == '@' && startsWithAny(rest, "everyone", "here", "channel"),
			c == '<' && startsWithAny(rest, "@", "!everyone", "!here", "!channel", "!group", "!subteam"),
			c == ';' && bytes.HasSuffix(b[:i+1], []byte("&lt;")) && startsWithAny(rest, "@", "!"):
			out = append(out, joiner...)
		}
	}
	return out
}

func startsWithAny(b []byte, words ...string) bool {
	for _, w := range words {
		if len(b) >= len(w) && strings.EqualFold(string(b[:len(w)]), w) {
			return true
		}
	}
	return false
}
