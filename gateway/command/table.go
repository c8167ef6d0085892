// Package command is the slash commands: one table, a parser, and the words of the replies. A command is parsed
// here, done by a verb of control, and rendered here. Runner does those of the journal.
//
// Goroutines: those of Runner, for which its Wait waits.
package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"parley/agentloop"
	"parley/channels"
	"parley/gateway/control"
	"parley/gateway/control/all"
	"parley/gateway/control/run"
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
	check func(args []string) error // refuses what Choices cannot; nil: nothing
	run   func(context.Context, *all.Nouns, control.Call, []string) error
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
	Concurrent    Order = iota // at once, beside the session's turns
	InOrder                    // it changes what comes next: in its place in the session's order
	BeforeRouting              // it changes where the room's next message goes: before that one is routed
)

// Table lists every command in the order of /help.
func Table() []Command {
	return slices.Concat(talk(), decisions(), settings(), gauges())
}

// row is a row of the table by its name.
func row(name string) Command {
	for _, c := range Table() {
		if c.Name == name {
			return c
		}
	}
	return Command{Name: name}
}

// talk is what is said about the conversation itself.
func talk() []Command {
	return []Command{
		{Name: "help", Args: "[command]", Help: "say what I can do", Example: "/help stop", Wrong: "/help a b", MaxArgs: 1, run: help},
		{Name: "commands", Help: "list every command", Example: "/commands", Wrong: "/commands all", run: commands},
		{Name: "new", Args: "[model] [text]", Help: "start a fresh session; the old one is kept", Example: "/new What is the weather?", Order: InOrder,
			MaxArgs: 1, Text: true, run: fresh},
		{Name: "reset", Help: "the same as /new", Example: "/reset", Wrong: "/reset all", Order: InOrder, run: fresh},
		{Name: "stop", Args: "[all]", Help: "stop what I am doing and what waits behind it", Example: "/stop", Wrong: "/stop now", MaxArgs: 1, Choices: []string{"all"},
			verb: stopVerb, run: stop},
		{Name: "retry", Help: "ask your last question again", Example: "/retry", Wrong: "/retry again", Order: InOrder, run: retry},
		{Name: "undo", Help: "take the last exchange out of what I see; the record stays", Example: "/undo", Wrong: "/undo all", Order: InOrder, run: undo},
		{Name: "compact", Args: "[instructions]", Help: "sum up the older part of this conversation; the record stays", Example: "/compact keep all numbers",
			Order: InOrder, MaxArgs: 1, Text: true, run: compact},
		{Name: "resume", Help: "answer the messages that came while I was away", Example: "/resume", Wrong: "/resume all", run: resume},
		rendered(Command{Name: "session", Aliases: []string{"sessions"}, Help: "show, list, make, switch, rename or export sessions",
			Example: "/session new holiday", Wrong: "/session switch"}),
		{Name: "export", Args: "[markdown|json]", Help: "hand out what was said in this session", Example: "/export json", Wrong: "/export pdf", MaxArgs: 1, Verb: "session.export",
			Choices: []string{"markdown", "json"}, run: export},
	}
}

// settings are changed for one session, or for one room, and stay until they are changed again.
func settings() []Command {
	return []Command{
		{Name: "model", Args: "[list|status|<number>|<name>|default]", Help: "show or choose the model of this session", Example: "/model 2", Wrong: "/model 1 2", MaxArgs: 1,
			order: whenSet, verb: modelVerb, run: model},
		{Name: "models", Help: "list the models to choose from", Example: "/models", Wrong: "/models 2", run: model},
		{Name: "think", Aliases: []string{"thinking", "t"}, Args: "[off|minimal|low|medium|high|xhigh|default]", Help: "show or set how hard the model thinks",
			Example: "/think high", Wrong: "/think harder", MaxArgs: 1, Choices: []string{"off", "minimal", "low", "medium", "high", "xhigh", "default"}, order: whenSet, verb: showOr("think"), run: think},
		{Name: "verbose", Aliases: []string{"v"}, Args: "[off|on|full]", Help: "show the steps of each answer, in one line", Example: "/verbose on", Wrong: "/verbose loud",
			MaxArgs: 1, Choices: []string{"off", "on", "full", "default"}, order: whenSet, verb: showOr("verbose"), run: set("verbose")},
		{Name: "reasoning", Aliases: []string{"reason"}, Args: "[off|on]", Help: "show that the model thinks; what it thinks stays private", Example: "/reasoning on", Wrong: "/reasoning stream",
			MaxArgs: 1, Choices: []string{"off", "on", "default"}, order: whenSet, verb: showOr("reasoning"), run: set("reasoning")},
		{Name: "usage", Args: "[off|tokens|cost|full]", Help: "show what the session has used, or put it under each answer", Example: "/usage full", Wrong: "/usage all",
			MaxArgs: 1, Choices: []string{"off", "tokens", "cost", "full", "default"}, order: whenSet, verb: showOr("usage"), run: set("usage")},
		{Name: "send", Args: "[on|off|inherit]", Help: "send answers to this chat, or keep them in the transcript alone", Example: "/send off", Wrong: "/send never",
			MaxArgs: 1, Choices: []string{"on", "off", "inherit", "default"}, order: whenSet, verb: showOr("send"), run: set("send")},
		{Name: "activation", Args: "[mention|always|default]", Help: "answer in this group when mentioned, or always", Example: "/activation always", Wrong: "/activation sometimes",
			MaxArgs: 1, Choices: []string{"mention", "always", "default"}, order: beforeRoutingWhenSet, verb: showOr("activation"), run: activation},
		{Name: "queue", Args: "[steer|followup|collect|interrupt|default] [debounce:<time>] [cap:<number>] [drop:summarize|old|new]",
			Help: "show or change how messages during a turn are handled", Example: "/queue collect debounce:2s cap:10 drop:old", Wrong: "/queue sideways", MaxArgs: 4,
			verb: showOr("queue"), check: checkQueue, run: queue},
	}
}

// gauges only show.
func gauges() []Command {
	return []Command{
		{Name: "status", Help: "show agent, model, settings, queue and health", Example: "/status", Wrong: "/status now", run: status},
		{Name: "context", Args: "[list|detail|json]", Help: "show what my next prompt is made of", Example: "/context detail", Wrong: "/context all", MaxArgs: 1,
			Choices: []string{"list", "detail", "json"}, run: composition},
		{Name: "files", Args: "[in <folder>|rm <path>]", Help: "show what fills the work folder, or remove something from it", Example: "/files rm old/report.pdf", Wrong: "/files rm",
			MaxArgs: 2, Text: true, Choices: []string{"in", "rm"}, verb: filesVerb, check: checkFiles, run: files},
		{Name: "why", Help: "tell why I answered as I did", Example: "/why", Wrong: "/why not", run: why},
		{Name: "link", Args: "[code]", Help: "be one person on two networks: ask for a code here, give it there", Example: "/link K7QF-M2XA", Wrong: "/link K7QF M2XA X", MaxArgs: 2,
			check: checkLink, order: beforeRoutingWhenSet, run: link},
		{Name: "whoami", Aliases: []string{"id"}, Help: "show who I take you for", Example: "/whoami", Wrong: "/whoami now", run: whoami},
	}
}

// Run does the command line of a journalled input. What cannot be done ends with one plain sentence for the chat; an
// error is returned only when not even that could be stored.
func Run(ctx context.Context, c *all.Nouns, call control.Call, line string) error {
	p, err := Parse(line)
	if err == nil {
		call.Render = Render
		err = p.Command.run(ctx, c, call, p.Args)
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
	return slices.DeleteFunc(Table(), func(cmd Command) bool { return !c.May(call, cmd.right(nil)) && !c.May(call, cmd.right([]string{})) })
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

func status(ctx context.Context, c *all.Nouns, call control.Call, _ []string) error {
	_, err := c.Conversations.Status(ctx, call)
	return err
}

func whoami(ctx context.Context, c *all.Nouns, call control.Call, _ []string) error {
	_, err := c.People.WhoAmI(ctx, call)
	return err
}

func fresh(ctx context.Context, c *all.Nouns, call control.Call, args []string) error {
	_, err := c.Conversations.New(ctx, call, first(args))
	return err
}

func stopVerb(args []string) string {
	if len(args) == 1 {
		return "stop.all"
	}
	return "stop"
}

func stop(ctx context.Context, c *all.Nouns, call control.Call, args []string) error {
	if len(args) == 1 {
		_, err := run.StopAll.Call(ctx, c.Runs, call, struct{}{})
		return err
	}
	_, err := c.Runs.StopTurn(ctx, call)
	return err
}

func why(ctx context.Context, c *all.Nouns, call control.Call, _ []string) error {
	_, err := c.Runs.Why(ctx, call)
	return err
}

func resume(ctx context.Context, c *all.Nouns, call control.Call, _ []string) error {
	_, err := c.Conversations.Resume(ctx, call)
	return err
}
