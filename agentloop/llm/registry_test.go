package llm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"parley/workspace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// outage is a model that is down until heal is set.
func outage(name string, heal *atomic.Bool) *fake {
	return &fake{name: name, answer: func(ctx context.Context, _ int, _ func(Delta)) (Response, error) {
		if err := takes(ctx, 20*time.Millisecond); err != nil {
			return Response{}, err
		}
		if heal.Load() {
			return ok(name), nil
		}
		return Response{}, &Error{Kind: Overload, Model: name, Status: 503, Err: errors.New("no server")}
	}}
}

func TestR11_OutageIsProbedOncePerFiveSecondsByAHundredTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var heal atomic.Bool
		m := outage("m", &heal)
		r, names := registry(t, RegistryOptions{}, m)
		start := time.Now()
		var answered atomic.Int32
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				if _, err := open(t, r, nil, names...).Stream(t.Context(), Request{CacheKey: fmt.Sprint(i)}, nil); err != nil {
					t.Error(err)
				}
				answered.Add(1)
			})
		}
		if err := takes(t.Context(), 53*time.Second); err != nil {
			t.Fatal(err)
		}
		at := m.calls()
		storm := 0
		for _, c := range at {
			if c.Sub(start) < 100*time.Millisecond {
				storm++
			}
		}
		probes := at[storm:]
		if storm > 64+failuresToCool-1 { // those under way, and who took the places of the first four
			t.Errorf("%d calls before the cool-down", storm)
		}
		if len(probes) < 9 || len(probes) > 11 {
			t.Errorf("%d probes in 53 s", len(probes))
		}
		for _, g := range gaps(probes) {
			if g < probeEvery {
				t.Errorf("two probes within %s", g)
			}
		}
		if h := r.Health()[0]; !h.Down || h.LastKind != Overload || !strings.Contains(h.LastError, "no server") || h.NextProbe.IsZero() {
			t.Errorf("%+v", h)
		}
		heal.Store(true)
		healed := time.Now()
		wg.Wait()
		between(t, "everybody answered", time.Since(healed), 0, probeEvery+time.Second)
		if answered.Load() != 100 || len(m.calls()) != len(at)+100 {
			t.Errorf("%d answered with %d calls", answered.Load(), len(m.calls())-len(at))
		}
		if m.most.Load() > 64 {
			t.Errorf("%d calls at once", m.most.Load())
		}
	})
}

func TestR11_CoolingModelLeavesItsTurnsToTheFallback(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var heal atomic.Bool
		one, two := outage("one", &heal), works("two")
		r, names := registry(t, RegistryOptions{}, one, two)
		ask := func(onWait func(string)) string {
			resp, err := open(t, r, onWait, names...).Stream(t.Context(), Request{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			return resp.Model
		}
		for ask(nil); !r.Health()[0].Down; {
			ask(nil)
		}
		before := len(one.calls())
		var l listened
		for range 50 {
			start := time.Now()
			if got := ask(l.wait); got != "two" || time.Since(start) != 0 {
				t.Fatalf("%s after %s", got, time.Since(start))
			}
		}
		if n := len(one.calls()) - before; n != 0 {
			t.Errorf("%d calls while cooling", n)
		}
		if !strings.Contains(l.String(), "one is unavailable (503); asking two") {
			t.Errorf("notes: %s", &l)
		}
		heal.Store(true)
		if err := takes(t.Context(), probeEvery); err != nil {
			t.Fatal(err)
		}
		if got := ask(nil); got != "one" || r.Health()[0].Down {
			t.Errorf("%s answered after the probe", got)
		}
	})
}

func TestR11_RefusedKeyIsNoOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, names := registry(t, RegistryOptions{}, fails("m", true, Error{Kind: Auth, Status: 401}))
		for range 3 * failuresToCool {
			if _, err := open(t, r, nil, names...).Stream(t.Context(), Request{}, nil); KindOf(err) != Auth {
				t.Fatal(err)
			}
		}
		if h := r.Health()[0]; h.Down || h.LastKind != Auth {
			t.Errorf("%+v", h)
		}
	})
}

func TestR11_LongRetryAfterDelaysTheProbe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := fails("m", true, Error{Kind: Limited, After: 20 * time.Second})
		r, names := registry(t, RegistryOptions{}, m)
		var wg sync.WaitGroup
		for range failuresToCool {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				defer cancel()
				_, err := open(t, r, nil, names...).Stream(ctx, Request{}, nil)
				if KindOf(err) == "" {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		for _, g := range gaps(m.calls()[failuresToCool-1:]) {
			if g < 20*time.Second {
				t.Errorf("asked again after %s", g)
			}
		}
	})
}

func TestCoolDownTellsNoTextOfOtherSessions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, names := registry(t, RegistryOptions{}, half("m", 100))
		for !r.Health()[0].Down {
			if _, err := open(t, r, nil, names...).Stream(t.Context(), Request{}, func(Delta) {}); err == nil {
				t.Fatal("answered")
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := open(t, r, nil, names...).Stream(ctx, Request{}, nil)
		var e *Error
		for ; errors.As(err, &e); err = e.Err {
			if e.Partial != "" {
				t.Errorf("%s holds %q of another session", e.Kind, e.Partial)
			}
		}
		if e == nil {
			t.Error("no error")
		}
	})
}

func TestAccountsShareTheirState(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var heal atomic.Bool
		a, b, c := outage("a", &heal), works("b"), works("c")
		a.account, b.account = "same", "same"
		r, _ := registry(t, RegistryOptions{}, a, b, c)
		for range 2 { // each with a time of its own: one that ends inside a try would spoil the other's count
			ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
			_, err := open(t, r, nil, "a").Stream(ctx, Request{}, nil)
			cancel()
			if err == nil {
				t.Fatal("answered")
			}
		}
		h := r.Health()
		if !h[0].Down || !h[1].Down || h[2].Down {
			t.Errorf("%+v", h)
		}
	})
}

func TestCapHoldsPerModelAndEverybodyGetsThrough(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := func(name string) *fake {
			return &fake{name: name, answer: func(ctx context.Context, _ int, _ func(Delta)) (Response, error) {
				return ok(name), takes(ctx, time.Second)
			}}
		}
		one, two := slow("one"), slow("two")
		r, _ := registry(t, RegistryOptions{PerModel: 8}, one, two)
		var l listened
		start := time.Now()
		var wg sync.WaitGroup
		for i := range 40 {
			for _, name := range []string{"one", "two"} {
				wg.Go(func() {
					if _, err := open(t, r, l.wait, name).Stream(t.Context(), Request{For: workspace.PersonID(fmt.Sprint(i))}, nil); err != nil {
						t.Error(err)
					}
				})
			}
		}
		synctest.Wait()
		if h := r.Health()[0]; h.Busy != 8 || h.Waiting != 32 || h.Limit != 8 {
			t.Errorf("%+v", h)
		}
		wg.Wait()
		between(t, "end", time.Since(start), 5*time.Second, 5*time.Second)
		if one.most.Load() != 8 || two.most.Load() != 8 {
			t.Errorf("%d and %d at once", one.most.Load(), two.most.Load())
		}
		if !strings.Contains(l.String(), "waiting for a free place at model one") {
			t.Errorf("notes: %s", &l)
		}
		if h := r.Health()[0]; h.Busy != 0 || h.Waiting != 0 {
			t.Errorf("%+v", h)
		}
	})
}

// R07: calls of one person that hang leave places at the model for others.
func TestR07_HungCallsOfOnePersonLeavePlacesForOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &fake{name: "m", answer: func(ctx context.Context, n int, _ func(Delta)) (Response, error) {
			if n <= 8 {
				return ok("m"), takes(ctx, 10*time.Minute)
			}
			return ok("m"), nil
		}}
		r, names := registry(t, RegistryOptions{PerModel: 16}, m)
		ctx, cancel := context.WithCancel(t.Context())
		var l listened
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() { _, _ = open(t, r, l.wait, names...).Stream(ctx, Request{For: "eve"}, nil) })
		}
		synctest.Wait()
		if h := r.Health()[0]; h.Busy != 8 || h.Waiting != 12 || h.Limit != 16 {
			t.Errorf("%+v", h)
		}
		if !strings.Contains(l.String(), "one person asks so many at once") {
			t.Errorf("notes: %s", &l)
		}
		short, done := context.WithTimeout(t.Context(), time.Second)
		defer done()
		if _, err := open(t, r, nil, names...).Stream(short, Request{For: "ana"}, nil); err != nil {
			t.Errorf("another person: %v", err)
		}
		cancel()
		wg.Wait()
		if h := r.Health()[0]; h.Busy != 0 || h.Waiting != 0 {
			t.Errorf("%+v", h)
		}
	})
}

// R11, R13: a reload forgets no cool-down, and calls under way keep their places.
func TestR11_RegistryTakesOverFromTheOneBefore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var heal atomic.Bool
		sick := outage("sick", &heal)
		busy := &fake{name: "busy", answer: func(ctx context.Context, _ int, _ func(Delta)) (Response, error) {
			return ok("busy"), takes(ctx, time.Minute)
		}}
		old, _ := registry(t, RegistryOptions{PerModel: 4}, sick, busy)
		var err error
		for range 2 {
			ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
			_, err = open(t, old, nil, "sick").Stream(ctx, Request{}, nil)
			cancel()
		}
		if err == nil || !old.Health()[0].Down {
			t.Fatalf("%v, %+v", err, old.Health()[0])
		}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() { _, _ = open(t, old, nil, "busy").Stream(t.Context(), Request{}, nil) })
		}
		synctest.Wait()
		fresh, _ := registry(t, RegistryOptions{PerModel: 6, From: old}, sick, busy, works("new"))
		if h := fresh.Health(); !h[0].Down || h[0].Failures == 0 || h[1].Busy != 4 || h[1].Limit != 4 || h[2].Down {
			t.Errorf("not in force yet: %+v", h)
		}
		fresh.Resize(6)
		for range 4 {
			wg.Go(func() { _, _ = open(t, fresh, nil, "busy").Stream(t.Context(), Request{For: "b"}, nil) })
		}
		synctest.Wait()
		if h := fresh.Health()[1]; h.Busy != 6 || h.Limit != 6 || h.Waiting != 2 {
			t.Errorf("in force: %+v", h)
		}
		asked := len(sick.calls())
		_, err = open(t, fresh, nil, "sick").Stream(short(t), Request{}, nil)
		if len(sick.calls()) != asked || err == nil {
			t.Errorf("a model that cools down is asked after a reload: %v", err)
		}
		waits := make(chan error, 1)
		go func() { // a call of a turn that began before the reload
			_, err := open(t, old, nil, "sick").Stream(t.Context(), Request{}, nil)
			waits <- err
		}()
		synctest.Wait()
		heal.Store(true)
		<-time.After(time.Minute)
		if err := <-waits; err != nil || fresh.Health()[0].Down {
			t.Errorf("%v, %+v", err, fresh.Health()[0])
		}
		wg.Wait()
	})
}

// R11: one session alone puts no model into cool-down, whatever it fails with and however often: others are answered as if it
// were not there.
func TestR11_OneSessionThatFailsDelaysNoOther(t *testing.T) {
	t.Parallel()
	for _, e := range []Error{{Kind: Overload, Status: 500}, {Kind: Malformed}, {Kind: Cut}, {Kind: TimedOut}} {
		synctest.Test(t, func(t *testing.T) {
			m := &poisoned{fake: works("m"), err: e}
			r, err := NewRegistry(RegistryOptions{}, m)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			wg.Go(func() {
				for ctx.Err() == nil { // a person who asks the same over and over, four times at once
					var four sync.WaitGroup
					for range 4 {
						four.Go(func() { _, _ = open(t, r, nil, "m").Stream(ctx, Request{CacheKey: "poison", System: "poison"}, nil) })
					}
					four.Wait()
				}
			})
			for i := range 3 * 60 { // at times no other asks for a while
				if err := takes(t.Context(), time.Duration(i%7)*time.Second); err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				if _, err := open(t, r, nil, "m").Stream(t.Context(), Request{CacheKey: "other"}, nil); err != nil || time.Since(start) != 0 {
					t.Fatalf("%s: another session: %v after %s", e.Kind, err, time.Since(start))
				}
			}
			cancel()
			wg.Wait()
		})
	}
}

// poisoned fails for one prompt and answers all others.
type poisoned struct {
	*fake
	err Error
}

func (p *poisoned) Stream(ctx context.Context, req Request, onDelta func(Delta)) (Response, error) {
	if req.System == "" {
		return p.fake.Stream(ctx, req, onDelta)
	}
	if err := takes(ctx, 20*time.Millisecond); err != nil {
		return Response{}, err
	}
	e := p.err
	e.Model = "m"
	return Response{}, &e
}

// R11: failures of two sessions do, within a minute.
func TestR11_FailuresOfTwoSessionsBeginACoolDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var heal atomic.Bool
		r, _ := registry(t, RegistryOptions{}, outage("m", &heal))
		one := func(session string) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			_, _ = open(t, r, nil, "m").Stream(ctx, Request{CacheKey: session}, nil)
		}
		for range 5 {
			one("a")
		}
		if r.Health()[0].Down {
			t.Error("one session alone")
		}
		if err := takes(t.Context(), failuresAge); err != nil {
			t.Fatal(err)
		}
		one("b")
		if r.Health()[0].Down {
			t.Error("failures of more than a minute ago count")
		}
		one("a")
		if !r.Health()[0].Down {
			t.Error("two sessions do not begin a cool-down")
		}
	})
}

// short is over before any cool-down is.
func short(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

func TestCancelWhileWaitingForAPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &fake{name: "m", answer: func(ctx context.Context, _ int, _ func(Delta)) (Response, error) {
			return ok("m"), takes(ctx, time.Hour)
		}}
		r, names := registry(t, RegistryOptions{PerModel: 1}, m)
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := open(t, r, nil, names...).Stream(t.Context(), Request{}, nil); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		cause := errors.New("stopped")
		ctx, cancel := context.WithCancelCause(t.Context())
		stop := time.AfterFunc(time.Second, func() { cancel(cause) })
		defer stop.Stop()
		if _, err := open(t, r, nil, names...).Stream(ctx, Request{}, nil); !errors.Is(err, cause) || KindOf(err) != Cancelled {
			t.Error(err)
		}
		if h := r.Health()[0]; h.Waiting != 0 || h.Busy != 1 {
			t.Errorf("%+v", h)
		}
		wg.Wait()
	})
}

func TestChainNames(t *testing.T) {
	t.Parallel()
	one, two := works("one"), works("two")
	r, _ := registry(t, RegistryOptions{}, one, two)
	if _, err := r.Chain([]string{"one", "three"}, nil); !errors.Is(err, workspace.ErrNotFound) || !strings.Contains(err.Error(), "three") {
		t.Error(err)
	}
	if _, err := r.Chain(nil, nil); !errors.Is(err, workspace.ErrInvalid) {
		t.Error(err)
	}
	if _, err := NewRegistry(RegistryOptions{}, one, works("one")); !errors.Is(err, workspace.ErrInvalid) {
		t.Error(err)
	}
	m := open(t, r, nil, "two", "one", "two")
	if m.Info().Name != "two" || len(m.(*chain).entries) != 2 {
		t.Errorf("%+v", m.Info())
	}
}

// Whatever the models do, a call ends, holds no slot after it, and an answer comes when one model can give it.
func TestEveryCallEnds(t *testing.T) {
	t.Parallel()
	kinds := []Kind{Auth, Limited, Overload, Cut, Rejected, Malformed, TimedOut}
	rapid.Check(t, func(rt *rapid.T) {
		var scripts [][]Error
		for range rapid.IntRange(1, 3).Draw(rt, "models") {
			var errs []Error
			for range rapid.IntRange(0, 8).Draw(rt, "errors") {
				errs = append(errs, Error{Kind: rapid.SampledFrom(kinds).Draw(rt, "kind"),
					After: time.Duration(rapid.IntRange(0, 40).Draw(rt, "after")) * time.Second})
			}
			scripts = append(scripts, errs)
		}
		turns := rapid.IntRange(1, 4).Draw(rt, "turns")
		var problem string
		synctest.Test(t, func(t *testing.T) {
			var models []*fake
			for i, errs := range scripts {
				models = append(models, fails(string(rune('a'+i)), false, errs...))
			}
			r, names := registry(t, RegistryOptions{PerModel: 2}, models...)
			var wg sync.WaitGroup
			for range turns {
				wg.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
					defer cancel()
					resp, err := open(t, r, nil, names...).Stream(ctx, Request{}, nil)
					if (err == nil) != (resp.Model != "") || err != nil && KindOf(err) == "" {
						t.Errorf("%+v, %v", resp, err)
					}
				})
			}
			wg.Wait()
			for _, h := range r.Health() {
				if h.Busy != 0 || h.Waiting != 0 {
					problem = h.Name
				}
			}
		})
		if problem != "" {
			rt.Fatalf("model %s still holds a slot", problem)
		}
	})
}
