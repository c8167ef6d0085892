package setup

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"parley/agentloop/llm/provider"
	"parley/channels"
	"parley/configs"
	"parley/gateway/transport"
	"parley/workspace/store"
)

// Parts tells how the parts of a running gateway are.
type Parts struct {
	Channels *transport.Channels
	Store    interface {
		Health() (health store.Health, why string)
	}
	Unserved *Trouble // of the listener
	HTTP     *http.Client
}

// Trouble is why something works no more. A zero one is none.
type Trouble struct{ err atomic.Pointer[error] }

// Set notes it.
func (t *Trouble) Set(err error) { t.err.Store(&err) }

// Get is nil while there is none.
func (t *Trouble) Get() error {
	if err := t.err.Load(); err != nil {
		return *err
	}
	return nil
}

// Look tells how one is.
func (h Parts) Look(ctx context.Context, c *configs.Config, p Part) State {
	switch p.Kind {
	case "store":
		if health, why := h.Store.Health(); health == store.Unwritable || health == store.Damaged {
			return whole(fmt.Errorf("it is %s: %s", health, why))
		}
		return whole(nil)
	case "listener":
		return whole(h.Unserved.Get())
	case "channel":
		return h.channel(p.Name)
	}
	for _, m := range c.Models {
		if m.Name == p.Name {
			return h.model(ctx, m)
		}
	}
	return State{Settled: true}
}

func whole(err error) State {
	if err != nil {
		return State{Failed: true, Settled: true, Why: err.Error()}
	}
	return State{Fine: true, Settled: true}
}

func (h Parts) channel(name string) State {
	ch := h.Channels.Named(name)
	if ch == nil || ch.Renewing() {
		return State{Settled: ch == nil}
	}
	v := ch.View()
	why := strings.TrimSuffix(v.Cause, ".")
	switch v.State {
	case channels.Ready, channels.Idle:
		return State{Fine: true, Settled: true}
	case channels.Failed:
		return State{Failed: true, Settled: true, Why: why}
	case channels.Connecting:
		return State{Why: why}
	}
	return State{Settled: true, Why: why} // it waits for a person, or hears nothing
}

// modelWithin bounds a look at a model: its server is only asked what it has, which costs nothing there.
const modelWithin = 3 * time.Second

// model asks a model's server for its list with the key that is configured, and for the model where the list lacks it.
func (h Parts) model(ctx context.Context, m configs.Model) State {
	if m.API == "offline" {
		return State{Fine: true, Settled: true}
	}
	ctx, cancel := context.WithTimeout(ctx, modelWithin)
	defer cancel()
	t := provider.Target{Provider: provider.Of(m.API, m.BaseURL), API: m.API, BaseURL: m.BaseURL, Key: m.APIKey.Reveal(), Exact: true}
	list, _, err := provider.List(ctx, h.HTTP, t)
	var trouble *provider.Trouble
	switch {
	case errors.As(err, &trouble):
		refused := []provider.Code{provider.KeyRefused, provider.KeyMissing, provider.NotFound}
		return State{Failed: slices.Contains(refused, trouble.Code), Settled: true, Why: strings.TrimSuffix(trouble.Sentence, ".")}
	case err != nil:
		return State{Settled: true, Why: err.Error()}
	case slices.ContainsFunc(list, func(one provider.Model) bool { return one.ID == m.Model }):
	case provider.Lacks(ctx, h.HTTP, t, m.Model):
		return State{Failed: true, Settled: true, Why: fmt.Sprintf("its server does not know the model %s (404)", m.Model)}
	}
	return State{Fine: true, Settled: true}
}
