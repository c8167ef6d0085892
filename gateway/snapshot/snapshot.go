// Package snapshot is what one configuration means to running work: its agents with their tools and policy, its models,
// routes, queue settings, domains and people. A Snapshot is an immutable value, built as a whole from one configuration;
// whoever uses it takes it once for one piece of work, so that all it reads there agrees. Source has the one in force and
// makes the next.
//
// Goroutines: Source.Discover and Sandbox.Try run in their caller's.
package snapshot

import (
	"context"
	"io"
	"slices"
	"time"

	"parley/agentloop"
	"parley/agentloop/lane"
	"parley/agentloop/llm"
	"parley/configs"
	"parley/routes"
	"parley/tools"
	"parley/workspace"
)

// Snapshot is what one configuration means. It never changes; a reload makes a new one, and a turn keeps the one that it
// began with.
type Snapshot struct {
	Config      *configs.Config // what it was made of, with the keys that wait for a restart as the process has them
	Agents      map[workspace.AgentID]*Agent
	Order       []workspace.AgentID // as they are configured
	Default     workspace.AgentID
	Table       *routes.Table
	Queue       lane.Settings
	TurnTimeout time.Duration
	StaleAfter  time.Duration // an answer that is older is not sent unasked; 0: however old
	Progress    Progress
	OnUnknown   workspace.OnUnknown
	MainScope   bool // while one owner is the only person, all share a session
	Models      *llm.Registry
	Runner      agentloop.Runner // carries out runs: the loop
	Loop        *agentloop.Loop  // weighs and sums up its own prompts as well
	Domains     map[string]Domain
	Transcriber Transcriber // nil: nothing is configured that transcribes
}

// Progress is when a room is shown that a turn is under way.
type Progress struct{ Typing, Placeholder time.Duration }

// Transcriber turns recordings into text.
type Transcriber interface {
	Transcribe(ctx context.Context, name, mime string, sound io.ReadSeeker) (text string, err error)
}

// Agent is the configured agent, or the default where it is no longer there.
func (s *Snapshot) Agent(id workspace.AgentID) *Agent {
	if a, ok := s.Agents[id]; ok {
		return a
	}
	return s.Agents[s.Default]
}

// QueueSettings are the settings of a queue as the overrides of a session change them. What an older version stored and is
// no value now changes nothing.
func QueueSettings(set lane.Settings, o workspace.Overrides) lane.Settings {
	if o.Queue != "" {
		set.Mode = o.Queue
	}
	if d, err := time.ParseDuration(o.Debounce); err == nil && o.Debounce != "" {
		set.Debounce = d
	}
	if o.Cap > 0 {
		set.Cap = o.Cap
	}
	if o.Drop != "" {
		set.Overflow = o.Drop
	}
	return set
}

// Agent is a configured agent with its files.
type Agent struct {
	ID         workspace.AgentID
	Name       string
	Models     []string // primary, then fallbacks
	Choices    []string // further ones that a session may be switched to
	Summarizer string   // the model of that role; empty: the session's
	MaxSteps   int
	Scope      string
	Files      workspace.Agent
	Folders    []workspace.Folder // of an owner, for owners
	Tools      tools.Set

	prompts *agentloop.Prompts
	zones   map[workspace.PersonID]*time.Location
	now     func() time.Time
}

// Prompt is the byte-stable part and what changes from turn to turn.
func (a *Agent) Prompt(t *agentloop.Turn, channel string) (system, volatile string) {
	system = a.prompts.System(a.Files, a.Tools.For(t.Subject()))
	return system, agentloop.Volatile(agentloop.Moment{Now: a.now(), Zone: a.zones[t.Requester.Person], Network: t.Network,
		Channel: channel, PeerKind: t.PeerKind, Session: t.Session, Requester: t.Requester})
}

// PromptFiles are the agent's files as they stand in its prompt.
func (a *Agent) PromptFiles() []agentloop.PromptFile { return a.prompts.Files(a.Files) }

// Chain is the models of a turn in the order in which they are asked: the session's own, if it may have it, before the
// agent's.
func (a *Agent) Chain(o workspace.Overrides) []string {
	if o.Model == "" || !slices.Contains(a.Models, o.Model) && !slices.Contains(a.Choices, o.Model) {
		return a.Models
	}
	return first(o.Model, a.Models)
}

// Summarizers are the models that are asked for a summary.
func (a *Agent) Summarizers(o workspace.Overrides) []string {
	chain := a.Chain(o)
	if a.Summarizer == "" {
		return chain
	}
	return first(a.Summarizer, chain)
}

// first is the list with a name before the others.
func first(name string, list []string) []string {
	return append([]string{name}, slices.DeleteFunc(slices.Clone(list), func(other string) bool { return other == name })...)
}
