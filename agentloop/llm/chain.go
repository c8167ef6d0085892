package llm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"

	"parley/agentloop/fair"
	"parley/workspace"
)

// How one call is retried.
const (
	maxFailures = 6                      // of the whole chain, one after the other, before the call ends
	maxFailing  = time.Minute            // from the first of them, without waits that a server asked for
	maxCuts     = 2                      // times that a stream cut half-way is asked again
	firstWait   = 500 * time.Millisecond // after the first failure of the whole chain, doubling
	longWait    = 8 * time.Second        // the longest wait of our own
	longStated  = 10 * time.Minute       // the longest that is waited because a server asks for it, where the turn sets no end
)

// chain is a model with its fallbacks. Each is asked once, one after the other; when all have failed that is one failure of
// the chain, and after a growing wait they are asked again: until one answers, six failures have come together, or a
// minute of them. A wait that a server asks for (429, 529) is kept beyond that, as long as the turn lasts. What will never
// work (Auth, Rejected) is left out for the rest of the call. One failure delays only its own call.
type chain struct {
	registry *Registry
	entries  []*entry
	onWait   func(string)
}

// Info is the primary's.
func (c *chain) Info() Info { return c.entries[0].info }

// Stream implements Model. A Delta with Asks set comes before each call, one with Discard before a call that is made after
// something was shown, one with Trouble after each failure. An error of a chain of one is that model's; else it is NoneLeft
// around the last, or Overflow, TooLong or Cancelled.
func (c *chain) Stream(ctx context.Context, req Request, onDelta func(Delta)) (Response, error) {
	call := &call{chain: c, req: req, onDelta: onDelta, insist: req.Trouble != nil, waits: backoff.ExponentialBackOff{
		InitialInterval: firstWait, Multiplier: 2, MaxInterval: longWait, RandomizationFactor: 0.2}}
	if t := req.Trouble; t != nil { // of an earlier try
		call.failures = min(t.Failures, maxFailures-1) // it is asked at least once
		call.began = time.Now().Add(-max(0, min(t.Failing, maxFailing-time.Second)))
		for range call.failures {
			call.waits.NextBackOff()
		}
	}
	for _, e := range c.entries {
		call.models = append(call.models, &candidate{entry: e})
	}
	for {
		woken := c.registry.woken() // before asking, so that no wake-up is missed
		if resp, err, done := call.pass(ctx); done {
			return resp, call.final(err)
		}
		call.insist = false
		if err := call.rest(ctx, woken); err != nil {
			return Response{}, call.final(err)
		}
	}
}

// call is one call to the chain.
type call struct {
	*chain
	req      Request
	onDelta  func(Delta)
	models   []*candidate
	waits    backoff.ExponentialBackOff
	failures int       // of the whole chain, in a row
	began    time.Time // to fail; later by what servers asked to wait. Zero: nothing has failed
	next     time.Time // the next pass, by our own wait
	shown    bool      // deltas went out and are not discarded
	partial  string    // their text
	last     *Error
	insist   bool // the first try is made although a model cools down
}

// candidate is a model in one call.
type candidate struct {
	*entry
	cuts   int
	after  time.Time // not to be asked before: its server says so
	stated bool      // by a 429 or 529, for whose wait the call goes on
	dead   bool      // not to be asked again
	err    *Error
}

// pass asks each model that may be asked, once. done is false when none has answered.
func (c *call) pass(ctx context.Context) (resp Response, err *Error, done bool) {
	failed, spent := false, c.spent()
	may := func(m *candidate) bool {
		return !m.dead && !time.Now().Before(m.after) && (!spent || m.stated)
	}
	for i, m := range c.models {
		if !may(m) {
			continue
		}
		began := time.Now()
		m.err = m.enter(ctx, c.req.For, c.insist, func(why fair.Why) { c.noteFull(m, why) })
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
		m.judge()
		if !m.stated && c.began.IsZero() {
			c.began = began
		}
		failed = failed || !m.stated && m.err.Kind != CoolDown
		if next := slices.IndexFunc(c.models[i+1:], may); next >= 0 {
			c.noteFallback(m, c.models[i+1+next])
		}
	}
	if failed {
		c.failures++
		c.next = time.Now().Add(min(c.waits.NextBackOff(), longWait))
	}
	return Response{}, nil, false
}

// identity is whose failures the registry counts together: the session's, or those of a call that belongs to none.
func (c *call) identity() any {
	if c.req.CacheKey != "" {
		return c.req.CacheKey
	}
	return c
}

// spent says that the chain has failed as often, or as long, as it may.
func (c *call) spent() bool {
	return c.failures >= maxFailures || !c.began.IsZero() && time.Since(c.began) >= maxFailing
}

// once asks the model one time.
func (c *call) once(ctx context.Context, m *candidate) (Response, *Error) {
	defer m.account.places.Leave(c.req.For)
	if c.shown {
		c.shown, c.partial = false, ""
		c.onDelta(Delta{Discard: true})
	}
	if c.onDelta != nil {
		c.onDelta(Delta{Asks: &m.info})
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
		c.registry.report(m.entry, c.identity(), nil)
		return resp, nil
	}
	e := asError(ctx, m.info.Name, err)
	c.registry.report(m.entry, c.identity(), e)
	c.partial = e.Partial
	return Response{}, e
}

// judge says what the last error means for the rest of the call: how long the server wants to be left alone, and whether it
// is of any use to ask again.
func (m *candidate) judge() {
	m.after, m.stated = time.Time{}, false
	switch m.err.Kind {
	case Limited, Overload, TimedOut, Malformed:
	case Cut:
		m.cuts++
		m.dead = m.cuts > maxCuts
	case CoolDown:
		var cause *Error
		m.stated = errors.As(m.err.Err, &cause) && cause.stated()
		return
	default:
		m.dead = true
	}
	if m.err.After > 0 {
		m.after, m.stated = time.Now().Add(m.err.After), m.err.stated()
	}
}

// stated says that the server takes no more for now and said for how long.
func (e *Error) stated() bool {
	return e.After > 0 && (e.Kind == Limited || e.Status == statusOverloaded)
}

const statusOverloaded = 529 // Anthropic's, and of those who copied it

// rest waits, after every model had its turn, until one of them may be asked again. Its error is the call's.
func (c *call) rest(ctx context.Context, woken <-chan struct{}) *Error {
	var first *candidate
	var at time.Time
	for _, m := range c.models {
		if m.dead || c.spent() && !m.stated {
			continue
		}
		ready := m.after
		if free := m.account.readyAt(); free.After(ready) {
			ready = free
		}
		if first == nil || ready.Before(at) {
			first, at = m, ready
		}
	}
	if first == nil {
		return c.last
	}
	if c.next.After(at) {
		at = c.next
	}
	d := time.Until(at)
	end, ends := ctx.Deadline()
	last := c.began.Add(maxFailing) // tries end then
	switch late := !first.stated && !c.began.IsZero() && at.After(last); {
	case late && first.err != nil && first.err.Kind == CoolDown: // another session may find the model well before
		d = time.Until(last)
	case late, ends && end.Before(at), !ends && d > longStated:
		return c.last
	}
	c.tell(first, d)
	err := c.sleep(ctx, d, woken)
	if first.stated && !c.began.IsZero() {
		c.began = c.began.Add(d)
	}
	return err
}

// tell says what the call waits for.
func (c *call) tell(m *candidate, wait time.Duration) {
	t := c.trouble(m, wait)
	c.noteTrouble(t)
}

// noteTrouble tells who takes deltas of a trouble, or else who is told why nothing happens.
func (c *call) noteTrouble(t workspace.Trouble) {
	if c.onDelta != nil {
		c.onDelta(Delta{Trouble: &t})
		return
	}
	c.note("%s", Progress(t))
}

// trouble is how the call fares: the newest failure of m, which is asked next, after wait.
func (c *call) trouble(m *candidate, wait time.Duration) workspace.Trouble {
	e := m.err
	if e == nil { // it was not asked yet
		e = c.last
	}
	t := TroubleOf(e)
	t.Failures, t.Wait, t.Stated = c.failures, max(wait, 0), m.stated
	if !c.began.IsZero() {
		t.Failing = time.Since(c.began)
	}
	return t
}

// sleep waits. Its error is a call that was cancelled meanwhile.
func (c *call) sleep(ctx context.Context, d time.Duration, woken <-chan struct{}) *Error {
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

func (c *call) noteFallback(m, next *candidate) {
	t := TroubleOf(m.err)
	t.Failures, t.Next = c.failures, next.info.Name
	if !c.began.IsZero() {
		t.Failing = time.Since(c.began)
	}
	c.noteTrouble(t)
}

// final is the error as the caller gets it.
func (c *call) final(e *Error) error {
	if e == nil {
		return nil
	}
	out := *e
	if len(c.entries) > 1 && e.Kind != Overflow && e.Kind != TooLong && e.Kind != Cancelled {
		out = Error{Kind: NoneLeft, Model: c.entries[0].info.Name, Status: e.Status, After: e.After, Err: e}
		for _, m := range c.models {
			if m.err != nil && m.err != e && !slices.Contains(out.Others, m.err) {
				out.Others = append(out.Others, m.err)
			}
		}
	}
	out.Failures = c.failures
	if out.Partial = c.partial; !c.shown {
		out.Partial = ""
	}
	return &out
}
