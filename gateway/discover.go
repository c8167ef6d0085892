package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"parley/agentloop/llm"
	"parley/agentloop/llm/offline"
	"parley/configs"
)

const (
	lookingName = "looking" // the api and name of the stand-in while servers are asked
	lookEvery   = 15 * time.Second
	askLocal    = 2 * time.Second // a closed port answers at once; a model server may be loading
	askAway     = 5 * time.Second
)

// discovery is the model that is used while none is configured. It never holds up the start: until the servers have
// answered a stand-in takes the calls and has them wait.
type discovery struct {
	first sync.Once
	done  chan struct{} // the first look is over
	again chan struct{}
	found atomic.Pointer[foundModel]
}

type foundModel struct {
	conf  configs.Model
	model llm.Model
}

func newDiscovery() *discovery {
	return &discovery{done: make(chan struct{}), again: make(chan struct{}, 1)}
}

// modelsOf is the configured models, or what was found in their place, or the stand-in while that is not known.
func (g *Gateway) modelsOf(c *configs.Config) []configs.Model {
	if len(c.Models) > 0 {
		return c.Models
	}
	if m, ok := configs.FromEnv(g.opt.Env); ok {
		if f := g.found.Load(); f == nil || f.conf != m {
			g.find(m)
		}
	}
	if f := g.found.Load(); f != nil {
		return []configs.Model{f.conf}
	}
	return []configs.Model{{Name: lookingName, API: lookingName}}
}

// find puts a model into the place of a configured one.
func (g *Gateway) find(m configs.Model) {
	model, err := g.newModel(m)
	if err != nil {
		g.log.Error("model that was found cannot be used", "model", m.Name, "found", m.Found, "err", err)
		m = configs.Model{Name: "offline", API: "offline", Model: "offline", Found: m.Found}
		model = offline.New(m.Name)
	}
	old := g.found.Swap(&foundModel{m, model})
	switch {
	case old != nil && old.conf == m:
	case m.API == "offline":
		g.log.Info("no model is configured or found; the built-in responder answers", "cause", m.Found, "hint", "parley onboard adds a model")
	default:
		g.log.Info("model found", "model", m.Name, "is", m.Model, "by", m.Found)
	}
	g.first.Do(func() { close(g.done) })
}

// discover looks for a model while none is configured and none was found: a local server may be started later.
func (g *Gateway) discover(ctx context.Context) {
	again := time.NewTicker(lookEvery)
	defer again.Stop()
	for {
		if f := g.found.Load(); len(g.config().Models) == 0 && (f == nil || f.conf.API == "offline") {
			g.look(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		case <-g.again:
		}
	}
}

func (g *Gateway) look(ctx context.Context) {
	d := configs.Discover(ctx, g.opt.Env, g.probe)
	if ctx.Err() != nil {
		return
	}
	g.renew.Lock()
	defer g.renew.Unlock()
	old := g.found.Load()
	g.find(d.Model)
	c := g.config()
	if f := g.found.Load(); len(c.Models) > 0 || old != nil && old.conf == f.conf {
		return
	}
	r, err := g.newRoster(c, g.modelsOf(c))
	if err != nil {
		g.log.Error("model that was found cannot be used", "err", err)
		return
	}
	g.current.Store(r)
}

// lookNow has discover look before its time.
func (g *Gateway) lookNow() {
	select {
	case g.again <- struct{}{}:
	default: // it will
	}
}

// looking is the stand-in: a call waits for the first look, and goes to what it found.
type looking struct{ *discovery }

// Info says that it is not known yet.
func (l looking) Info() llm.Info {
	return llm.Info{Name: lookingName, Model: "looking for a model", ContextWindow: 128_000}
}

// Stream waits at most as long as servers are asked.
func (l looking) Stream(ctx context.Context, req llm.Request, onDelta func(llm.Delta)) (llm.Response, error) {
	select {
	case <-l.done:
		return l.found.Load().model.Stream(ctx, req, onDelta)
	case <-ctx.Done():
		return llm.Response{}, &llm.Error{Kind: llm.Cancelled, Model: lookingName, Err: context.Cause(ctx)}
	}
}

// probe asks an OpenAI-compatible server for its models. Its errors are for people.
func (g *Gateway) probe(ctx context.Context, base, key string) ([]string, error) {
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
	res, err := g.http.Do(req)
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
	for _, m := range body.Data {
		ids = append(ids, m.ID)
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
