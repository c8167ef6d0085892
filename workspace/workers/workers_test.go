package workers

import (
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestFunctionsShareGoroutines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := New()
		before := runtime.NumGoroutine()
		var ran atomic.Int64
		for range 5 { // one after the other: one goroutine
			p.Go(func() { ran.Add(1) })
			synctest.Wait()
		}
		if got := runtime.NumGoroutine() - before; ran.Load() != 5 || got > 1 {
			t.Errorf("%d of 5 functions ran, on %d goroutines", ran.Load(), got)
		}
		block := make(chan struct{})
		for range 5 { // at the same time: none waits for another
			p.Go(func() { ran.Add(1); <-block })
		}
		synctest.Wait()
		if ran.Load() != 10 {
			t.Errorf("%d of 10 functions began", ran.Load())
		}
		close(block)
		<-time.After(keep + 1)
		synctest.Wait() // those without work have ended
		p.Go(func() { ran.Add(1) })
		p.Close()
		if ran.Load() != 11 {
			t.Errorf("%d of 11 functions ran", ran.Load())
		}
	})
}

func TestCloseWaitsForWhatRuns(t *testing.T) {
	t.Parallel()
	p := New()
	var mu sync.Mutex
	ended := false
	began := make(chan struct{})
	p.Go(func() {
		close(began)
		for range 1000 {
			runtime.Gosched()
		}
		mu.Lock()
		defer mu.Unlock()
		ended = true
	})
	<-began
	p.Close()
	mu.Lock()
	defer mu.Unlock()
	if !ended {
		t.Error("Close returned before the function did")
	}
}

func TestAGuardedPanicIsLoggedAndEndsNothing(t *testing.T) {
	t.Parallel()
	var told strings.Builder
	func() {
		defer Guard(slog.New(slog.NewTextHandler(&told, nil)), "a test")
		panic("oh")
	}()
	if got := told.String(); !strings.Contains(got, `in="a test" panic=oh stack=`) {
		t.Error(got)
	}
}
