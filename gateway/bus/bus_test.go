package bus_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"parley/gateway/bus"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestASessionIsWokenByItsKey(t *testing.T) {
	t.Parallel()
	b := bus.New(7)
	b.Wake("nobody hears it") // lost
	var one, two []string
	b.OnWake(func(key string) { one = append(one, key) })
	b.OnWake(func(key string) {
		if two = append(two, key); key == "a" {
			b.Wake("b") // no lock is held
		}
	})
	b.Wake("a")
	if !slices.Equal(one, []string{"a", "b"}) || !slices.Equal(two, []string{"a", "b"}) {
		t.Errorf("woken: %q and %q", one, two)
	}
}

func TestALeaseHasOneHolderAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := bus.New(7)
		var wg sync.WaitGroup
		holders, most, n := 0, 0, 0
		var mu sync.Mutex
		for range 5 {
			wg.Go(func() {
				l, err := b.Lease(t.Context(), "sweep")
				if err != nil || l.Epoch != 7 {
					t.Errorf("epoch %d, %v", l.Epoch, err)
				}
				mu.Lock()
				holders, n = holders+1, n+1
				most = max(most, holders)
				mu.Unlock()
				wait(l.Context(), time.Minute)
				mu.Lock()
				holders--
				mu.Unlock()
				l.Release()
				l.Release()
			})
		}
		began := time.Now()
		wg.Wait()
		if most != 1 || n != 5 || time.Since(began) != 5*time.Minute {
			t.Errorf("%d at once, %d in all, after %s", most, n, time.Since(began))
		}
	})
}

func TestLeasesOfOtherNamesDoNotWait(t *testing.T) {
	t.Parallel()
	b := bus.New(1)
	for _, name := range []string{"a", "b"} {
		l, err := b.Lease(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Release()
	}
}

func TestWhoWaitsForALeaseEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := bus.New(1)
		l, err := b.Lease(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Release()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := b.Lease(ctx, "x"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a lease that another has: %v", err)
		}
		if l.Context().Err() != nil {
			t.Error("the holder's context ended")
		}
		ended, end := context.WithCancel(t.Context())
		end()
		if _, err := b.Lease(ended, "free"); !errors.Is(err, context.Canceled) {
			t.Errorf("asked with a context that has ended: %v", err)
		}
	})
}

// What is done alone is done by the next one as soon as the first has ended, and not begun again after its end.
func TestAloneIsDoneByOneAfterTheOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := bus.New(1)
		first, end := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		var did []string
		wg.Go(func() {
			b.Alone(first, "x", func(ctx context.Context) { did = append(did, "one"); <-ctx.Done() })
		})
		synctest.Wait()
		wg.Go(func() { b.Alone(t.Context(), "x", func(context.Context) { did = append(did, "two") }) })
		synctest.Wait()
		if !slices.Equal(did, []string{"one"}) {
			t.Errorf("at once: %q", did)
		}
		end()
		wg.Wait()
		b.Alone(first, "x", func(context.Context) { did = append(did, "three") }) // its context has ended
		if !slices.Equal(did, []string{"one", "two"}) {
			t.Errorf("in all: %q", did)
		}
	})
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
