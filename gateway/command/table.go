// Package command is the slash commands: one table, a parser, and the words of the replies. A command is parsed
// here, done by a verb of control, and rendered here; it owns no state and starts no goroutine.
package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"parley/channels"
	"parley/gateway/control"
	"parley/workspace"
)

// Command is one row of the table.
type Command struct {
	Name    string
	Aliases []string
	Args    string // as shown in help
	Help    string // one line
	Example string
	// Ordered commands change what comes next and take their place in the session's order; the others run beside it.
	Ordered bool
	MaxArgs int
	run     func(context.Context, *control.Control, control.Call, []string) error
}

// Table lists every command in the order of /help.
func Table() []Command {
	return []Command{
		{Name: "help", Args: "[command]", Help: "say what I can do", Example: "/help stop", MaxArgs: 1, run: help},
		{Name: "commands", Help: "list every command", Example: "/commands", run: commands},
		{Name: "status", Help: "show agent, model, queue and health", Example: "/status", run: status},
		{Name: "whoami", Aliases: []string{"id"}, Help: "show who I take you for", Example: "/whoami", run: whoami},
		{Name: "new", Help: "start a fresh session; the old one is kept", Example: "/new", Ordered: true, run: fresh},
		{Name: "reset", Help: "the same as /new", Example: "/reset", Ordered: true, run: fresh},
		{Name: "stop", Help: "stop what I am doing and what waits behind it", Example: "/stop", run: stop},
		{Name: "why", Help: "tell why I answered as I did", Example: "/why", run: why},
		{Name: "queue", Args: "[steer|followup|collect|interrupt|default]", Help: "show or change how messages during a turn are handled",
			Example: "/queue collect", MaxArgs: 1, run: queue},
		{Name: "resume", Help: "answer the messages that came while I was away", Example: "/resume", run: resume},
	}
}

// Parsed is a command line that was understood.
type Parsed struct {
	Command Command
	Args    []string
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
	words, err := split(rest)
	if err != nil {
		return Parsed{}, err
	}
	if len(words) == 0 {
		return Parsed{}, workspace.Say(ErrUnknown, "Which command? Send /commands for the list.")
	}
	name, _, _ := strings.Cut(strings.ToLower(words[0]), "@")
	if name == "start" { // the button under every Telegram bot sends it, with whatever followed ?start= in its link
		name, words = "help", words[:1]
	}
	for _, c := range Table() {
		if c.Name == name || slices.Contains(c.Aliases, name) {
			if len(words)-1 > c.MaxArgs {
				return Parsed{}, workspace.Say(workspace.ErrInvalid, "/%s takes %s. Example: %s", c.Name, count(c), c.Example)
			}
			return Parsed{Command: c, Args: words[1:]}, nil
		}
	}
	return Parsed{}, unknown(name)
}

func count(c Command) string {
	if c.MaxArgs == 0 {
		return "no arguments"
	}
	return c.Args
}

func unknown(name string) error {
	if len([]rune(name)) > 32 || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return workspace.Say(ErrUnknown, "There is no such command. Send /commands for the list.")
	}
	return workspace.Say(ErrUnknown, "There is no command /%s. Did you mean /%s? Send /commands for the list.", name, Nearest(name))
}

// split cuts a line into words; "…" and '…' keep spaces.
func split(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	var quote rune
	open := false
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '"' || r == '\'':
			quote, open = r, true
		case unicode.IsSpace(r):
			if open || word.Len() > 0 {
				words = append(words, word.String())
			}
			word.Reset()
			open = false
		default:
			word.WriteRune(r)
		}
	}
	if quote != 0 {
		return nil, workspace.Say(workspace.ErrInvalid, "A quotation mark %c is not closed.", quote)
	}
	if open || word.Len() > 0 {
		words = append(words, word.String())
	}
	return words, nil
}

// Nearest is the command whose name needs the fewest changes to be the given one.
func Nearest(name string) string {
	best, least := "", 1<<30
	for _, c := range Table() {
		for _, n := range append([]string{c.Name}, c.Aliases...) {
			d := distance(name, n)
			if strings.HasPrefix(n, name) || strings.HasPrefix(name, n) {
				d--
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

// Ordered says whether a line is a command that takes its place in the session's order. What cannot be read does not.
func Ordered(line string) bool {
	p, err := Parse(line)
	return err == nil && p.Command.Ordered
}

// Run does the command line of a journalled input. What cannot be done ends with one plain sentence for the chat; an
// error is returned only when not even that could be stored.
func Run(ctx context.Context, c *control.Control, call control.Call, line string) error {
	p, err := Parse(line)
	if err == nil {
		call.Render = Render
		err = p.Command.run(ctx, c, call, p.Args)
	}
	if err == nil {
		return nil
	}
	sentence, ok := workspace.Sentence(err)
	if !ok {
		if errors.Is(err, workspace.ErrConflict) {
			return err // it was done before, or somebody stopped it: there is nothing to add
		}
		sentence = fmt.Sprintf("That did not work (%s).", workspace.Short(call.Input.ID))
	}
	if refused := c.Refuse(call, sentence); refused != nil {
		return errors.Join(err, refused)
	}
	if !ok {
		return err
	}
	return nil
}

// Menu is the table for a network's own command menu.
func Menu() []channels.MenuItem {
	var items []channels.MenuItem
	for _, c := range Table() {
		items = append(items, channels.MenuItem{Name: c.Name, Help: c.Help})
	}
	return items
}

func help(ctx context.Context, c *control.Control, call control.Call, args []string) error {
	if len(args) == 1 {
		p, err := Parse("/" + strings.TrimPrefix(args[0], "/"))
		if err != nil {
			return err
		}
		return c.Text(ctx, call, "help", explain(p.Command))
	}
	return c.Text(ctx, call, "help", helpText(c, call))
}

func commands(ctx context.Context, c *control.Control, call control.Call, _ []string) error {
	return c.Text(ctx, call, "commands", list(c, call))
}

func status(ctx context.Context, c *control.Control, call control.Call, _ []string) error {
	_, err := c.Status(ctx, call)
	return err
}

func whoami(ctx context.Context, c *control.Control, call control.Call, _ []string) error {
	_, err := c.WhoAmI(ctx, call)
	return err
}

func fresh(ctx context.Context, c *control.Control, call control.Call, _ []string) error {
	_, err := c.NewSession(ctx, call)
	return err
}

func stop(ctx context.Context, c *control.Control, call control.Call, _ []string) error {
	_, err := c.Stop(ctx, call)
	return err
}

func why(ctx context.Context, c *control.Control, call control.Call, _ []string) error {
	_, err := c.Why(ctx, call)
	return err
}

func queue(ctx context.Context, c *control.Control, call control.Call, args []string) error {
	mode := ""
	if len(args) == 1 {
		mode = strings.ToLower(args[0])
	}
	_, err := c.Queue(ctx, call, mode)
	return err
}

func resume(ctx context.Context, c *control.Control, call control.Call, _ []string) error {
	_, err := c.Resume(ctx, call)
	return err
}
