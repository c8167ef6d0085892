// How many refusals of one sender are kept.

package intake

import (
	"sync"
	"time"
)

// limiter allows a number of events an hour for each key.
type limiter struct {
	now func() time.Time
	max int
	mu  sync.Mutex
	n   map[string]int
	end time.Time
}

func newLimiter(perHour int, now func() time.Time) *limiter {
	return &limiter{now: now, max: perHour, n: map[string]int{}}
}

func (l *limiter) allow(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := l.now(); now.After(l.end) || len(l.n) > 100_000 {
		clear(l.n)
		l.end = now.Add(time.Hour)
	}
	l.n[key]++
	return l.n[key] <= l.max
}
