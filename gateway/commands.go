package gateway

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"

	"parley/agentloop"
	"parley/channels"
	"parley/gateway/command"
	"parley/gateway/control"
	"parley/gateway/delivery"
	"parley/gateway/live"
	"parley/workspace"
)

// commands runs slash commands of the journal: ordered ones from their lane, the others beside it.
//
// Goroutines: one per command beside a lane, at most commandsAtOnce.
type commands struct {
	control  *control.Control
	deliver  *delivery.Outbox
	feed     *live.Feed
	local    func(channels.Network) bool // its people are signed in at the gateway
	orphaned func(workspace.Input)       // closes a pressed message that nothing else would
	log      *slog.Logger
	wg       sync.WaitGroup
	mu       sync.Mutex
	running  map[workspace.InputID]bool
}

const commandsAtOnce = 256

func (c *commands) ordered(line string) bool { return command.Ordered(line) }

// atDoor says whether an input is a command that decides where the room's next message goes: it is done before that
// one is judged.
func (c *commands) atDoor(in workspace.Input) bool {
	return in.Mode == workspace.ModeCommand && in.State == workspace.InputQueued &&
		!c.local(channels.Network(in.Source)) && // their messages name their session
		command.AtDoor(in.Text)
}

// beside runs a command beside the lanes. When too many run the sweeper offers it again.
func (c *commands) beside(ctx context.Context, in workspace.Input) {
	c.mu.Lock()
	if c.running == nil {
		c.running = map[workspace.InputID]bool{}
	}
	full := len(c.running) >= commandsAtOnce || c.running[in.ID]
	if !full {
		c.running[in.ID] = true
	}
	c.mu.Unlock()
	if full {
		return
	}
	c.wg.Go(func() {
		defer guard(c.log, "command")
		defer func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			delete(c.running, in.ID)
		}()
		c.run(context.WithoutCancel(ctx), in)
	})
}

// run does one command and commits its end.
func (c *commands) run(ctx context.Context, in workspace.Input) {
	key, err := workspace.ParseKey(in.Binding.Key)
	if err != nil {
		c.log.Error("command has no session", "input", in.ID, "err", err)
		return
	}
	home := key
	if in.Binding.Home != "" {
		if home, err = workspace.ParseKey(in.Binding.Home); err != nil {
			c.log.Error("command has no home", "input", in.ID, "err", err)
			return
		}
	}
	call := control.Call{Home: home, Actor: workspace.Actor{Person: in.Person, Role: in.Role, Name: in.Sender}, Room: in.RoomID, Session: key, Input: &in, Borrowed: in.Data.Borrowed}
	if in.RoomID != "" {
		addr, err := c.deliver.Address(in.RoomID)
		if err != nil {
			c.log.Error("command has no room", "input", in.ID, "err", err)
			return
		}
		call.Kind, call.Read = addr.Kind, c.local(addr.Network)
		call.Borrowed = call.Borrowed || call.Read // a page says it of no message
	} else {
		call.Kind = channels.DM
	}
	defer func() {
		if p := recover(); p != nil {
			c.log.Error("command panicked", "input", in.ID, "panic", p, "stack", string(debug.Stack()))
			if err := c.control.Refuse(call, "That did not work ("+workspace.Short(in.ID)+")."); err != nil {
				c.log.Error("command cannot be ended", "input", in.ID, "err", err)
			}
		}
	}()
	do := command.Run
	if in.Kind == channels.KindButton {
		do, call.Private = command.Press, c.deliver.Private(in)
		defer c.orphaned(in)
	}
	if err := do(ctx, c.control, call, in.Text); err != nil && !errors.Is(err, workspace.ErrConflict) && !errors.Is(err, agentloop.ErrShutdown) {
		c.log.Error("command failed", "input", in.ID, "session", in.Binding.Key, "err", err)
	}
	c.feed.Publish(in.Binding.Key, live.Update{Stored: true})
}

func (c *commands) wait() { c.wg.Wait() }

// Slash is a slash command, for who types it.
type Slash struct {
	Name, Args, Help string
	Choices          []string // words that the first argument may be, as far as they are known
}

// Slashes lists the slash commands in the order of /help.
func Slashes() []Slash {
	var list []Slash
	for _, c := range command.Table() {
		s := Slash{c.Name, c.Args, c.Help, c.Choices}
		if s.Choices == nil {
			s.Choices = wordsOf(c.Args)
		}
		list = append(list, s)
	}
	return list
}

// wordsOf are the words among the first alternatives of a usage line: list and default of [list|<name>|default].
func wordsOf(usage string) []string {
	first, _, _ := strings.Cut(strings.TrimPrefix(usage, "["), "]")
	if !strings.Contains(first, "|") {
		return nil
	}
	var words []string
	for alternative := range strings.SplitSeq(first, "|") {
		if word, _, _ := strings.Cut(alternative, " "); word != "" && !strings.HasPrefix(word, "<") {
			words = append(words, word)
		}
	}
	return words
}
