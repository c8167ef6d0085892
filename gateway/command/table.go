// Package command is the slash commands: one table, a parser, and what is done with a line. What a command does and answers is a
// verb of control, from which it is rendered; only /help and /commands, which tell of the table, are its own. Runner does the
// commands of the journal.
//
// Goroutines: those of Runner, for which its Wait waits.
package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"parley/agentloop"
	"parley/channels"
	"parley/gateway/control"
	"parley/gateway/control/all"
	"parley/workspace"
)

// Command is one row of the table.
type Command struct {
	Name    string
	Aliases []string
	Args    string // as shown in help
	Help    string // one line
	Example string
	Wrong   string // a line that it refuses, for the documentation; empty: it takes anything
	// MaxArgs is how many arguments there may be. With Text the last of them is the rest of the line as it was written.
	MaxArgs int
	Text    bool
	// Choices are plain words that may come first, each for an action of its own.
	Choices []string

	actions []action // in place of run: verbs of control
	run     func(context.Context, *all.Nouns, control.Call, []string) error
}

// table is made at the first use: commands tell of it.
var table struct {
	once sync.Once
	rows []Command
}

// Table lists every command in the order of /help. Nobody changes it.
func Table() []Command {
	table.once.Do(func() {
		table.rows = []Command{
			{Name: "help", Args: "[command]", Help: "say what I can do", Example: "/help stop", Wrong: "/help a b", MaxArgs: 1, run: help},
			{Name: "commands", Help: "list every command", Example: "/commands", Wrong: "/commands all", run: commands},
		}
		for _, c := range slices.Concat(talk(), settings(), gauges()) {
			table.rows = append(table.rows, rendered(c))
		}
	})
	return table.rows
}

// talk is what is said about the conversation itself.
func talk() []Command {
	return []Command{
		{Name: "new", Help: "start a fresh session; the old one is kept", Example: "/new What is the weather?", MaxArgs: 1, Text: true},
		{Name: "reset", Help: "the same as /new", Example: "/reset", Wrong: "/reset all"},
		{Name: "stop", Help: "stop what I am doing and what waits behind it", Example: "/stop", Wrong: "/stop now", MaxArgs: 1},
		{Name: "retry", Help: "ask your last question again", Example: "/retry", Wrong: "/retry again"},
		{Name: "undo", Help: "take the last exchange out of what I see; the record stays", Example: "/undo", Wrong: "/undo all"},
		{Name: "compact", Help: "sum up the older part of this conversation; the record stays", Example: "/compact keep all numbers",
			MaxArgs: 1, Text: true},
		{Name: "resume", Help: "answer the messages that came while I was away", Example: "/resume", Wrong: "/resume all"},
		{Name: "session", Aliases: []string{"sessions"}, Help: "show, list, make, switch, rename or export sessions",
			Example: "/session new holiday", Wrong: "/session switch", MaxArgs: 2, Text: true},
		{Name: "export", Help: "hand out what was said in this session", Example: "/export json", Wrong: "/export pdf", MaxArgs: 1},
		{Name: "approve", Help: "answer a question of mine, or list those that wait", Example: "/approve 3f2a9c once",
			Wrong: "/approve 3f2a9c maybe", MaxArgs: 3, Text: true},
	}
}

// settings are changed for one session, or for one room, and stay until they are changed again.
func settings() []Command {
	return []Command{
		{Name: "model", Help: "show or choose the model of this session", Example: "/model 2", Wrong: "/model 1 2", MaxArgs: 1},
		{Name: "models", Help: "list the models to choose from", Example: "/models", Wrong: "/models 2"},
		{Name: "think", Aliases: []string{"thinking", "t"}, Help: "show or set how hard the model thinks", Example: "/think high",
			Wrong: "/think harder", MaxArgs: 1},
		{Name: "verbose", Aliases: []string{"v"}, Help: "show the steps of each answer, in one line", Example: "/verbose on",
			Wrong: "/verbose loud", MaxArgs: 1},
		{Name: "reasoning", Aliases: []string{"reason"}, Help: "show that the model thinks; what it thinks stays private",
			Example: "/reasoning on", Wrong: "/reasoning stream", MaxArgs: 1},
		{Name: "usage", Help: "show what the session has used, or put it under each answer", Example: "/usage full", Wrong: "/usage all",
			MaxArgs: 1},
		{Name: "send", Help: "send answers to this chat, or keep them in the transcript alone", Example: "/send off",
			Wrong: "/send never", MaxArgs: 1},
		{Name: "activation", Help: "answer in this group when mentioned, or always", Example: "/activation always",
			Wrong: "/activation sometimes", MaxArgs: 1},
		{Name: "queue", Help: "show or change how messages during a turn are handled",
			Example: "/queue collect debounce:2s cap:10 drop:old", Wrong: "/queue sideways", MaxArgs: 4},
	}
}

// gauges only show.
func gauges() []Command {
	return []Command{
		{Name: "status", Help: "show agent, model, settings, queue and health", Example: "/status", Wrong: "/status now"},
		{Name: "context", Help: "show what my next prompt is made of", Example: "/context detail", Wrong: "/context all", MaxArgs: 1},
		{Name: "files", Help: "show what fills the work folder, or remove something from it", Example: "/files rm old/report.pdf",
			Wrong: "/files rm", MaxArgs: 2, Text: true},
		{Name: "why", Help: "tell why I answered as I did", Example: "/why", Wrong: "/why not"},
		{Name: "link", Help: "be one person on two networks: ask for a code here, give it there", Example: "/link K7QF-M2XA",
			Wrong: "/link K7QF M2XA X", MaxArgs: 2},
		{Name: "whoami", Aliases: []string{"id"}, Help: "show who I take you for", Example: "/whoami", Wrong: "/whoami now"},
	}
}

// Run does the command line of a journalled input. What cannot be done ends with one plain sentence for the chat; an
// error is returned only when not even that could be stored.
func Run(ctx context.Context, c *all.Nouns, call control.Call, line string) error {
	p, err := Parse(line)
	switch {
	case err != nil:
	case p.Command.run != nil:
		err = p.Command.run(ctx, c, call, p.Args)
	default:
		err = p.does.do(ctx, c, call)
	}
	return ended(c, call, err)
}

// ended ends a command that could not be done with its sentence; err is nil where it was done.
func ended(c *all.Nouns, call control.Call, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, agentloop.ErrShutdown) {
		return err // it is done after the next start
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

// Shown lists the commands of which the caller may use anything, in the order of the table.
func Shown(c *all.Nouns, call control.Call) []Command {
	may := func(a action) bool { return c.May(call, a.spec.Name) }
	return slices.DeleteFunc(slices.Clone(Table()), func(cmd Command) bool {
		return !slices.ContainsFunc(cmd.actions, may) && (cmd.run == nil || !c.May(call, cmd.Name))
	})
}

// Menu is the table for a network's own command menu.
func Menu() []channels.MenuItem {
	var items []channels.MenuItem
	for _, c := range Table() {
		items = append(items, channels.MenuItem{Name: c.Name, Help: c.Help})
	}
	return items
}

func help(ctx context.Context, c *all.Nouns, call control.Call, args []string) error {
	if len(args) == 1 {
		p, err := Parse("/" + strings.TrimPrefix(args[0], "/"))
		if err != nil {
			return err
		}
		return c.Text(ctx, call, "help", explain(p.Command))
	}
	return c.Text(ctx, call, "help", helpText(c, call))
}

func commands(ctx context.Context, c *all.Nouns, call control.Call, _ []string) error {
	return c.Text(ctx, call, "commands", list(c, call))
}
