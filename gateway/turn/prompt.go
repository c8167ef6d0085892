// What a session's prompt holds, for verbs.

package turn

import (
	"context"
	"errors"
	"sync"

	"parley/agentloop"
	"parley/channels"
	"parley/gateway/snapshot"
	"parley/gateway/transcript"
	"parley/workspace"
)

// maxSummed is how many lines of a transcript a summary is made of, the newest.
const maxSummed = 5000

// PromptOptions of Prompts; all of them are needed.
type PromptOptions struct {
	Store       Sessions
	Transcripts *transcript.Cache
	Snapshot    func() *snapshot.Snapshot // of the configuration in force
	// Typing shows a room that somebody is at work, until stop.
	Typing func(ctx context.Context, room workspace.RoomID) (stop func())
}

// Prompts weighs and sums up what the prompts of sessions hold. Safe for concurrent use.
type Prompts struct {
	PromptOptions

	mu      sync.Mutex
	summing map[string]summing // by session
}

// summing is a summary that a command is having made.
type summing struct {
	command workspace.Input
	cancel  context.CancelCauseFunc
}

// NewPrompts makes them.
func NewPrompts(o PromptOptions) *Prompts {
	return &Prompts{PromptOptions: o, summing: map[string]summing{}}
}

// Asked is who asks about a session's prompt, and from where.
type Asked struct {
	Session workspace.Key
	Actor   workspace.Actor
	Kind    channels.PeerKind
	Room    workspace.RoomID
	Command *workspace.Input // nil: it is none of the journal
}

// Summarize has the agent's summarizer, or its model, sum up the older part of a session. The room sees that somebody is at
// work. It ends with agentloop.ErrStopped when the session is stopped, and with agentloop.ErrShutdown when the gateway is.
func (p *Prompts) Summarize(ctx context.Context, by Asked, ses workspace.Session, instructions string) (agentloop.Compaction, error) {
	snap := p.Snapshot()
	sum, list, err := p.Transcripts.History(ses, maxSummed)
	if err != nil {
		return agentloop.Compaction{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, snap.TurnTimeout)
	defer cancel()
	ctx, end := p.begin(ctx, ses.Key.String(), by.Command)
	defer end()
	defer p.Typing(ctx, by.Room)()
	agent := snap.Agent(ses.Key.Agent)
	t := agentloop.Turn{Session: ses.Key, SessionID: ses.ID, Agent: agent.ID, Requester: by.Actor, PeerKind: string(ses.Key.Kind),
		Summary: sum.Text, History: list, Models: agent.Summarizers(ses.Overrides)}
	got, err := snap.Loop.Summarize(ctx, t, instructions, nil)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		for _, known := range []error{agentloop.ErrStopped, agentloop.ErrShutdown, context.DeadlineExceeded} {
			if errors.Is(cause, known) {
				return got, known
			}
		}
	}
	return got, err
}

// begin notes a summary, so that it can be cancelled until end is called.
func (p *Prompts) begin(ctx context.Context, key string, command *workspace.Input) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	s := summing{cancel: cancel}
	if command != nil {
		s.command = *command
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.summing[key] = s
	return ctx, func() {
		cancel(nil)
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.summing, key)
	}
}

// CancelSummary ends the summary that a command is having made of a session, if match accepts the command.
func (p *Prompts) CancelSummary(key string, match func(command workspace.Input) bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, ok := p.summing[key]
	if !ok || !match(s.command) {
		return false
	}
	s.cancel(agentloop.ErrStopped)
	return true
}

// Composed is what a session's next prompt is made of.
type Composed struct {
	agentloop.Composition
	Model string
	Files []agentloop.PromptFile
}

// Compose weighs the next prompt of a session.
func (p *Prompts) Compose(by Asked) (v Composed, err error) {
	snap := p.Snapshot()
	agent := snap.Agent(by.Session.Agent)
	t := agentloop.Turn{Session: by.Session, Agent: agent.ID, Requester: by.Actor, PeerKind: string(by.Kind)}
	var over workspace.Overrides
	if ses, err := p.Store.SessionByKey(by.Session); err == nil {
		sum, list, err := p.Transcripts.History(ses, transcript.MaxEntries)
		if err != nil {
			return v, err
		}
		t.SessionID, t.Summary, t.History, over = ses.ID, sum.Text, list, ses.Overrides
	} else if !errors.Is(err, workspace.ErrNotFound) {
		return v, err
	}
	channel := ""
	if by.Command != nil {
		t.Network, channel = by.Command.Source, by.Command.Data.Channel
	}
	t.Models = agent.Chain(over)
	t.System, t.Volatile = agent.Prompt(&t, channel)
	if v.Composition, err = snap.Loop.Compose(t); err != nil {
		return v, err
	}
	v.Model, v.Files = t.Models[0], agent.PromptFiles()
	return v, nil
}
