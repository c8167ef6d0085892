package gateway

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"time"

	"parley/agentloop/llm"
)

// memory watches the ceiling: near it the gateway takes nothing more in, before anything is acknowledged, so that
// what it has taken can be finished.
type memory struct {
	limit int64
	now   atomic.Int64 // bytes in use, a moment ago
	tight bool         // garbage is collected sooner; watch's alone
	// answers is what the long answers of all turns may hold together. What is beyond it waits, so that they do not bring the
	// gateway near its ceiling, where it would refuse everybody's messages.
	answers *llm.Budget
}

// answersShare is their part of the limit: a byte of an answer is held some eight times on its way, by the turn, its watchers, the
// store and the delivery.
const answersShare = 32

const memoryEvery = 100 * time.Millisecond

// What counts as quiet: hardly anything allocated for so long. Then what a burst has left goes back to the system.
const (
	quietFor   = 5 * time.Second
	quietBytes = 4 << 20
)

func newMemory(limit int64) *memory {
	return &memory{limit: limit, answers: llm.NewBudget(limit / answersShare)}
}

// high says that new input must wait.
func (m *memory) high() bool { return m.now.Load() > m.limit*9/10 }

// watch measures until ctx ends.
func (m *memory) watch(ctx context.Context) {
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}, {Name: "/gc/heap/allocs:bytes"}}
	tick := time.NewTicker(memoryEvery)
	defer tick.Stop()
	var q quiet
	for {
		metrics.Read(sample)
		m.now.Store(int64(sample[0].Value.Uint64() - sample[1].Value.Uint64()))
		if q.begins(time.Now(), sample[2].Value.Uint64()) {
			debug.FreeOSMemory()
		}
		m.collect()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// collect has garbage collected sooner while memory is short: what nobody holds any more must not count as what cannot be taken in.
func (m *memory) collect() {
	now := m.now.Load()
	switch {
	case !m.tight && now > m.limit*8/10:
		m.tight = true
		debug.SetGCPercent(gcPercentTight)
	case m.tight && now < m.limit*6/10:
		m.tight = false
		debug.SetGCPercent(gcPercent)
	}
}

// quiet notices when work has ceased.
type quiet struct {
	since time.Time
	from  uint64 // bytes allocated by then
	told  bool
}

// begins says once that it has been quiet for long enough, when so many bytes were allocated in all.
func (q *quiet) begins(now time.Time, allocated uint64) bool {
	if q.since.IsZero() || allocated-q.from > quietBytes {
		*q = quiet{since: now, from: allocated}
		return false
	}
	if q.told || now.Sub(q.since) < quietFor {
		return false
	}
	q.told = true
	return true
}
