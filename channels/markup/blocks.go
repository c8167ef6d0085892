package markup

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// block writes what is shown with a fixed pitch, inside a fence where there are fences.
func (w *writer) block(l *leaf, body func()) {
	if w.family == html && strings.TrimSpace(w.next) == "" {
		w.next = "" // a block is not moved in by blanks
	}
	w.prefix()
	w.begin, w.blanks = len(w.b), w.blanks[:0]
	body()
	raw := string(w.b[w.begin:])
	w.b = w.b[:w.begin]
	switch {
	case !visible(raw):
	case w.family == html:
		w.pre(l, raw)
	case w.fence == 0:
		w.put(raw)
	default:
		fence, raw := ticks(raw, 3, w.fence)
		w.b = append(w.b, fence...)
		if w.family == marked {
			w.b = append(w.b, l.lang...)
		}
		w.put("\n" + raw)
		w.b = append(w.b, '\n')
		w.bol = true
		w.prefix()
		w.b = append(w.b, fence...)
	}
	w.bol = false
}

// maxIndent is how many blanks a block may begin with; more are not meant to be seen.
const maxIndent = 256

// add writes a piece of a block. Blanks wait for text, so that those at the end are never written; empty
// lines at the begin are left out.
func (w *writer) add(s string) {
	if !visible(s) {
		w.blanks = append(w.blanks, s...)
		return
	}
	text := strings.TrimRight(s, " \n\t")
	lead := string(w.blanks)
	if len(w.b) == w.begin {
		lead = lead[strings.LastIndexByte(lead, '\n')+1:]
		if bare := strings.TrimLeft(text, " \t"); len(lead)+len(text)-len(bare) > maxIndent {
			lead, text = "", bare
		}
	}
	w.b = append(append(w.b, lead...), text...)
	w.blanks = append(w.blanks[:0], s[len(strings.TrimRight(s, " \n\t")):]...)
}

// pre is a block in Telegram's HTML.
func (w *writer) pre(l *leaf, raw string) {
	w.b = append(w.b, "<pre>"...)
	if l.lang != "" {
		w.b = append(w.b, `<code class="language-`+l.lang+`">`...)
	}
	for _, r := range raw {
		w.htmlRune(r)
	}
	if l.lang != "" {
		w.b = append(w.b, "</code>"...)
	}
	w.b = append(w.b, "</pre>"...)
}

// put writes lines, each after its prefix. The first line's prefix is written already.
func (w *writer) put(raw string) {
	for i, line := range strings.Split(raw, "\n") {
		if i > 0 {
			w.b = append(w.b, '\n')
			w.bol = true
		}
		w.prefix()
		if line == "" {
			w.b = bytes.TrimRight(w.b, " ")
		}
		w.b = append(w.b, line...)
	}
}

// lines collects code as it is, cleaned.
func (w *writer) lines(runs []run) {
	for i := range runs {
		w.add(cleaned(runs[i].text))
		if w.full() {
			return
		}
	}
}

// cleaned is code without what may not be shown.
func cleaned(s string) string {
	if isClean(s) {
		return s
	}
	s = strings.ReplaceAll(s, "\r\n", "\n")
	var out strings.Builder
	blind := 0
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		i += size
		if r = clean(r, size); r == 0 {
			continue
		}
		if !hidden(r) || r < 0x7f {
			blind = 0
		} else if blind++; blind > maxHidden {
			continue
		}
		out.WriteRune(r)
	}
	return out.String()
}

func isClean(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' && c != '\n' && c != '\t' || c >= 0x7f {
			return false
		}
	}
	return true
}

// grid collects a table as aligned text.
func (w *writer) grid(l *leaf, runs []run) {
	for i := range runs {
		r := &runs[i]
		switch r.kind {
		case cellRun:
			w.add(strings.Repeat(" ", r.pad) + " | ")
		case rowRun:
			w.add("\n")
		case headRun:
			w.add("\n" + ruler(l.cols) + "\n")
		default:
			w.add(strings.ReplaceAll(cleaned(r.text), "\n", " "))
		}
		if w.full() {
			return
		}
	}
}

// rows writes a table as Markdown. A part that does not hold the head gets an empty one.
func (w *writer) rows(l *leaf, runs []run) {
	w.cell = true
	defer func() { w.cell = false }()
	continued := false
	for i := range l.runs {
		if l.runs[i].kind == headRun {
			continued = l.runs[i].from < w.span.From
			break
		}
	}
	if continued {
		w.prefix()
		w.b = append(w.b, strings.Repeat("| ", len(l.cols))...)
		w.b = append(w.b, '|')
		w.newline()
		w.prefix()
		w.b = append(w.b, delimiterRow(l.cols)...)
		w.newline()
	}
	begun := false
	for i := 0; i < len(runs); i++ {
		r := &runs[i]
		if !begun {
			w.prefix()
			w.b = append(w.b, strings.Repeat("| ", r.col+1)...)
			begun = true
		}
		switch r.kind {
		case cellRun:
			w.end()
			w.b = append(w.b, " | "...)
		case rowRun, headRun:
			w.end()
			w.b = append(w.b, " |"...)
			w.newline()
			begun = false
			if r.kind == headRun {
				w.prefix()
				w.b = append(w.b, delimiterRow(l.cols)...)
				w.newline()
			}
		default:
			i = w.one(runs, i, nil)
		}
		if w.full() {
			return
		}
	}
	w.end()
	if begun {
		w.b = append(w.b, " |"...)
	}
}
