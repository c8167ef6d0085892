// Package command is the slash commands: one table, a parser, and the words of the replies. A command is parsed
// here, done by a verb of control, and rendered here; it owns no state and starts no goroutine.
package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

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
	Verb    string // of docs/rights.md; empty: Name
	Order   Order
	// MaxArgs is how many arguments there may be. With Text the last of them is the rest of the line as it was written.
	MaxArgs int
	Text    bool
	// Choices are the words that the first argument may be; nil: any.
	Choices []string
	// order and verb say what the arguments change about Order and Verb; nil: nothing.
	order func(args []string) Order
	verb  func(args []string) string
	run   func(context.Context, *control.Control, control.Call, []string) error
}

// right is the verb of docs/rights.md that a line needs; nil arguments: to be shown the command at all.
func (c Command) right(args []string) string {
	switch {
	case c.verb != nil:
		return c.verb(args)
	case c.Verb != "":
		return c.Verb
	}
	return c.Name
}

// Order is when a command is done.
type Order int

const (
	Beside Order = iota // at once, beside the session's turns
	Lane                // it changes what comes next: in its place in the session's order
	Door                // it changes where the room's next message goes: before that one is let in
)

// Table lists every command in the order of /help.
func Table() []Command {
	return []Command{
		{Name: "help", Args: "[command]", Help: "say what I can do", Example: "/help stop", MaxArgs: 1, run: help},
		{Name: "commands", Help: "list every command", Example: "/commands", run: commands},
		{Name: "status", Help: "show agent, model, queue and health", Example: "/status", run: status},
		{Name: "whoami", Aliases: []string{"id"}, Help: "show who I take you for", Example: "/whoami", run: whoami},
		{Name: "new", Help: "start a fresh session; the old one is kept", Example: "/new", Order: Lane, run: fresh},
		{Name: "reset", Help: "the same as /new", Example: "/reset", Order: Lane, run: fresh},
		{Name: "stop", Help: "stop what I am doing and what waits behind it", Example: "/stop", run: stop},
		{Name: "why", Help: "tell why I answered as I did", Example: "/why", run: why},
		{Name: "queue", Args: "[steer|followup|collect|interrupt|default]", Help: "show or change how messages during a turn are handled",
			Example: "/queue collect", MaxArgs: 1, run: queue},
		{Name: "resume", Help: "answer the messages that came while I was away", Example: "/resume", run: resume},
		{Name: "session", Aliases: []string{"sessions"}, Args: "[current|list [text]|new <name>|switch <name|key|main>|rename <name>|export [markdown|json]]",
			Help: "show, list, make, switch, rename or export sessions", Example: "/session new holiday", MaxArgs: 2, Text: true, Verb: "session.current",
			Choices: []string{"current", "list", "new", "switch", "rename", "export"}, order: sessionOrder, verb: sessionVerb, run: session},
		{Name: "export", Args: "[markdown|json]", Help: "hand out what was said in this session", Example: "/export json", MaxArgs: 1, Verb: "session.export",
			Choices: []string{"markdown", "json"}, run: export},
	}
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
