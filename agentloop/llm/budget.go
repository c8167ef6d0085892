package llm

import (
	"context"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
)

// Budget is the memory that long answers may hold together while they grow and until their turn has stored them. Short ones
// need none of it, so that they are never kept waiting by the long. It is safe for concurrent use.
type Budget struct {
	total   int64
	sem     *semaphore.Weighted
	held    atomic.Int64
	waiting atomic.Int64
}

// NewBudget is one of so many bytes.
func NewBudget(bytes int64) *Budget {
	return &Budget{total: bytes, sem: semaphore.NewWeighted(bytes)}
}

// Held is how many bytes long answers hold, and how many of them wait to grow.
func (b *Budget) Held() (bytes, waiting int64) {
	if b == nil {
		return 0, 0
	}
	return b.held.Load(), b.waiting.Load()
}

// Hold is what one turn has of a budget. A turn asks for all that one answer may come to at once, and gives it back before it
// asks for more, so that no two turns wait for each other. Its zero value, and one of a nil Budget, bounds nothing.
type Hold struct {
	Budget *Budget

	mu sync.Mutex
	n  int64
}

// Grow waits until the answer under way may come to so many bytes; whoever came first is first. It ends with ctx's cause.
func (h *Hold) Grow(ctx context.Context, bytes int64) error {
	if h == nil || h.Budget == nil {
		return nil
	}
	b := h.Budget
	bytes = min(bytes, b.total)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.n >= bytes {
		return nil // an earlier try of the same answer
	}
	h.release()
	b.waiting.Add(1)
	err := b.sem.Acquire(ctx, bytes)
	b.waiting.Add(-1)
	if err != nil {
		return context.Cause(ctx)
	}
	h.n = bytes
	b.held.Add(bytes)
	return nil
}

// Release gives back what the turn has: its answer is stored, or forgotten.
func (h *Hold) Release() {
	if h == nil || h.Budget == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.release()
}

func (h *Hold) release() {
	if h.n > 0 {
		h.Budget.sem.Release(h.n)
		h.Budget.held.Add(-h.n)
		h.n = 0
	}
}
