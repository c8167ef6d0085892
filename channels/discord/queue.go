package discord

import (
	"context"
	"sync"
)

// maxQueue bounds what waits to be journalled, in bytes of events.
const maxQueue = 64 << 20

// queue holds events between the connection and the journal. It outlives connections: what is in it needs no RESUME.
type queue struct {
	mu    sync.Mutex
	list  []payload
	size  int
	full  chan struct{} // closed and renewed when room was made
	woken chan struct{}
}

func newQueue() *queue { return &queue{full: make(chan struct{}), woken: make(chan struct{}, 1)} }

// push waits for room; false: ctx ended first.
func (q *queue) push(ctx context.Context, p payload) bool {
	for {
		q.mu.Lock()
		if q.size == 0 || q.size+len(p.Data) <= maxQueue {
			q.list = append(q.list, p)
			q.size += len(p.Data)
			q.mu.Unlock()
			select {
			case q.woken <- struct{}{}:
			default: // it has a wake-up waiting
			}
			return true
		}
		room := q.full
		q.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return false
		}
	}
}

// take gives the next n events at most, without waiting.
func (q *queue) take(n int) []payload {
	q.mu.Lock()
	defer q.mu.Unlock()
	n = min(n, len(q.list))
	got := q.list[:n:n]
	q.list = q.list[n:]
	for _, p := range got {
		q.size -= len(p.Data)
	}
	if n > 0 {
		close(q.full)
		q.full = make(chan struct{})
	}
	return got
}
