// Package bus is the seam between parts that may one day run in several processes: sessions are woken through it, what one
// process alone may do has its lease from it, and what happens is published on it to whoever watches. Today all of them
// are in this process.
//
// It is never the record. Who is woken reads the store, and behind the wake-ups stands a scan of it, so that a lost one costs
// a few seconds; who watches and falls behind begins again from the store; and what a lease lets do is written under
// an epoch: today the one of the process, which the store compares.
//
// It starts no goroutine.
package bus

import "sync"

// Bus is the seam within one process. Safe for concurrent use.
type Bus struct {
	epoch int64

	mu     sync.Mutex
	woken  []func(session string)
	leases map[string]*Lease

	topics topics
}

// New makes the bus of a boot. epoch is that of the process in the store.
func New(epoch int64) *Bus { return &Bus{epoch: epoch, leases: map[string]*Lease{}} }

// OnWake has f called with the key of each session that is woken, without a lock of the bus. f must not block. It is called
// before anything is woken.
func (b *Bus) OnWake(f func(session string)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.woken = append(b.woken, f)
}

// Wake says that a session may have something to do: its turn is held for an answer that has come, or was paused and is to
// go on. It never blocks, it may be lost, and it may come twice.
func (b *Bus) Wake(session string) {
	b.mu.Lock()
	woken := b.woken
	b.mu.Unlock()
	for _, f := range woken {
		f(session)
	}
}
