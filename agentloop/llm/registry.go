package llm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"parley/agentloop/fair"
	"parley/workspace"
)

// How hard a model that fails is asked again.
const (
	failuresToCool = 5               // failures that begin a cool-down: in a row, of at least two sessions
	failuresOfOne  = 3               // of them that one session can be behind: its prompt may be the cause
	failuresAge    = time.Minute     // older ones do not count
	probeEvery     = 5 * time.Second // one call may try a cooling model in this time
	maxCool        = time.Minute     // a longer Retry-After delays its own call only
)

// RegistryOptions of NewRegistry.
type RegistryOptions struct {
	PerModel int // calls at once to one model; 0: 64
	// From is the registry that this one takes over from, nil for none: models of the same account keep their
	// cool-down and share their places with the calls that are still under way there.
	From *Registry
}

// Registry holds the configured models with what became of the latest calls to them. All turns share it: when a
// model fails five times in a row, for two sessions or more, it cools down, and then one call per five seconds tries it,
// however many turns wait. What fails for one session only slows down that session. It is safe for concurrent use.
type Registry struct {
	models   map[string]*entry
	order    []*entry
	accounts map[string]*account
	*alarm
}

// alarm wakes the calls that wait for a model. Registries that follow one another share it.
type alarm struct {
	mu sync.Mutex
	up chan struct{} // closed, and made again, when a model ends its cool-down
}

// entry is a configured model. Models with one account share its state.
type entry struct {
	Model
	info    Info
	account *account
}

// account is what is known of one (key, model).
type account struct {
	places *fair.Places

	mu       sync.Mutex
	waiting  int       // for a place
	failures int       // in a row
	failed   []failure // the newest of them
	down     bool
	probeAt  time.Time // the next call that is let through while down
	last     *Error
	lastAt   time.Time
	okAt     time.Time
}

// failure is one that may begin a cool-down.
type failure struct {
	of any // the session
	at time.Time
}

// cools takes in a failure and says whether it begins a cool-down.
func (a *account) cools(of any, now time.Time) bool {
	mine := 0
	a.failed = slices.DeleteFunc(a.failed, func(f failure) bool {
		if now.Sub(f.at) > failuresAge {
			return true
		}
		if f.of == of {
			mine++
		}
		return false
	})
	if mine < failuresOfOne && len(a.failed) < failuresToCool {
		a.failed = append(a.failed, failure{of, now})
	}
	return len(a.failed) >= failuresToCool
}

// NewRegistry takes the models in the order of the configuration. A name that comes twice is an error. A model
// that has an Account() string shares limits and cool-down with those of the same account.
func NewRegistry(o RegistryOptions, models ...Model) (*Registry, error) {
	if o.PerModel <= 0 {
		o.PerModel = 64
	}
	r := &Registry{models: map[string]*entry{}, accounts: map[string]*account{}, alarm: &alarm{up: make(chan struct{})}}
	if o.From != nil {
		r.alarm = o.From.alarm
	}
	for _, m := range models {
		e := &entry{Model: m, info: m.Info()}
		if r.models[e.info.Name] != nil {
			return nil, fmt.Errorf("model %q: named twice: %w", e.info.Name, workspace.ErrInvalid)
		}
		id := "name:" + e.info.Name
		if a, ok := m.(interface{ Account() string }); ok {
			id = "account:" + a.Account()
		}
		if r.accounts[id] == nil {
			r.accounts[id] = r.take(o, id)
		}
		e.account = r.accounts[id]
		r.models[e.info.Name] = e
		r.order = append(r.order, e)
	}
	return r, nil
}

// take is what is known of an account, from the registry before this one if that had it.
func (r *Registry) take(o RegistryOptions, id string) *account {
	if o.From == nil || o.From.accounts[id] == nil {
		return &account{places: fair.New(o.PerModel)}
	}
	return o.From.accounts[id]
}

// Resize changes how many calls may be made at once to each model; a registry that took over calls it when it is in
// force.
func (r *Registry) Resize(perModel int) {
	for _, a := range r.accounts {
		a.places.Resize(perModel)
	}
}

// Chain is the named models, the first with its fallbacks, as one Model. onWait may be nil; it is called from the
// goroutine that calls Stream with a sentence on why nothing happens. An unknown name is workspace.ErrNotFound.
func (r *Registry) Chain(names []string, onWait func(note string)) (Model, error) {
	c := &chain{registry: r, onWait: onWait}
	for i, name := range names {
		e := r.models[name]
		if e == nil {
			return nil, fmt.Errorf("model %q: %w", name, workspace.ErrNotFound)
		}
		if !named(names[:i], name) {
			c.entries = append(c.entries, e)
		}
	}
	if len(c.entries) == 0 {
		return nil, fmt.Errorf("no model named: %w", workspace.ErrInvalid)
	}
	return c, nil
}

func named(names []string, name string) bool {
	for _, n := range names {
		if n == name {
			return true
		}
	}
	return false
}

// ModelHealth is the state of one model for /status.
type ModelHealth struct {
	Name, Model string
	Offline     bool
	Down        bool // cooling down
	Failures    int  // in a row
	NextProbe   time.Time
	LastKind    Kind // of the last failure; empty: none since the last success
	LastError   string
	LastErrorAt time.Time
	LastOK      time.Time
	Busy        int // calls under way
	Waiting     int // calls that wait for a place
	Limit       int // calls at once
}

// Info is what is known of a model now.
func (r *Registry) Info(name string) (Info, bool) {
	e := r.models[name]
	if e == nil {
		return Info{}, false
	}
	return e.Model.Info(), true
}

// Health of the models in the order of the configuration.
func (r *Registry) Health() []ModelHealth {
	out := make([]ModelHealth, 0, len(r.order))
	for _, e := range r.order {
		out = append(out, e.health())
	}
	return out
}

func (e *entry) health() ModelHealth {
	a := e.account
	a.mu.Lock()
	defer a.mu.Unlock()
	h := ModelHealth{
		Name: e.info.Name, Model: e.info.Model, Offline: e.info.Offline, Down: a.down, Failures: a.failures,
		LastOK: a.okAt, Waiting: a.waiting,
	}
	h.Busy, h.Limit = a.places.Count()
	if a.down {
		h.NextProbe = a.probeAt
	}
	if a.last != nil {
		h.LastKind, h.LastError, h.LastErrorAt = a.last.Kind, a.last.Error(), a.lastAt
	}
	return h
}

// enter takes a place for a person, when the model may be asked now; Leave gives it back. A cooling model is Kind
// CoolDown, unless a person insists. wait is told why before the call has to wait.
func (e *entry) enter(ctx context.Context, who workspace.PersonID, insist bool, wait func(fair.Why)) *Error {
	a := e.account
	if ticket := a.places.Ask(who, 0); !ticket.Given() {
		wait(a.places.Why(ticket))
		a.queued(1)
		defer a.queued(-1)
		select {
		case <-ticket.C:
		case <-ctx.Done():
			a.places.Cancel(ticket)
			full := &Error{Kind: Crowded, Model: e.info.Name, Provider: e.info.Provider}
			return &Error{Kind: Cancelled, Model: e.info.Name, Err: context.Cause(ctx), Last: full}
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.down {
		return nil
	}
	now := time.Now()
	if now.Before(a.probeAt) && !insist {
		a.places.Leave(who)
		return &Error{Kind: CoolDown, Model: e.info.Name, Provider: e.info.Provider, After: a.probeAt.Sub(now), Err: a.last}
	}
	a.probeAt = now.Add(probeEvery)
	return nil
}

func (a *account) queued(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiting += n
}

// readyAt is when the account may be asked: zero for now.
func (a *account) readyAt() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.down {
		return time.Time{}
	}
	return a.probeAt
}

// report takes in how a call of a session ended.
func (r *Registry) report(e *entry, of any, err *Error) {
	a := e.account
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	if err != nil && err.Kind == Cancelled {
		return
	}
	if err == nil || err.answered() {
		if a.down {
			a.down = false
			r.wake()
		}
		a.failures, a.failed, a.last = 0, nil, nil
		if err == nil {
			a.okAt = now
			return
		}
		a.remember(err, now)
		return
	}
	a.failures++
	a.remember(err, now)
	if a.cools(of, now) || a.down {
		at := now.Add(max(min(err.After, maxCool), probeEvery))
		// A call that began before the cool-down and fails late does not prolong it.
		if !a.down || err.After > 0 && at.After(a.probeAt) {
			a.probeAt = at
		}
		a.down = true
	}
}

// remember keeps the failure without the text that was streamed: it is one session's, and this is shared by all.
func (a *account) remember(err *Error, now time.Time) {
	last := *err
	last.Partial = ""
	a.last, a.lastAt = &last, now
}

// answered says that the server works and it is this request, or the key, that it refuses.
func (e *Error) answered() bool {
	return e.Kind == Auth || e.Kind == Rejected || e.Kind == Overflow || e.Kind == TooLong
}

func (r *Registry) wake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.up)
	r.up = make(chan struct{})
}

// woken is closed when the next cool-down ends.
func (r *Registry) woken() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.up
}

// asError is err as an *Error of model name; a provider that returns another error is taken as refused.
func asError(ctx context.Context, name string, err error) *Error {
	var e *Error
	if ctx.Err() != nil {
		out := &Error{Kind: Cancelled, Model: name, Err: context.Cause(ctx)}
		if errors.As(err, &e) {
			out.Partial = e.Partial
		}
		return out
	}
	if errors.As(err, &e) {
		return e
	}
	return &Error{Kind: Rejected, Model: name, Err: err}
}
