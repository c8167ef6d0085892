// Texts as people see them on a terminal.

package cli

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/rivo/uniseg"
)

// Visible makes text of strangers safe for a terminal: only line feeds and tabs stay of what controls it.
func Visible(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r':
			return -1
		case r < 0x20:
			return 0x2400 + r
		case unicode.Is(unicode.Cc, r), unicode.Is(unicode.Bidi_Control, r), r == '\u2028', r == '\u2029', r >= 0xE0000 && r <= 0xE007F:
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// VisibleText is visible over lines.
func VisibleText(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = Visible(lines[i])
	}
	return strings.Join(lines, "\n")
}

// Cut is the first line of text in at most so many columns.
func Cut(text string, columns int) string {
	text = strings.ReplaceAll(Visible(text), "\t", " ")
	line, more, _ := strings.Cut(text, "\n")
	width := 0
	for g := uniseg.NewGraphemes(line); g.Next(); {
		if width += g.Width(); width > columns {
			from, _ := g.Positions()
			return line[:from] + "…"
		}
	}
	if more != "" {
		line += " …"
	}
	return line
}

// Bare is a result without the lines that mark it as data for the model.
func Bare(text string) string {
	first, rest, found := strings.Cut(text, "\n")
	if !found || !strings.HasPrefix(first, "<") || !strings.HasSuffix(first, ">") {
		return text
	}
	if i := strings.LastIndex(rest, "\n</"); i >= 0 {
		return rest[:i]
	}
	if strings.HasPrefix(rest, "</") {
		return "" // there is nothing between the marks
	}
	return rest
}

// Length is a time as people read it.
func Length(d time.Duration) string {
	switch {
	case d < 100*time.Millisecond:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// Short is how people see an id.
func Short(id string) string {
	if len(id) > 6 {
		id = id[len(id)-6:]
	}
	return strings.ToLower(id)
}

// Ago is how long ago t was, roughly.
func Ago(t time.Time) string {
	d := time.Since(t)
	switch {
	case t.IsZero():
		return ""
	case d < time.Minute:
		return fmt.Sprintf("%ds ago", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%dm ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh ago", int(d.Hours()))
	}
	return fmt.Sprintf("%dd ago", int(d.Hours()/24))
}

// SignInLinks are the lines with the link that signs a browser in, on this machine and, where it is known, elsewhere. Both have the
// same code, which works once.
func SignInLinks(here, elsewhere string) string {
	lines := "WebChat: " + here + "\n"
	if elsewhere != "" {
		lines += "Elsewhere: " + elsewhere + "\n"
	}
	return lines
}
