package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"
)

// asker asks a person at a terminal.
type asker struct {
	in   *os.File
	out  io.Writer
	line *term.Terminal
}

// errAborted says that the person ended the questions.
var errAborted = errors.New("ended; nothing was changed")

// newAsker is nil where nobody can be asked.
func (a *app) newAsker() *asker {
	in, ok := a.in.(*os.File)
	if !ok || !isTerminal(in) {
		return nil
	}
	return &asker{in, a.out, term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{in, a.out}, "")}
}

// read puts the terminal into raw mode for one line: then Ctrl-C is an answer, and no signal can leave it without echo.
func (q *asker) read(prompt string, hidden bool) (string, error) {
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
		err = errAborted
	}
	if errors.Is(err, term.ErrPasteIndicator) {
		err = nil
	}
	return strings.TrimSpace(line), err
}

// text asks for a line; Enter means the default.
func (q *asker) text(question, fallback string) (string, error) {
	if fallback != "" {
		question += " [" + visible(fallback) + "]"
	}
	line, err := q.read(question+": ", false)
	if line == "" {
		line = fallback
	}
	return line, err
}

// secret asks for a line that is not shown, and says how much came, so that a bad paste is seen.
func (q *asker) secret(question string) (string, error) {
	line, err := q.read(question+" (not shown): ", true)
	if err == nil && line != "" {
		fmt.Fprintf(q.out, "  %d characters\n", len([]rune(line)))
	}
	return line, err
}

// yes asks a question of yes or no.
func (q *asker) yes(question string, fallback bool) (bool, error) {
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

// choice is one of several answers.
type choice struct{ id, label string }

// one asks for one of the choices, by number or id.
func (q *asker) one(question string, list []choice, fallback string) (string, error) {
	standard := ""
	fmt.Fprintln(q.out, question)
	for i, c := range list {
		fmt.Fprintf(q.out, "  %d  %s\n", i+1, visible(c.label))
		if c.id == fallback {
			standard = fmt.Sprint(i + 1)
		}
	}
	for {
		line, err := q.text("Number", standard)
		if err != nil {
			return "", err
		}
		if i := slices.IndexFunc(list, func(c choice) bool { return c.id == line }); i >= 0 {
			return line, nil
		}
		var n int
		if _, err := fmt.Sscan(line, &n); err == nil && n >= 1 && n <= len(list) {
			return list[n-1].id, nil
		}
		fmt.Fprintf(q.out, "A number from 1 to %d, please.\n", len(list))
	}
}
