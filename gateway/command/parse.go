package command

import (
	"errors"
	"slices"
	"strings"
	"unicode"

	"parley/gateway/spec"
	"parley/workspace"
	"parley/workspace/clip"
)

// Parsed is a command line that was understood.
type Parsed struct {
	Command Command
	Args    []string
	does    chosen // nothing for a command that runs by itself
}

// maxLine bounds a command line, in bytes.
const maxLine = 4096

// ErrUnknown says that there is no such command. It comes wrapped with a sentence that names the nearest.
var ErrUnknown = errors.New("unknown command")

// Parse reads "/name arg arg", with "quoted words" kept together. A name may carry "@bot", which is dropped.
func Parse(line string) (Parsed, error) {
	line = strings.TrimSpace(line)
	if len(line) > maxLine {
		return Parsed{}, workspace.Say(workspace.ErrInvalid, "That command is longer than %d bytes.", maxLine)
	}
	rest, ok := strings.CutPrefix(line, "/")
	if !ok {
		return Parsed{}, workspace.Say(ErrUnknown, "A command begins with “/”. Send /commands for the list.")
	}
	name, rest, err := word(rest)
	if err != nil {
		return Parsed{}, err
	}
	if name == "" {
		return Parsed{}, workspace.Say(ErrUnknown, "Which command? Send /commands for the list.")
	}
	name, _, _ = strings.Cut(strings.ToLower(name), "@")
	if name == "start" { // the button under every Telegram bot sends it, with whatever followed ?start= in its link
		name, rest = "help", ""
	}
	for _, c := range Table() {
		if c.Name == name || slices.Contains(c.Aliases, name) {
			return c.parse(rest)
		}
	}
	return Parsed{}, unknown(name)
}

// parse reads the arguments.
func (c Command) parse(rest string) (Parsed, error) {
	p := Parsed{Command: c}
	for rest = strings.TrimSpace(rest); rest != ""; rest = strings.TrimSpace(rest) {
		if c.Text && len(p.Args) == c.MaxArgs-1 {
			p.Args = append(p.Args, unquoted(rest))
			break
		}
		arg, more, err := word(rest)
		if err != nil {
			return Parsed{}, err
		}
		if len(p.Args) == c.MaxArgs {
			return Parsed{}, c.wrong("")
		}
		p.Args, rest = append(p.Args, arg), more
	}
	if c.actions != nil {
		var err error
		if p.does, err = c.choose(p.Args); err != nil {
			return Parsed{}, err
		}
	}
	return p, nil
}

// wrong is the one sentence for arguments that the command does not take; arg may be empty.
func (c Command) wrong(arg string) error {
	takes := "no arguments"
	if c.MaxArgs > 0 {
		takes = c.Args
	}
	if arg == "" || strings.ContainsFunc(arg, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return workspace.Say(workspace.ErrInvalid, "/%s takes %s. Example: %s", c.Name, takes, c.Example)
	}
	return workspace.Say(workspace.ErrInvalid, "“%s” is not what /%s takes: %s. Example: %s", clip.Runes(arg, 32), c.Name, takes, c.Example)
}

// OrderOf is when a command line is done. What cannot be read is answered at once.
func OrderOf(line string) spec.Order {
	p, err := Parse(line)
	if err != nil {
		return spec.Concurrent
	}
	return p.does.spec.Order
}

func unknown(name string) error {
	if len([]rune(name)) > 32 || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return workspace.Say(ErrUnknown, "There is no such command. Send /commands for the list.")
	}
	return workspace.Say(ErrUnknown, "There is no command /%s. Did you mean /%s? Send /commands for the list.", name, Nearest(name))
}

// word takes the first word of a line; "…" and '…' keep spaces.
func word(line string) (w, rest string, err error) {
	var b strings.Builder
	var quote rune
	line = strings.TrimLeftFunc(line, unicode.IsSpace)
	for i, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			b.WriteRune(r)
		case r == '"' || r == '\'':
			quote = r
		case unicode.IsSpace(r):
			return b.String(), line[i:], nil
		default:
			b.WriteRune(r)
		}
	}
	if quote != 0 {
		return "", "", workspace.Say(workspace.ErrInvalid, "A quotation mark %c is not closed.", quote)
	}
	return b.String(), "", nil
}

// unquoted is a text without the quotation marks that are around all of it.
func unquoted(s string) string {
	for _, q := range []string{`"`, `'`} {
		if in, ok := strings.CutPrefix(s, q); ok {
			if in, ok = strings.CutSuffix(in, q); ok && !strings.Contains(in, q) {
				return in
			}
		}
	}
	return s
}

// Nearest is the command whose name needs the fewest changes to be the given one.
func Nearest(name string) string {
	best, least := "", 1<<30
	for _, c := range Table() {
		for _, n := range append([]string{c.Name}, c.Aliases...) {
			if len(n) == 1 {
				continue // anything is near
			}
			d := distance(name, n)
			if strings.HasPrefix(n, name) || strings.HasPrefix(name, n) {
				d -= 2
			}
			if d < least {
				best, least = c.Name, d
			}
		}
	}
	return best
}

// distance is Levenshtein's, with a swap of neighbours as one change.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	rows := make([][]int, len(x)+1)
	for i := range rows {
		rows[i] = make([]int, len(y)+1)
		rows[i][0] = i
	}
	for j := range y {
		rows[0][j+1] = j + 1
	}
	for i := range x {
		for j := range y {
			cost := 1
			if x[i] == y[j] {
				cost = 0
			}
			d := min(rows[i][j+1]+1, rows[i+1][j]+1, rows[i][j]+cost)
			if i > 0 && j > 0 && x[i] == y[j-1] && x[i-1] == y[j] {
				d = min(d, rows[i-1][j-1]+1)
			}
			rows[i+1][j+1] = d
		}
	}
	return rows[len(x)][len(y)]
}
