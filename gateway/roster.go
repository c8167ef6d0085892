package gateway

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"parley/agentloop"
	"parley/agentloop/lane"
	"parley/agentloop/llm"
	"parley/agentloop/llm/anthropic"
	"parley/agentloop/llm/offline"
	"parley/agentloop/llm/openai"
	"parley/channels"
	"parley/configs"
	"parley/routes"
	"parley/tools"
	"parley/workspace"
)

// roster is what one configuration means to running turns. It never changes; a reload makes a new one, and a turn
// keeps the one it began with.
type roster struct {
	conf        *configs.Config // what it was made of: whoever needs a value of the configuration reads it here
	agents      map[workspace.AgentID]*agent
	order       []workspace.AgentID
	fallback    workspace.AgentID // the default agent
	table       *routes.Table
	queue       lane.Settings
	turnTimeout time.Duration
	staleAfter  time.Duration
	signs       signTimes
	onUnknown   workspace.OnUnknown
	mainScope   bool
	models      *llm.Registry
	loop        *agentloop.Loop
	zone        map[workspace.PersonID]*time.Location
	domains     map[string]domain
	expire      time.Duration // how long a question stands that no domain owns
	hearing     hearing       // nil: nothing is configured that transcribes
}

// agent is a configured agent with its files.
type agent struct {
	ID       workspace.AgentID
	Name     string
	Models   []string // primary, then fallbacks
	Choices  []string // further ones that a session may be switched to
	Sums     string   // the model of role summarizer; empty: the session's
	MaxSteps int
	Scope    string
	Files    workspace.Agent
	Folders  []workspace.Folder // of an owner, for owners

	prompts *agentloop.Prompts
	tools   tools.Set
	roster  *roster
	now     func() time.Time
}

// Prompt is the byte-stable part and what changes from turn to turn.
func (a *agent) Prompt(t *agentloop.Turn, channel string) (system, volatile string) {
	system = a.prompts.System(a.Files, a.tools.For(t.Subject()))
	return system, agentloop.Volatile(agentloop.Moment{Now: a.now(), Zone: a.roster.zone[t.Requester.Person], Network: t.Network, Channel: channel,
		PeerKind: t.PeerKind, Session: t.Session, Requester: t.Requester})
}

// agent is the configured one, or the default where it is no longer there.
func (r *roster) agent(id workspace.AgentID) *agent {
	if a, ok := r.agents[id]; ok {
		return a
	}
	return r.agents[r.fallback]
}

// chain is the models of a turn in the order in which they are asked: the session's own, if it may have it, before the
// agent's.
func (r *roster) chain(a *agent, o workspace.Overrides) []string {
	if o.Model == "" || !slices.Contains(a.Models, o.Model) && !slices.Contains(a.Choices, o.Model) {
		return a.Models
	}
	return append([]string{o.Model}, slices.DeleteFunc(slices.Clone(a.Models), func(name string) bool { return name == o.Model })...)
}

// summarizers are the models that are asked for a summary.
func (r *roster) summarizers(a *agent, o workspace.Overrides) []string {
	chain := r.chain(a, o)
	if a.Sums == "" {
		return chain
	}
	return append([]string{a.Sums}, slices.DeleteFunc(slices.Clone(chain), func(name string) bool { return name == a.Sums })...)
}

// newModels opens what the configuration names. What cannot work as far as is known without the network is an error.
func (g *Gateway) newModels(list []configs.Model, perModel int, from *roster) (*llm.Registry, error) {
	var models []llm.Model
	var errs []error
	for _, m := range list {
		model, err := g.newModel(m)
		if err != nil {
			errs = append(errs, fmt.Errorf("model %q: %w", m.Name, err))
			continue
		}
		models = append(models, model)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	opt := llm.RegistryOptions{PerModel: perModel}
	if from != nil {
		opt.From = from.models
	}
	return llm.NewRegistry(opt, models...)
}

func (g *Gateway) newModel(m configs.Model) (llm.Model, error) {
	switch m.API {
	case "offline":
		return offline.New(m.Name), nil
	case lookingName:
		return looking{g.discovery}, nil
	}
	ref := g.prices.Ref(m.BaseURL, m.Model)
	sight := map[string]llm.Sight{"yes": llm.Sees, "no": llm.Blind}[m.Vision]
	price := func(u workspace.Usage) (float64, bool) { return g.prices.Cost(ref, u) }
	switch m.API {
	case "openai":
		return openai.New(openai.Options{Name: m.Name, Model: m.Model, BaseURL: m.BaseURL, APIKey: m.APIKey.Reveal(),
			ContextWindow: m.ContextWindow, MaxOutput: m.MaxOutputTokens, HTTP: g.calls, Blobs: g.readBlob, Sight: sight, Price: price})
	case "anthropic":
		return anthropic.New(anthropic.Options{Name: m.Name, Model: m.Model, BaseURL: m.BaseURL, APIKey: m.APIKey.Reveal(),
			ContextWindow: m.ContextWindow, MaxOutput: m.MaxOutputTokens, HTTP: g.calls, Blobs: g.readBlob, Sight: sight, Price: price})
	}
	return nil, fmt.Errorf("api %q is unknown", m.API)
}

// newRoster makes what a configuration means. models are those in force.
func (g *Gateway) newRoster(c *configs.Config, models []configs.Model) (*roster, error) {
	r := &roster{conf: c, agents: map[workspace.AgentID]*agent{}, turnTimeout: c.Sessions.TurnTimeout, staleAfter: c.Replies.StaleAfter,
		signs:     signTimes{typing: min(c.Replies.TypingAfter, c.Replies.FirstSign), placeholder: c.Replies.PlaceholderAfter},
		queue:     lane.Settings{Mode: c.Sessions.Queue.Mode, Debounce: c.Sessions.Queue.Debounce, Cap: c.Sessions.Queue.Cap, Overflow: c.Sessions.Queue.Overflow, Sign: c.Replies.FirstSign},
		onUnknown: workspace.OnUnknown(c.Replies.MaybeSent), mainScope: c.Sessions.DMScope == string(routes.MainScope), zone: map[workspace.PersonID]*time.Location{},
		domains: domainsOf(c.Domains), expire: c.Approvals.Expire}
	var err error
	if r.models, err = g.newModels(models, c.Concurrency.PerModel, g.roster()); err != nil {
		return nil, err
	}
	if t := c.Transcription; t.Model != "" {
		if r.hearing, err = openai.NewTranscriber(openai.TranscriberOptions{Model: t.Model, BaseURL: t.BaseURL, APIKey: t.APIKey.Reveal(),
			Language: t.Language, HTTP: g.calls}); err != nil {
			return nil, fmt.Errorf("transcription: %w", err)
		}
	}
	r.fallback = fallbackOf(c)
	if r.table, err = newTable(c, r.fallback); err != nil {
		return nil, err
	}
	set := tools.NewSet(g.tools(), g.policy(c, r.table))
	for _, a := range c.Agents {
		files, err := workspace.NewAgent(c.DataDir, workspace.AgentID(a.ID), a.Name, a.Workspace)
		if err != nil {
			return nil, err
		}
		names := append([]string{a.Model}, a.Fallbacks...)
		if a.Model == "" {
			names = []string{models[0].Name}
		}
		id := workspace.AgentID(a.ID)
		r.agents[id] = &agent{ID: id, Name: files.Name, Models: names, Choices: a.Models, Sums: a.Roles.Summarizer, MaxSteps: a.MaxSteps, Scope: a.WorkspaceScope, Files: files, Folders: g.foldersOf(a),
			prompts: g.prompts, tools: set, roster: r, now: g.opt.Now}
		r.order = append(r.order, id)
		if _, err := r.models.Chain(names, nil); err != nil {
			return nil, fmt.Errorf("agent %q: %w", a.ID, err)
		}
	}
	for _, p := range c.People {
		if zone, err := time.LoadLocation(p.TZ); err == nil && p.TZ != "" {
			r.zone[workspace.PersonID(p.ID)] = zone
		}
	}
	r.loop = &agentloop.Loop{Models: r.models, Tools: set, Log: g.log, Now: g.opt.Now, Hide: g.hide(), Budget: g.memory.answers, Disk: g.disk}
	return r, nil
}

// fallbackOf is the default agent.
func fallbackOf(c *configs.Config) (id workspace.AgentID) {
	for _, a := range c.Agents {
		if a.Default || len(c.Agents) == 1 {
			id = workspace.AgentID(a.ID)
		}
	}
	return id
}

func newTable(c *configs.Config, fallback workspace.AgentID) (*routes.Table, error) {
	o := routes.Options{Default: fallback, Channels: map[string]channels.Network{configs.WebChat: configs.WebChat, configs.API: configs.API}, DMScope: routes.DMScope(c.Sessions.DMScope)}
	for _, ch := range c.Channels {
		o.Channels[ch.Name] = channels.Network(ch.Type)
	}
	for _, a := range c.Agents {
		o.Agents = append(o.Agents, routes.Agent{ID: workspace.AgentID(a.ID), Channels: a.May.Channels})
	}
	var rules []routes.Rule
	for _, r := range c.Routes {
		rule := routes.Rule{Type: channels.Network(r.Type), Channel: r.Channel, Server: r.Server, Roles: r.Roles, Team: r.Team, Kind: channels.PeerKind(r.Kind),
			Peer: channels.PeerID(r.Peer), Thread: channels.ThreadID(r.Thread), Agent: workspace.AgentID(r.Agent), Session: r.Session}
		for _, f := range r.Fanout {
			rule.Fanout = append(rule.Fanout, workspace.AgentID(f))
		}
		rules = append(rules, rule)
	}
	return routes.NewTable(rules, o)
}
