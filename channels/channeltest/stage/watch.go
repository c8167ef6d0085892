package stage

import (
	"context"
	"fmt"
	"sync/atomic"
)

// Watch wakes those who wait for something to happen in a fake. Its zero value is ready; all methods may be called with the
// fake's own lock held, but Wait, whose cond takes it. A change for which nobody waits costs one atomic read.
type Watch struct{ next atomic.Pointer[chan struct{}] }

// Changed says that something has happened.
func (w *Watch) Changed() {
	if w.next.Load() == nil {
		return
	}
	if c := w.next.Swap(nil); c != nil {
		close(*c)
	}
}

// Next is closed at the next change. Whoever takes it before a look at the state misses none.
func (w *Watch) Next() <-chan struct{} {
	for {
		if c := w.next.Load(); c != nil {
			return *c
		}
		if c := make(chan struct{}); w.next.CompareAndSwap(nil, &c) {
			return c
		}
	}
}

// Wait blocks until cond holds, which it asks again after every change, or until ctx ends: then it returns ctx's error.
func (w *Watch) Wait(ctx context.Context, cond func() bool) error {
	for {
		next := w.Next()
		if cond() {
			return nil
		}
		select {
		case <-next:
		case <-ctx.Done():
			return fmt.Errorf("wait for the fake: %w", ctx.Err())
		}
	}
}
