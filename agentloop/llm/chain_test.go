package llm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/workspace"
)

// fake is a model whose answers are scripted; it is called with the number of the call, from 1.
type fake struct {
	name, account string
	answer        func(ctx context.Context, n int, onDelta func(Delta)) (Response, error)

	mu   sync.Mutex
	n    int
	at   []time.Time
	busy atomic.Int32
	most atomic.Int32
}

func (f *fake) Info() Info { return Info{Name: f.name, Model: "p/" + f.name, ContextWindow: 1000} }

func (f *fake) Account() string {
	if f.account != "" {
		return f.account
	}
	return f.name
}

func (f *fake) Stream(ctx context.Context, _ Request, onDelta func(Delta)) (Response, error) {
	f.mu.Lock()
	f.n++
	n := f.n
	f.at = append(f.at, time.Now())
	f.mu.Unlock()
	for b := f.busy.Add(1); ; {
		m := f.most.Load()
		if b <= m || f.most.CompareAndSwap(m, b) {
			break
		}
	}
	defer f.busy.Add(-1)
	return f.answer(ctx, n, onDelta)
}

func (f *fake) calls() []time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]time.Time(nil), f.at...)
}

func ok(name string) Response { return Response{Model: name, Stop: StopEnd} }

// works answers at once.
func works(name string) *fake {
	return &fake{name: name, answer: func(context.Context, int, func(Delta)) (Response, error) { return ok(name), nil }}
}

// fails gives the errors in turn and then answers; with for ever set the last error stays.
func fails(name string, forEver bool, errs ...Error) *fake {
	return &fake{name: name, answer: func(_ context.Context, n int, _ func(Delta)) (Response, error) {
		if n > len(errs) && !forEver {
			return ok(name), nil
		}
		e := errs[min(n, len(errs))-1]
		e.Model = name
		return Response{}, &e
	}}
}

// takes waits for d, or until ctx ends.
func takes(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return &Error{Kind: Cancelled, Err: context.Cause(ctx)}
	}
}

type listened struct {
	mu    sync.Mutex
	notes []string
}

func (l *listened) wait(s string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.notes = append(l.notes, s)
}

func (l *listened) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.notes, "\n")
}

func registry(t *testing.T, o RegistryOptions, models ...*fake) (*Registry, []string) {
	t.Helper()
	var ms []Model
	var names []string
	for _, m := range models {
		ms = append(ms, m)
		names = append(names, m.name)
	}
	r, err := NewRegistry(o, ms...)
	if err != nil {
		t.Fatal(err)
	}
	return r, names
}

func open(t *testing.T, r *Registry, onWait func(string), names ...string) Model {
	t.Helper()
	m, err := r.Chain(names, onWait)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// gaps between calls.
func gaps(at []time.Time) []time.Duration {
	var out []time.Duration
	for i := 1; i < len(at); i++ {
		out = append(out, at[i].Sub(at[i-1]))
	}
	return out
}

func between(t *testing.T, what string, got, low, high time.Duration) {
	t.Helper()
	if got < low || got > high {
		t.Errorf("%s: %s, want %s to %s", what, got, low, high)
	}
}

func TestOverloadIsAskedAgainWithGrowingWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := fails("m", false, Error{Kind: Overload}, Error{Kind: Overload}, Error{Kind: Overload})
		r, names := registry(t, RegistryOptions{}, f)
		resp, err := open(t, r, nil, names...).Stream(t.Context(), Request{}, nil)
		if err != nil || resp.Model != "m" {
			t.Fatalf("%+v, %v", resp, err)
		}
		g := gaps(f.calls())
		for i, want := range []time.Duration{500, 1000, 2000} {
			want *= time.Millisecond
			between(t, fmt.Sprint("wait ", i), g[i], want*8/10, want*12/10)
		}
		if h := r.Health()[0]; h.Failures != 0 || h.Down || h.LastKind != "" || h.LastOK.IsZero() {
			t.Errorf("%+v", h)
		}
	})
}

func TestRetryAfterComesBeforeOurOwnWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := fails("m", false, Error{Kind: Limited, Status: 429, After: 7 * time.Second})
		r, names := registry(t, RegistryOptions{}, f)
		var l listened
		if _, err := open(t, r, l.wait, names...).Stream(t.Context(), Request{}, nil); err != nil {
			t.Fatal(err)
		}
		between(t, "wait", gaps(f.calls())[0], 7*time.Second, 7*time.Second)
		if l.String() != "m asks to wait 7 s (429)" {
			t.Errorf("notes: %s", &l)
		}
	})
}

// troubles keeps those of a call.
func troubles(list *[]workspace.Trouble) func(Delta) {
	return func(d Delta) {
		if d.Trouble != nil {
			*list = append(*list, *d.Trouble)
		}
	}
}

func TestAModelThatFailsForGoodEndsTheCallAfterSixFailures(t *testing.T) {
	t.Parallel()
	for _, e := range []Error{{Kind: Overload, Status: 500, Said: "upstream exploded"}, {Kind: Limited, Status: 429}, {Kind: Malformed}, {Kind: TimedOut},
		{Kind: Overload, Status: 503, After: 3 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			f := fails("m", true, e)
			r, names := registry(t, RegistryOptions{}, f)
			start := time.Now()
			var told []workspace.Trouble
			_, err := open(t, r, nil, names...).Stream(t.Context(), Request{CacheKey: "s"}, troubles(&told))
			var got *Error
			if !errors.As(err, &got) || got.Kind != e.Kind || got.Failures != maxFailures || len(f.calls()) != maxFailures || r.Health()[0].Down {
				t.Errorf("%s: %v, %d calls, %+v", e.Kind, err, len(f.calls()), r.Health()[0])
			}
			between(t, "end", time.Since(start), 12*time.Second, 30*time.Second)
			if len(told) != maxFailures-1 || told[0].Status != e.Status || told[0].Said != e.Said || told[0].Model != "m" || told[4].Failures != 5 {
				t.Errorf("%s: told %+v", e.Kind, told)
			}
		})
	}
}

func TestFailuresThatTakeLongEndAfterAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := func(name string) *fake {
			return &fake{name: name, answer: func(ctx context.Context, _ int, _ func(Delta)) (Response, error) {
				if err := takes(ctx, 14*time.Second); err != nil {
					return Response{}, err
				}
				return Response{}, &Error{Kind: Overload, Model: name, Status: 502}
			}}
		}
		one, two := slow("one"), slow("two")
		r, names := registry(t, RegistryOptions{}, one, two)
		start := time.Now()
		_, err := open(t, r, nil, names...).Stream(t.Context(), Request{}, nil)
		if KindOf(err) != NoneLeft || len(one.calls()) != 3 || len(two.calls()) != 3 || !strings.Contains(Problems(err), "two answers 502; one answers 502") {
			t.Errorf("%s, %d and %d calls", Problems(err), len(one.calls()), len(two.calls()))
		}
		between(t, "end", time.Since(start), 85*time.Second, 86*time.Second) // what was begun within the minute ends
	})
}

func TestAStatedWaitGoesOnBeyondTheMinute(t *testing.T) {
	t.Parallel()
	for _, e := range []Error{{Kind: Limited, Status: 429, After: 40 * time.Second}, {Kind: Overload, Status: 529, After: 40 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			f := fails("m", false, e, e, Error{Kind: Overload, Status: 500}, e, e, e, e, e)
			r, names := registry(t, RegistryOptions{}, f)
			start := time.Now()
			var told []workspace.Trouble
			resp, err := open(t, r, nil, names...).Stream(t.Context(), Request{CacheKey: "s"}, troubles(&told))
			if err != nil || resp.Model != "m" {
				t.Fatalf("%v after %s", err, time.Since(start))
			}
			between(t, "end", time.Since(start), 280*time.Second, 281*time.Second)
			if want := fmt.Sprintf("m asks to wait 40 s (%d)", e.Status); Progress(told[0]) != want {
				t.Errorf("told %q, want %q", Progress(told[0]), want)
			}
		})
	}
}

// Somebody who wants a model asked at once does not wait for its cool-down; the next try waits as ever.
func TestACallThatIsWantedAtOnceGoesOutThroughACoolDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := fails("m", true, Error{Kind: Overload, Status: 500})
		r, names := registry(t, RegistryOptions{}, f)
		for i := range 2 {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second+time.Duration(i+1)*time.Millisecond)
			_, _ = open(t, r, nil, names...).Stream(ctx, Request{CacheKey: fmt.Sprint(i)}, nil)
			cancel()
		}
		if !r.Health()[0].Down {
			t.Fatal("it does not cool down")
		}
		before, start := len(f.calls()), time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		var asked []string
		_, _ = open(t, r, nil, names...).Stream(ctx, Request{CacheKey: "2", Trouble: &workspace.Trouble{Failures: 1}}, func(d Delta) {
			if d.Asks != nil {
				asked = append(asked, d.Asks.Who())
			}
		})
		if n := len(f.calls()) - before; n != 1 || time.Since(start) > time.Millisecond || !slices.Equal(asked, []string{"m"}) {
			t.Errorf("%d calls, told of %q", n, asked)
		}
	})
}

// What failed before the gateway ended counts: the bound does not begin again.
func TestACallThatIsTakenUpAgainGoesOnWithWhatIsLeft(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		was   workspace.Trouble
		calls int
	}{
		{workspace.Trouble{Failures: 4, Failing: 8 * time.Second}, 2},
		{workspace.Trouble{Failures: 9, Failing: 8 * time.Second}, 1},
		{workspace.Trouble{Failures: 2, Failing: 59 * time.Second}, 1},
		{workspace.Trouble{Failures: 2, Failing: 10 * time.Hour}, 1},
		{workspace.Trouble{Failures: 2, Failing: -10 * time.Hour}, 4},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := fails("m", true, Error{Kind: Overload, Status: 500})
			r, names := registry(t, RegistryOptions{}, f)
			_, err := open(t, r, nil, names...).Stream(t.Context(), Request{Trouble: &c.was}, nil)
			if KindOf(err) != Overload || len(f.calls()) != c.calls {
				t.Errorf("%+v: %v after %d calls, want %d", c.was, err, len(f.calls()), c.calls)
			}
		})
	}
}

func TestWaitBeyondTheTurnEndsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := fails("m", true, Error{Kind: Limited, After: time.Hour})
		r, names := registry(t, RegistryOptions{}, f)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		start := time.Now()
		_, err := open(t, r, nil, names...).Stream(ctx, Request{}, nil)
		var e *Error
		if !errors.As(err, &e) || e.Kind != Limited || e.After != time.Hour || time.Since(start) != 0 {
			t.Errorf("%v after %s", err, time.Since(start))
		}
	})
}

func TestFallbackIsAskedWhenTheWaitIsLongerThanTheTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, names := registry(t, RegistryOptions{}, fails("one", true, Error{Kind: Limited, After: 20 * time.Second}), works("two"))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if resp, err := open(t, r, nil, names...).Stream(ctx, Request{}, nil); err != nil || resp.Model != "two" {
			t.Errorf("%+v, %v", resp, err)
		}
	})
}

func TestRetryAfterHoldsWhileAnotherModelIsAsked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		one := fails("one", true, Error{Kind: Limited, After: time.Minute})
		two := fails("two", false, Error{Kind: Limited, After: 40 * time.Second})
		r, names := registry(t, RegistryOptions{}, one, two)
		start := time.Now()
		resp, err := open(t, r, nil, names...).Stream(t.Context(), Request{}, nil)
		if err != nil || resp.Model != "two" || len(one.calls()) != 1 || time.Since(start) != 40*time.Second {
			t.Errorf("%+v, %v, %d calls of the first", resp, err, len(one.calls()))
		}
	})
}

func TestFallbacksAreAskedInOrder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err   Error
		calls int // of the primary
		least time.Duration
		most  time.Duration
	}{
		{Error{Kind: Auth}, 1, 0, 0},
		{Error{Kind: Rejected}, 1, 0, 0},
		{Error{Kind: Overload}, 1, 0, 0},
		{Error{Kind: Malformed}, 1, 0, 0},
		{Error{Kind: Cut}, 1, 0, 0},
		{Error{Kind: Limited, After: 31 * time.Second}, 1, 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			one, two, three := fails("one", true, c.err), fails("two", true, Error{Kind: Auth}), works("three")
			r, names := registry(t, RegistryOptions{}, one, two, three)
			var l listened
			start := time.Now()
			resp, err := open(t, r, l.wait, names...).Stream(t.Context(), Request{}, nil)
			if err != nil || resp.Model != "three" {
				t.Fatalf("%s: %+v, %v", c.err.Kind, resp, err)
			}
			if n := len(one.calls()); n != c.calls || len(two.calls()) != 1 {
				t.Errorf("%v: %d calls of the primary, %d of the second", c.err, n, len(two.calls()))
			}
			between(t, string(c.err.Kind), time.Since(start), c.least, c.most)
			if !strings.Contains(l.String(), "asking two") || !strings.Contains(l.String(), "asking three") {
				t.Errorf("notes: %s", &l)
			}
		})
	}
}

func TestATimeoutGoesToTheFallbackAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		one := &fake{name: "one", answer: func(ctx context.Context, _ int, _ func(Delta)) (Response, error) {
			if err := takes(ctx, time.Minute); err != nil {
				return Response{}, err
			}
			return Response{}, &Error{Kind: TimedOut}
		}}
		r, names := registry(t, RegistryOptions{}, one, works("two"))
		resp, err := open(t, r, nil, names...).Stream(t.Context(), Request{}, nil)
		if err != nil || resp.Model != "two" || len(one.calls()) != 1 {
			t.Errorf("%+v, %v, %d calls", resp, err, len(one.calls()))
		}
	})
}

func TestNoneLeftSaysTheLastReason(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, names := registry(t, RegistryOptions{}, fails("one", true, Error{Kind: Rejected}), fails("two", true, Error{Kind: Auth, Status: 401}))
		_, err := open(t, r, nil, names...).Stream(t.Context(), Request{}, nil)
		var e *Error
		if !errors.As(err, &e) || e.Kind != NoneLeft || KindOf(e.Err) != Auth || e.Status != 401 {
			t.Errorf("%v", err)
		}
		_, err = open(t, r, nil, "two").Stream(t.Context(), Request{}, nil)
		if KindOf(err) != Auth {
			t.Errorf("a chain of one: %v", err)
		}
	})
}

func TestBusyPrimaryAndDeadFallbackStillEndInAnAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		busy := Error{Kind: Limited, After: time.Minute}
		one, two := fails("one", false, busy, busy), fails("two", true, Error{Kind: Auth})
		r, names := registry(t, RegistryOptions{}, one, two)
		resp, err := open(t, r, nil, names...).Stream(t.Context(), Request{}, nil)
		if err != nil || resp.Model != "one" || len(two.calls()) != 1 {
			t.Errorf("%+v, %v", resp, err)
		}
		for _, g := range gaps(one.calls()) {
			between(t, "wait", g, time.Minute, time.Minute)
		}
	})
}

func TestOverflowGoesBackAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		two := works("two")
		r, names := registry(t, RegistryOptions{}, fails("one", true, Error{Kind: Overflow}), two)
		_, err := open(t, r, nil, names...).Stream(t.Context(), Request{}, nil)
		if KindOf(err) != Overflow || len(two.calls()) != 0 {
			t.Errorf("%v", err)
		}
	})
}

// half streams half a text and is cut, cuts times.
func half(name string, cuts int) *fake {
	return &fake{name: name, answer: func(_ context.Context, n int, onDelta func(Delta)) (Response, error) {
		if n > cuts {
			onDelta(Delta{Text: "whole"})
			return ok(name), nil
		}
		onDelta(Delta{Text: "ha"})
		return Response{}, &Error{Kind: Cut, Model: name, Partial: "ha"}
	}}
}

func TestCutStreamIsDiscardedAndAskedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, names := registry(t, RegistryOptions{}, half("m", 2))
		var seen []string
		_, err := open(t, r, nil, names...).Stream(t.Context(), Request{}, func(d Delta) {
			if d.Trouble != nil || d.Asks != nil {
				return
			}
			if d.Discard {
				d.Text = "<discard>"
			}
			seen = append(seen, d.Text)
		})
		if got := strings.Join(seen, " "); err != nil || got != "ha <discard> ha <discard> whole" {
			t.Errorf("%s, %v", got, err)
		}
	})
}

func TestThirdCutEndsTheModelAndKeepsWhatWasShown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := half("m", 100)
		r, names := registry(t, RegistryOptions{}, m)
		_, err := open(t, r, nil, names...).Stream(t.Context(), Request{}, func(Delta) {})
		var e *Error
		if !errors.As(err, &e) || e.Kind != Cut || e.Partial != "ha" || len(m.calls()) != 3 {
			t.Errorf("%v, %d calls", err, len(m.calls()))
		}
	})
}

func TestStopWhileWaitingKeepsWhatIsStillShown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, names := registry(t, RegistryOptions{}, half("m", 100))
		ctx, cancel := context.WithCancel(t.Context())
		stop := time.AfterFunc(100*time.Millisecond, cancel)
		defer stop.Stop()
		_, err := open(t, r, nil, names...).Stream(ctx, Request{}, func(Delta) {})
		var e *Error
		if !errors.As(err, &e) || e.Kind != Cancelled || e.Partial != "ha" {
			t.Errorf("%v", err)
		}
	})
}

func TestCancelIsNoFailureOfTheModel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &fake{name: "m", answer: func(ctx context.Context, _ int, _ func(Delta)) (Response, error) {
			return Response{}, takes(ctx, time.Hour)
		}}
		r, names := registry(t, RegistryOptions{}, m)
		for range 2 * failuresToCool {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, err := open(t, r, nil, names...).Stream(ctx, Request{}, nil)
			cancel()
			if KindOf(err) != Cancelled || !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
		}
		if h := r.Health()[0]; h.Failures != 0 || h.Down || h.Busy != 0 {
			t.Errorf("%+v", h)
		}
	})
}
