package gateway

import (
	"context"
	"runtime/metrics"
	"sync/atomic"
	"time"
)

// memory watches the ceiling: near it the gateway takes nothing more in, before anything is acknowledged, so that
// what it has taken can be finished.
type memory struct {
	limit int64
	now   atomic.Int64 // bytes in use, a moment ago
}

const memoryEvery = 100 * time.Millisecond

func newMemory(limit int64) *memory { return &memory{limit: limit} }

// high says that new input must wait.
func (m *memory) high() bool { return m.now.Load() > m.limit*9/10 }

// watch measures until ctx ends.
func (m *memory) watch(ctx context.Context) {
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	tick := time.NewTicker(memoryEvery)
	defer tick.Stop()
	for {
		metrics.Read(sample)
		m.now.Store(int64(sample[0].Value.Uint64() - sample[1].Value.Uint64()))
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
