package llm

import (
	"context"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"

	"parley/agentloop/fair"
)

// How one call is retried.
const (
	maxTries   = 4                // of one model before its fallback
	maxOnModel = 30 * time.Second // on one model before its fallback
	maxCuts    = 2                // times that a stream cut half-way is asked again
	firstWait  = 250 * time.Millisecond
	longWait   = 4 * time.Second // the longest wait of our own; Retry-After may be longer
	noteFrom   = time.Second     // shorter waits are not told
)

// chain is a model with its fallbacks. One failure delays only its own call. What works sooner or later (Limited,
// Overload, CoolDown) is asked again until ctx ends, one model after the other; what will not (Auth, Rejected) is
// left out for the rest of the call.
type chain struct {
	registry *Registry
	entries  []*entry
	onWait   func(string)
}

// Info is the primary's.
func (c *chain) Info() Info { return c.entries[0].info }

// Stream implements Model. A Delta with Discard set comes before a call that is made after something was shown.
// An error of a chain of one is that model's; else it is NoneLeft around the last, or Overflow, TooLong or Cancelled.
func (c *chain) Stream(ctx context.Context, req Request, onDelta func(Delta)) (Response, error) {
	call := &call{chain: c, req: req, onDelta: onDelta}
	for _, e := range c.entries {
		call.models = append(call.models, &candidate{entry: e, waits: backoff.ExponentialBackOff{
			InitialInterval: firstWait, Multiplier: 2, MaxInterval: longWait, RandomizationFactor: 0.2}})
	}
	for {
		woken := c.registry.woken() // before asking, so that no wake-up is missed
		for i, m := range call.models {
			if m.dead || time.Now().Before(m.after) {
				continue
			}
			resp, err, done := call.ask(ctx, m)
			if done {
				return resp, call.final(err)
			}
			call.noteFallback(m, call.models[i+1:])
		}
		if err := call.rest(ctx, woken); err != nil {
			return Response{}, call.final(err)
		}
	}
}

// call is one call to the chain.
type call struct {
	*chain
	req     Request
	onDelta func(Delta)
	models  []*candidate
	shown   bool   // deltas went out and are not discarded
	partial string // their text
	last    *Error
}

// candidate is a model in one call.
type candidate struct {
	*entry
	waits backoff.ExponentialBackOff
	first time.Time // when it was asked first
	tries int
	cuts  int
	after time.Time // not to be asked before
	dead  bool      // not to be asked again
	err   *Error
}

// ask tries one model until it answers, or its turn is over: done is false then.
func (c *call) ask(ctx context.Context, m *candidate) (resp Response, err *Error, done bool) {
	for {
		m.err = m.enter(ctx, c.req.For, func(why fair.Why) { c.noteFull(m, why) })
		if m.err == nil {
			resp, m.err = c.once(ctx, m)
		}
		if m.err == nil {
			return resp, nil, true
		}
		if m.err.Kind == Cancelled && m.err.Last == nil {
			m.err.Last = c.last
		}
		c.last = m.err
		if m.err.Kind == Cancelled || m.err.Kind == Overflow || m.err.Kind == TooLong {
			return Response{}, m.err, true
		}
		if m.err.Kind == CoolDown {
			return Response{}, m.err, false
		}
		wait := m.wait()
		if m.dead || m.tries >= maxTries || time.Since(m.first)+wait > maxOnModel || endsBefore(ctx, wait) {
			return Response{}, m.err, false
		}
		if err := c.sleep(ctx, wait, nil); err != nil {
			return Response{}, err, true
		}
	}
}

// once asks the model one time.
func (c *call) once(ctx context.Context, m *candidate) (Response, *Error) {
	defer m.account.places.Leave(c.req.For)
	if m.tries == 0 {
		m.first = time.Now()
	}
	m.tries++
	if c.shown {
		c.shown, c.partial = false, ""
		c.onDelta(Delta{Discard: true})
	}
	var onDelta func(Delta)
	if c.onDelta != nil {
		onDelta = func(d Delta) {
			c.shown = true
			c.onDelta(d)
		}
	}
	resp, err := m.Stream(ctx, c.req, onDelta)
	if err == nil {
		c.registry.report(m.entry, nil)
		return resp, nil
	}
	e := asError(ctx, m.info.Name, err)
	c.registry.report(m.entry, e)
	c.partial = e.Partial
	return Response{}, e
}

// wait says how long the model must be left alone after its last error; dead: for the rest of the call.
func (m *candidate) wait() time.Duration {
	switch m.err.Kind {
	case Limited, Overload:
	case Cut:
		m.cuts++
		m.dead = m.cuts > maxCuts
	case TimedOut, Malformed:
		m.dead = m.tries >= maxTries
	default:
		m.dead = true
	}
	wait := min(m.waits.NextBackOff(), longWait)
	if m.err.After > 0 {
		wait = m.err.After
	}
	m.after = time.Now().Add(wait)
	return wait
}

// rest waits, after every model had its turn, until one of them may be asked again. Its error is the call's.
func (c *call) rest(ctx context.Context, woken <-chan struct{}) *Error {
	var first time.Time
	alive := false
	for _, m := range c.models {
		if m.dead {
			continue
		}
		at := m.after
		if ready := m.account.readyAt(); ready.After(at) {
			at = ready
		}
		if !alive || at.Before(first) {
			first, alive = at, true
		}
	}
	if !alive {
		return c.last
	}
	return c.sleep(ctx, time.Until(first), woken)
}

// sleep waits and says so. It returns at once, with the last error, when ctx would end before the wait does.
func (c *call) sleep(ctx context.Context, d time.Duration, woken <-chan struct{}) *Error {
	if endsBefore(ctx, d) {
		return c.last
	}
	if d >= noteFrom {
		c.note("model busy, retry in %d s", (d+time.Second-1)/time.Second)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-woken:
	case <-ctx.Done():
		return &Error{Kind: Cancelled, Model: c.last.Model, Last: c.last,
			Err: fmt.Errorf("%w (last failure: %v)", context.Cause(ctx), c.last)}
	}
	return nil
}

func endsBefore(ctx context.Context, d time.Duration) bool {
	end, ok := ctx.Deadline()
	return ok && time.Until(end) < d
}

func (c *call) note(format string, args ...any) {
	if c.onWait != nil {
		c.onWait(fmt.Sprintf(format, args...))
	}
}

func (c *call) noteFull(m *candidate, why fair.Why) {
	if why == fair.Share {
		c.note("waiting for one of your other questions to model %s: one person asks so many at once", m.info.Name)
		return
	}
	c.note("waiting for a free place at model %s", m.info.Name)
}

func (c *call) noteFallback(m *candidate, rest []*candidate) {
	for _, next := range rest {
		if !next.dead {
			c.note("model %s does not answer (%s), asking %s", m.info.Name, m.err.Kind, next.info.Name)
			return
		}
	}
}

// final is the error as the caller gets it.
func (c *call) final(e *Error) error {
	if e == nil {
		return nil
	}
	out := *e
	if len(c.entries) > 1 && e.Kind != Overflow && e.Kind != TooLong && e.Kind != Cancelled {
		out = Error{Kind: NoneLeft, Model: c.entries[0].info.Name, Status: e.Status, After: e.After, Err: e}
	}
	if out.Partial = c.partial; !c.shown {
		out.Partial = ""
	}
	return &out
}
