// What commands print: colours, tables, JSON.

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/rivo/uniseg"
	"golang.org/x/term"
)

// isTerminal says whether w is a terminal that a person looks at.
func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// How wide text is set: as wide as the terminal, as long as that reads well.
const (
	usualColumns  = 80
	widestColumns = 120
)

// Columns is how wide text for w is set.
func Columns(w any) int {
	if f, ok := w.(*os.File); ok {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
			return min(n, widestColumns)
		}
	}
	return usualColumns
}

// A style is how words stand out on a terminal, as an SGR parameter (ECMA-48 §8.3.117).
type Style string

const (
	Bold   Style = "1"
	Dim    Style = "2"
	Red    Style = "31"
	Green  Style = "32"
	Yellow Style = "33"
	Cyan   Style = "36"
)

// Paint styles text for w, if w is a terminal whose person wants colours (https://no-color.org).
func Paint(w io.Writer, s Style, text string) string {
	if text == "" || !Colourful(w) {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

func Colourful(w io.Writer) bool {
	s, ok := w.(interface{ Styled() bool })
	return (ok && s.Styled() || isTerminal(w)) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// ShowJSON prints a value as JSON.
func (a *App) ShowJSON(v any) error {
	e := json.NewEncoder(a.Out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// OrShow prints a value as JSON, or hands on the error.
func (a *App) OrShow(v any, err error) error {
	if err != nil {
		return err
	}
	return a.ShowJSON(v)
}

// OneLineJSON is a value as JSON on one line.
func OneLineJSON(v any) string {
	var b strings.Builder
	_ = lineJSON(&b, v) // what came as JSON always goes
	return strings.TrimSpace(b.String())
}

// LineJSON prints a value as JSON on one line.
func (a *App) LineJSON(v any) error { return lineJSON(a.Out, v) }

func lineJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// Table prints rows under their heads, aligned by how wide the characters are on a terminal.
func (a *App) Table(heads []string, rows [][]string) error {
	if len(rows) == 0 {
		_, err := fmt.Fprintln(a.Out, "none")
		return err
	}
	flat := strings.NewReplacer("\n", " ", "\t", " ")
	wide := make([]int, len(heads))
	for i, h := range heads {
		wide[i] = uniseg.StringWidth(h)
	}
	for _, row := range rows {
		for i := range row {
			row[i] = flat.Replace(Visible(row[i]))
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
	fmt.Fprintln(a.Out, Paint(a.Out, Bold, line(heads)))
	for _, row := range rows {
		if _, err := fmt.Fprintln(a.Out, line(row)); err != nil {
			return err
		}
	}
	return nil
}
