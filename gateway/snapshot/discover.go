package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"

	"parley/agentloop/llm"
	"parley/agentloop/llm/offline"
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
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/models", nil)
	if err != nil {
		return nil, err
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	res, err := m.opt.HTTP.Do(req)
	if err != nil {
		return nil, plainly(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("answers %d", res.StatusCode)
	}
	var body struct {
		Data []struct{ ID string }
	}
	if json.NewDecoder(io.LimitReader(res.Body, 1<<20)).Decode(&body) != nil {
		return nil, errors.New("is something else than a model server")
	}
	var ids []string
	for _, one := range body.Data {
		ids = append(ids, one.ID)
	}
	return ids, nil
}

// plainly is why a server was not reached, without its address, which the reader has.
func plainly(err error) error {
	var lookup *net.DNSError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return errors.New("nobody answers there")
	case errors.Is(err, context.DeadlineExceeded):
		return errors.New("does not answer in time")
	case errors.As(err, &lookup):
		return errors.New("has an unknown name")
	}
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
