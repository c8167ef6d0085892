package setup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

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

// modelWithin bounds a look at a model: its server is only asked what it has.
const modelWithin = 3 * time.Second

// model asks a model's server for its list with the key that is configured. It costs nothing there.
func (h Parts) model(ctx context.Context, m configs.Model) State {
	if m.API == "offline" {
		return State{Fine: true, Settled: true}
	}
	ctx, cancel := context.WithTimeout(ctx, modelWithin)
	defer cancel()
	status, body, err := h.ask(ctx, m, "/models")
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return State{Settled: true, Why: "its server does not answer in time"}
	case err != nil:
		return State{Settled: true, Why: "its server is not reached"}
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return State{Failed: true, Settled: true, Why: fmt.Sprintf("its server refuses the key (%d)", status)}
	case status == http.StatusNotFound:
		return State{Failed: true, Settled: true, Why: "its server has nothing at this address (404)"}
	case status != http.StatusOK:
		return State{Settled: true, Why: fmt.Sprintf("its server answers %d", status)}
	}
	var list struct {
		Data []struct{ ID string }
	}
	if json.Unmarshal(body, &list) != nil {
		return State{Settled: true, Why: "its server is something else than a model server"}
	}
	if slices.ContainsFunc(list.Data, func(one struct{ ID string }) bool { return one.ID == m.Model }) {
		return State{Fine: true, Settled: true}
	}
	if status, _, err = h.ask(ctx, m, "/models/"+url.PathEscape(m.Model)); err == nil && status == http.StatusNotFound {
		return State{Failed: true, Settled: true, Why: fmt.Sprintf("its server does not know the model %s (404)", m.Model)}
	}
	return State{Fine: true, Settled: true}
}

// ask sends a request to a model's server. No redirection is followed: the key would go along.
func (h Parts) ask(ctx context.Context, m configs.Model, path string) (status int, body []byte, err error) {
	if m.API == "anthropic" {
		path = "/v1" + path
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, m.BaseURL+path, nil)
	if err != nil {
		return 0, nil, err
	}
	if key := m.APIKey.Reveal(); key != "" && m.API == "anthropic" {
		req.Header.Set("X-Api-Key", key)
		req.Header.Set("Anthropic-Version", "2023-06-01")
	} else if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	client := *h.HTTP
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	res, err := client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	body, err = io.ReadAll(io.LimitReader(res.Body, 4<<20))
	return res.StatusCode, body, err
}
