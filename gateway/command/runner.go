// Doing the commands of the journal.

package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"

	"parley/agentloop"
	"parley/channels"
	"parley/gateway/control"
	"parley/gateway/control/all"
	"parley/gateway/live"
	"parley/gateway/spec"
	"parley/workspace"
)

// Rooms knows where commands came from.
type Rooms interface {
	Address(id workspace.RoomID) (channels.Address, error)
	// Private says whether only the sender of an input reads what answers it.
	Private(in workspace.Input) bool
}

// RunnerOptions are all needed.
type RunnerOptions struct {
	Rooms Rooms
	Feed  *live.Feed
	Local func(channels.Network) bool // its people are signed in at the gateway
	Log   *slog.Logger
}

// Runner does the slash commands of the journal: those that keep their place in the session's order are given to it by their lane,
// the others it does beside the lanes.
//
// Goroutines: one for each command beside the lanes, at most commandsAtOnce. Wait waits for them.
type Runner struct {
	RunnerOptions
	control   *all.Nouns
	questions Questions

	wg      sync.WaitGroup
	mu      sync.Mutex
	running map[workspace.InputID]bool
}

const commandsAtOnce = 256

// NewRunner makes a runner that Serve tells by which verbs it does commands.
func NewRunner(o RunnerOptions) *Runner {
	return &Runner{RunnerOptions: o, running: map[workspace.InputID]bool{}}
}

// Serve is called once, before anything runs. The verbs act on what hands commands to the runner, so that they are made after it.
func (r *Runner) Serve(c *all.Nouns, q Questions) { r.control, r.questions = c, q }

// Questions knows of the answers that need no words.
type Questions interface {
	// PressOf is what an input decides; nil: its text is a command.
	PressOf(in workspace.Input) *workspace.Press
	// CloseOrphan closes a pressed message that nothing else would.
	CloseOrphan(in workspace.Input)
}

// orderOf is when an input is done.
func orderOf(in workspace.Input) spec.Order {
	if in.Data.Press != nil {
		return spec.Concurrent
	}
	return OrderOf(in.Text)
}

// BeforeRouting says whether an input is a command that decides where the room's next message goes: it is done before that
// one is judged.
func (r *Runner) BeforeRouting(in workspace.Input) bool {
	return in.Mode == workspace.ModeCommand && in.State == workspace.InputQueued &&
		!r.Local(channels.Network(in.Source)) && // their messages name their session
		orderOf(in) == spec.BeforeRouting
}

// Start does a command beside the lanes and does not wait. It is false for one that takes its place in the session's order. When
// too many run the sweeper offers it again.
func (r *Runner) Start(ctx context.Context, in workspace.Input) bool {
	switch orderOf(in) {
	case spec.InOrder:
		return false
	case spec.AheadOfWait:
		if !r.control.Conversations.Lanes.Stuck(in.Binding.Key) {
			return false
		}
	}
	r.mu.Lock()
	full := len(r.running) >= commandsAtOnce || r.running[in.ID]
	if !full {
		r.running[in.ID] = true
	}
	r.mu.Unlock()
	if full {
		return true
	}
	r.wg.Go(func() {
		defer func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			delete(r.running, in.ID)
		}()
		r.Run(context.WithoutCancel(ctx), in)
	})
	return true
}

// Run does one command and commits its end.
func (r *Runner) Run(ctx context.Context, in workspace.Input) {
	defer func() { // also in what ends a command that panicked: one fails, and not the gateway
		if p := recover(); p != nil {
			r.Log.Error("command panicked", "input", in.ID, "panic", p, "stack", string(debug.Stack()))
		}
	}()
	call, err := r.call(in)
	if err != nil {
		r.Log.Error("command is not done", "input", in.ID, "err", err)
		return
	}
	defer func() {
		if p := recover(); p != nil {
			r.Log.Error("command panicked", "input", in.ID, "panic", p, "stack", string(debug.Stack()))
			if err := r.control.Refuse(call, "That did not work ("+workspace.Short(in.ID)+")."); err != nil {
				r.Log.Error("command is not ended", "input", in.ID, "err", err)
			}
		}
	}()
	switch p := r.questions.PressOf(in); {
	case p == nil:
		err = Run(ctx, r.control, call, in.Text)
	case in.Kind == channels.KindButton:
		defer r.questions.CloseOrphan(in)
		err = press(ctx, r.control, call, *p)
	default:
		err = quoted(ctx, r.control, call, *p)
	}
	if err != nil && !errors.Is(err, workspace.ErrConflict) && !errors.Is(err, agentloop.ErrShutdown) {
		r.Log.Error("command failed", "input", in.ID, "session", in.Binding.Key, "err", err)
	}
	r.Feed.Publish(in.Binding.Key, live.Update{Stored: true})
}

// call is who asks for a command, and from where.
func (r *Runner) call(in workspace.Input) (call control.Call, err error) {
	call = control.Call{Actor: workspace.Actor{Person: in.Person, Role: in.Role, Name: in.Sender}, Room: in.RoomID, Kind: channels.DM,
		Input: &in, Borrowed: in.Data.Borrowed}
	if call.Session, err = workspace.ParseKey(in.Binding.Key); err != nil {
		return call, fmt.Errorf("its session: %w", err)
	}
	call.Home = call.Session
	if in.Binding.Home != "" {
		if call.Home, err = workspace.ParseKey(in.Binding.Home); err != nil {
			return call, fmt.Errorf("its chat's first session: %w", err)
		}
	}
	if in.RoomID != "" {
		addr, err := r.Rooms.Address(in.RoomID)
		if err != nil {
			return call, fmt.Errorf("its room: %w", err)
		}
		call.Kind, call.Read = addr.Kind, r.Local(addr.Network)
		call.Borrowed = call.Borrowed || call.Read // a page says it of no message
	}
	call.Private = in.Kind == channels.KindButton && r.Rooms.Private(in)
	return call, nil
}

// Wait blocks until the commands beside the lanes are done.
func (r *Runner) Wait() { r.wg.Wait() }
