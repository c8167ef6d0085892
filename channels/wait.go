package channels

import (
	"context"
	"math/rand/v2"
	"time"
)

// Sleep waits for d or until ctx ends, and says whether it waited to the end.
func Sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// Backoff is how long to wait after the try-th failure in a row, counted from 0: base at first, doubled each time, never
// more than ceiling. Of that the upper half is left to chance ("equal jitter",
// https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/): gateways that lost the network in one moment
// do not come back as one, and yet none of them asks again at once, as it may where the whole is left to chance.
func Backoff(try int, base, ceiling time.Duration) time.Duration {
	wait := ceiling
	if base <= ceiling>>max(try, 0) { // else the shift would reach or pass the ceiling, and overflow in the end
		wait = base << max(try, 0)
	}
	return wait/2 + rand.N(wait/2+1)
}
