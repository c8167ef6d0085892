package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode"

	"github.com/rivo/uniseg"
	"golang.org/x/term"
)

// isTerminal says whether w is a terminal that a person looks at.
func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// A style is how words stand out on a terminal, as an SGR parameter (ECMA-48 §8.3.117).
type style string

const (
	bold   style = "1"
	dim    style = "2"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
	cyan   style = "36"
)

// paint styles text for w, if w is a terminal whose person wants colours (https://no-color.org).
func paint(w io.Writer, s style, text string) string {
	if text == "" || !colourful(w) {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

func colourful(w io.Writer) bool {
	_, rows := w.(*rows)
	return (rows || isTerminal(w)) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// show prints a value as JSON.
func (a *app) show(v any) error {
	e := json.NewEncoder(a.out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// orShow prints a value as JSON, or hands on the error.
func (a *app) orShow(v any, err error) error {
	if err != nil {
		return err
	}
	return a.show(v)
}

// line prints a value as JSON on one line.
func (a *app) line(v any) error {
	e := json.NewEncoder(a.out)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// table prints rows under their heads, aligned by how wide the characters are on a terminal.
func (a *app) table(heads []string, rows [][]string) error {
	if len(rows) == 0 {
		_, err := fmt.Fprintln(a.out, "none")
		return err
	}
	flat := strings.NewReplacer("\n", " ", "\t", " ")
	wide := make([]int, len(heads))
	for i, h := range heads {
		wide[i] = uniseg.StringWidth(h)
	}
	for _, row := range rows {
		for i := range row {
			row[i] = flat.Replace(visible(row[i]))
			wide[i] = max(wide[i], uniseg.StringWidth(row[i]))
		}
	}
	line := func(cells []string) string {
		var b strings.Builder
		for i, c := range cells {
			b.WriteString(c)
			b.WriteString(strings.Repeat(" ", wide[i]-uniseg.StringWidth(c)+2))
		}
		return strings.TrimRight(b.String(), " ")
	}
	fmt.Fprintln(a.out, paint(a.out, bold, line(heads)))
	for _, row := range rows {
		if _, err := fmt.Fprintln(a.out, line(row)); err != nil {
			return err
		}
	}
	return nil
}

// visible makes text of strangers safe for a terminal: only line feeds and tabs stay of what controls it.
func visible(s string) string {
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

// patience is how long something may take before progress is shown.
const patience = time.Second

// progress says on standard error what is waited for, once it takes long: on a terminal with the seconds, else once. The
// function that it returns ends that, and waits for its goroutine.
func (a *app) progress(what string) (done func()) {
	quit, ended := make(chan struct{}), make(chan struct{})
	live := isTerminal(a.errs)
	go func() { // ends with quit
		defer close(ended)
		tick := time.NewTicker(patience)
		defer tick.Stop()
		for n := 1; ; n++ {
			select {
			case <-quit:
				if live && n > 1 {
					fmt.Fprint(a.errs, "\r\x1b[K")
				}
				return
			case <-tick.C:
			}
			switch {
			case live:
				fmt.Fprintf(a.errs, "\r\x1b[K%s", paint(a.errs, dim, fmt.Sprintf("… %s, %s", what, time.Duration(n)*patience)))
			case n == 1:
				fmt.Fprintf(a.errs, "… %s\n", what)
			}
		}
	}()
	return func() {
		close(quit)
		<-ended
	}
}

// short is how people see an id.
func short(id string) string {
	if len(id) > 6 {
		id = id[len(id)-6:]
	}
	return strings.ToLower(id)
}

// ago is how long ago t was, roughly.
func ago(t time.Time) string {
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
