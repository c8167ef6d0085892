// Questions to a person at a terminal.

package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"
)

// Asker asks a person at a terminal.
type Asker struct {
	in   *os.File
	out  io.Writer
	line *term.Terminal
}

// NewAsker is nil where nobody can be asked.
func (a *App) NewAsker() *Asker {
	in, ok := a.In.(*os.File)
	if !ok || !isTerminal(in) {
		return nil
	}
	return &Asker{in, a.Out, term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{in, a.Out}, "")}
}

// read puts the terminal into raw mode for one line: then Ctrl-C is an answer, and no signal can leave it without echo.
func (q *Asker) read(prompt string, hidden bool) (string, error) {
	old, err := term.MakeRaw(int(q.in.Fd()))
	if err != nil {
		return "", err
	}
	defer func() { _ = term.Restore(int(q.in.Fd()), old) }() // nothing more can be done
	var line string
	if hidden {
		line, err = q.line.ReadPassword(prompt)
	} else {
		q.line.SetPrompt(prompt)
		line, err = q.line.ReadLine()
	}
	if errors.Is(err, io.EOF) {
		fmt.Fprint(q.out, "\r\n")
		err = ErrAborted
	}
	if errors.Is(err, term.ErrPasteIndicator) {
		err = nil
	}
	return strings.TrimSpace(line), err
}

// Text asks for a line; Enter means the default.
func (q *Asker) Text(question, fallback string) (string, error) {
	if fallback != "" {
		question += " [" + Visible(fallback) + "]"
	}
	line, err := q.read(question+": ", false)
	if line == "" {
		line = fallback
	}
	return line, err
}

// Secret asks for a line that is not shown, and says how much came, so that a bad paste is seen.
func (q *Asker) Secret(question string) (string, error) {
	line, err := q.read(question+" (not shown): ", true)
	if err == nil && line != "" {
		fmt.Fprintf(q.out, "  %d characters\n", len([]rune(line)))
	}
	return line, err
}

// Yes asks a question of yes or no.
func (q *Asker) Yes(question string, fallback bool) (bool, error) {
	choice := "[y/N]"
	if fallback {
		choice = "[Y/n]"
	}
	for {
		line, err := q.read(question+" "+choice+" ", false)
		if err != nil {
			return false, err
		}
		switch strings.ToLower(line) {
		case "":
			return fallback, nil
		case "y", "yes":
			return true, nil
		case "n", "no":
			return false, nil
		}
	}
}

// Choice is one of several answers.
type Choice struct{ ID, Label string }

// One asks for one of the choices, by number or id.
func (q *Asker) One(question string, list []Choice, fallback string) (string, error) {
	standard := ""
	fmt.Fprintln(q.out, question)
	for i, c := range list {
		fmt.Fprintf(q.out, "  %d  %s\n", i+1, Visible(c.Label))
		if c.ID == fallback {
			standard = fmt.Sprint(i + 1)
		}
	}
	for {
		line, err := q.Text("Number", standard)
		if err != nil {
			return "", err
		}
		if i := slices.IndexFunc(list, func(c Choice) bool { return c.ID == line }); i >= 0 {
			return line, nil
		}
		var n int
		if _, err := fmt.Sscan(line, &n); err == nil && n >= 1 && n <= len(list) {
			return list[n-1].ID, nil
		}
		fmt.Fprintf(q.out, "A number from 1 to %d, please.\n", len(list))
	}
}
