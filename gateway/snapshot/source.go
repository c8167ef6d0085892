package snapshot

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"parley/agentloop"
	"parley/agentloop/lane"
	"parley/configs"
	"parley/routes"
	"parley/tools"
	"parley/workspace"
)

// Options are what every snapshot of a process shares.
type Options struct {
	Models  *Models
	Tools   []tools.Tool // all that exist
	Network bool         // commands reach hosts
	Prompts *agentloop.Prompts
	Loop    agentloop.Loop // without models and tools
	// Guards finds who looks after an owner's folder.
	Guards func(dir string) (workspace.Guard, error)
	// Granted are the rules for commands that people gave a session; nil: none.
	Granted Granted
}

// Source has the snapshot in force and makes the next. Safe for concurrent use.
type Source struct {
	opt     Options
	making  sync.Mutex // held from Prepare to Commit or Drop
	current atomic.Pointer[Snapshot]
}

// New makes a source in which nothing is in force yet.
func New(o Options) *Source { return &Source{opt: o} }

// Current is the snapshot in force; nil before the first Commit. Keep it for one piece of work.
func (s *Source) Current() *Snapshot { return s.current.Load() }

// Attempt tries a model of the configuration in force, or a server.
func (s *Source) Attempt(ctx context.Context, a Ask) (Tried, error) {
	return s.opt.Models.Attempt(ctx, s.Current().Config, a)
}

// Prepared is a snapshot that is ready to be put in force. Nobody else prepares one before its Commit or Drop.
type Prepared struct {
	*Snapshot
	source *Source
}

// Prepare makes what a configuration means and lays out the files of its agents. Nothing of it is in force before Commit.
func (s *Source) Prepare(c *configs.Config) (p Prepared, err error) {
	s.making.Lock()
	defer func() {
		if err != nil {
			s.making.Unlock()
		}
	}()
	made, err := s.build(c)
	if err != nil {
		return Prepared{}, err
	}
	for _, id := range made.Order {
		if _, err := made.Agents[id].Files.Scaffold(); err != nil {
			return Prepared{}, fmt.Errorf("lay out the files of agent %s: %w", id, err)
		}
	}
	return Prepared{made, s}, nil
}

// Commit puts the snapshot in force. It cannot fail.
func (p Prepared) Commit() {
	defer p.source.making.Unlock()
	p.Models.Resize(p.Config.Concurrency.PerModel)
	if former := p.source.current.Swap(p.Snapshot); former != nil {
		p.source.opt.Models.lookNow()
	}
}

// Drop leaves what is in force as it is.
func (p Prepared) Drop() { p.source.making.Unlock() }

// build makes what a configuration means, and does no IO.
func (s *Source) build(c *configs.Config) (*Snapshot, error) {
	queue := c.Sessions.Queue
	made := &Snapshot{Config: c, Agents: map[workspace.AgentID]*Agent{}, Default: defaultAgent(c),
		TurnTimeout: c.Sessions.TurnTimeout, StaleAfter: c.Replies.StaleAfter,
		Progress: Progress{Typing: min(c.Replies.TypingAfter, c.Replies.FirstSign), Placeholder: c.Replies.PlaceholderAfter},
		Queue: lane.Settings{Mode: queue.Mode, Debounce: queue.Debounce, Cap: queue.Cap, Overflow: queue.Overflow,
			Sign: c.Replies.FirstSign},
		OnUnknown: workspace.OnUnknown(c.Replies.MaybeSent), MainScope: c.Sessions.DMScope == string(routes.MainScope),
		Domains: domains(c.Domains)}
	models := s.opt.Models.of(c)
	var err error
	if made.Models, err = s.opt.Models.registry(models, c.Concurrency.PerModel, s.Current()); err != nil {
		return nil, err
	}
	if made.Transcriber, err = s.opt.Models.transcriber(c.Transcription); err != nil {
		return nil, fmt.Errorf("transcription: %w", err)
	}
	if made.Table, err = table(c, made.Default); err != nil {
		return nil, err
	}
	set, zones := tools.NewSet(s.opt.Tools, policy(c, made.Table, s.opt.Network, s.opt.Granted)), zones(c)
	for _, conf := range c.Agents {
		a, err := s.agent(c, conf, models[0].Name)
		if err != nil {
			return nil, err
		}
		if _, err := made.Models.Chain(a.Models, nil); err != nil {
			return nil, fmt.Errorf("agent %q: %w", conf.ID, err)
		}
		a.Tools, a.zones = set, zones
		made.Agents[a.ID], made.Order = a, append(made.Order, a.ID)
	}
	loop := s.opt.Loop
	loop.Models, loop.Tools = made.Models, set
	made.Loop, made.Runner = &loop, &loop
	return made, nil
}

// agent is a configured agent; one that names no model has the given one.
func (s *Source) agent(c *configs.Config, conf configs.Agent, model string) (*Agent, error) {
	files, err := workspace.NewAgent(c.DataDir, workspace.AgentID(conf.ID), conf.Name, conf.Workspace)
	if err != nil {
		return nil, err
	}
	models := []string{model}
	if conf.Model != "" {
		models = append([]string{conf.Model}, conf.Fallbacks...)
	}
	a := &Agent{ID: workspace.AgentID(conf.ID), Name: files.Name, Models: models, Choices: conf.Models, Summarizer: conf.Roles.Summarizer,
		MaxSteps: conf.MaxSteps, Scope: conf.WorkspaceScope, Files: files, prompts: s.opt.Prompts, now: s.opt.Loop.Now}
	for _, f := range conf.Folders {
		a.Folders = append(a.Folders, workspace.Folder{Dir: f.Path, As: f.As, Write: f.Mode == "rw", Guards: s.opt.Guards})
	}
	return a, nil
}
