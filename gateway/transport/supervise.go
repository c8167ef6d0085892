package transport

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"parley/channels"
)

// run is one life of the adapter's Run, guarded by the channel's lock.
type run struct {
	end   func()        // ends the connection at hand
	under bool          // Run is under way: it sees by itself that the channel was linked
	again chan struct{} // it was linked while it did not run, or gets another adapter; holds one
}

const (
	backoffMin = time.Second
	backoffMax = 5 * time.Minute
)

// Backoff is how long to wait after a number of tries that failed: a second, doubled up to five minutes, give or take a quarter.
func Backoff(tries int) time.Duration {
	wait := backoffMin << min(max(tries-1, 0), 16)
	wait = min(wait, backoffMax)
	return wait*3/4 + rand.N(wait/2)
}

// Linked has a channel that had failed run again. One that runs knows of its link already: a word kept for it would have it
// begin again after its next failure, which may be one that it must not come back from.
func (c *Channel) Linked() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.run.under {
		c.wake()
	}
}

// wake ends a rest, or the next one. The lock is held.
func (c *Channel) wake() {
	select {
	case c.run.again <- struct{}{}:
	default:
	}
}

// Supervise runs the adapter until ctx ends: a panic or an error restarts it with backoff, a Fatal ends it until it is
// linked again.
func (c *Channel) Supervise(ctx context.Context, in channels.Intake) {
	for tries := 1; ctx.Err() == nil; tries++ {
		c.adopt()
		began := c.now()
		err := c.runOnce(ctx, in)
		if ctx.Err() != nil {
			return
		}
		if c.Renewing() {
			tries = 0
			continue
		}
		if first := c.duplicateOf(); first != "" {
			c.Report(channels.Status{State: channels.Failed, Cause: fmt.Sprintf("channel %s has the same account", first),
				Hint: "Take one of the two out of the configuration, or give it another account.", Err: ErrDuplicateAccount})
			c.rest(ctx, nil)
			continue
		}
		var e *channels.Error
		if errors.As(err, &e) && e.Class == channels.Fatal {
			c.mu.Lock()
			hint := c.state.status.Hint
			c.mu.Unlock()
			c.Report(channels.Status{State: channels.Failed, Cause: e.Err.Error(), Hint: hint, Err: err})
			c.rest(ctx, nil)
			tries = 0
			continue
		}
		if c.now().Sub(began) > 5*time.Minute {
			tries = 1
		}
		c.Report(channels.Status{State: channels.Connecting, Cause: fmt.Sprintf("the connection ended: %v", err)})
		timer := time.NewTimer(Backoff(tries))
		c.rest(ctx, timer.C)
		timer.Stop()
	}
}

// rest waits until the channel is to be run again: it was linked, its keys changed, or at the time when given.
func (c *Channel) rest(ctx context.Context, until <-chan time.Time) {
	select {
	case <-ctx.Done():
	case <-c.run.again:
	case <-until:
	}
}

func (c *Channel) runOnce(ctx context.Context, in channels.Intake) (err error) {
	defer func() {
		if p := recover(); p != nil {
			c.Log.Error("channel panicked", "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c.mu.Lock()
	c.run.end, c.run.under = cancel, true
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.run.under = false
	}()
	return c.Adapter.Run(ctx, in)
}
