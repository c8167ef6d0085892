package snapshot

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"parley/agentloop/llm"
	"parley/agentloop/llm/offline"
	"parley/agentloop/llm/provider"
	"parley/configs"
)

// Discovery finds the model that is used while none is configured. It never holds up the start: until servers have answered
// a stand-in takes the calls and has them wait.

const (
	discoveringName = "looking" // the api and name of the stand-in while servers are asked
	discoverEvery   = 15 * time.Second
	askLocal        = 2 * time.Second // a closed port answers at once; a model server may be loading
	askAway         = 5 * time.Second
)

// found is a model in place of a configured one.
type found struct {
	conf  configs.Model
	model llm.Model
}

// of is the configured models, or what was found in their place, or the stand-in while that is not known.
func (m *Models) of(c *configs.Config) []configs.Model {
	if len(c.Models) > 0 {
		return c.Models
	}
	if conf, ok := configs.FromEnv(m.opt.Env); ok {
		if f := m.found.Load(); f == nil || f.conf != conf {
			m.use(conf)
		}
	}
	if f := m.found.Load(); f != nil {
		return []configs.Model{f.conf}
	}
	return []configs.Model{{Name: discoveringName, API: discoveringName}}
}

// use puts a model into the place of a configured one.
func (m *Models) use(conf configs.Model) {
	model, err := m.open(conf)
	if err != nil {
		m.opt.Log.Error("model that was found cannot be used", "model", conf.Name, "found", conf.Found, "err", err)
		conf = configs.Model{Name: "offline", API: "offline", Model: "offline", Found: conf.Found}
		model = offline.New(conf.Name)
	}
	old := m.found.Swap(&found{conf, model})
	switch {
	case old != nil && old.conf == conf:
	case conf.API == "offline":
		m.opt.Log.Info("no model is configured or found; the built-in responder answers", "cause", conf.Found,
			"hint", "parley onboard adds a model")
	default:
		m.opt.Log.Info("model found", "model", conf.Name, "is", conf.Model, "by", conf.Found)
	}
	m.first.Do(func() { close(m.done) })
}

// lookNow has Discover look before its time.
func (m *Models) lookNow() {
	select {
	case m.again <- struct{}{}:
	default: // it will
	}
}

// Discover looks for a model while none is configured and none was found, until ctx ends: a local server may be started
// later.
func (s *Source) Discover(ctx context.Context) {
	m := s.opt.Models
	again := time.NewTicker(discoverEvery)
	defer again.Stop()
	for {
		if f := m.found.Load(); len(s.Current().Config.Models) == 0 && (f == nil || f.conf.API == "offline") {
			s.look(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		case <-m.again:
		}
	}
}

// look asks once, and puts a snapshot with what was found in force.
func (s *Source) look(ctx context.Context) {
	m := s.opt.Models
	d := configs.Discover(ctx, m.opt.Env, m.Probe)
	if ctx.Err() != nil {
		return
	}
	s.making.Lock()
	defer s.making.Unlock()
	old := m.found.Load()
	m.use(d.Model)
	c := s.Current().Config
	if f := m.found.Load(); len(c.Models) > 0 || old != nil && old.conf == f.conf {
		return
	}
	made, err := s.build(c)
	if err != nil {
		m.opt.Log.Error("model that was found cannot be used", "err", err)
		return
	}
	s.current.Store(made)
}

// discovering is the stand-in: a call waits for the first look, and goes to what it found.
type discovering struct{ *Models }

// Info says that it is not known yet.
func (d discovering) Info() llm.Info {
	return llm.Info{Name: discoveringName, Model: "looking for a model", ContextWindow: 128_000}
}

// Stream waits at most as long as servers are asked.
func (d discovering) Stream(ctx context.Context, req llm.Request, onDelta func(llm.Delta)) (llm.Response, error) {
	select {
	case <-d.done:
		return d.found.Load().model.Stream(ctx, req, onDelta)
	case <-ctx.Done():
		return llm.Response{}, &llm.Error{Kind: llm.Cancelled, Model: discoveringName, Err: context.Cause(ctx)}
	}
}

// Probe asks an OpenAI-compatible server for its models. Its errors are for people.
func (m *Models) Probe(ctx context.Context, base, key string) ([]string, error) {
	most := askAway
	if u, err := url.Parse(base); err == nil && configs.Loopback(u.Hostname()) {
		most = askLocal
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	list, _, err := provider.List(ctx, m.opt.HTTP, provider.Target{Provider: provider.Of("openai", base), API: "openai", BaseURL: base,
		Key: key, Exact: true})
	ids := make([]string, len(list))
	for i, one := range list {
		ids[i] = one.ID
	}
	if t := troubleOf(err); t != nil {
		return nil, errors.New(predicate(t))
	}
	return ids, nil
}

// predicate says a trouble of a server behind its name.
func predicate(t *provider.Trouble) string {
	switch {
	case t.Status != 0:
		return fmt.Sprintf("answers %d", t.Status)
	case t.Code == provider.NoListener:
		return "nobody answers there"
	case t.Code == provider.TimedOut:
		return "does not answer in time"
	case t.Code == provider.UnknownHost:
		return "has an unknown name"
	case t.Code == provider.NotModels:
		return "is something else than a model server"
	}
	return "cannot be used: " + t.Sentence
}
