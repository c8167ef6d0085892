// Package workers runs short functions on goroutines that are kept for the next ones, with the stacks that they have grown:
// growing one costs a message as much as its routing does.
package workers

import (
	"log/slog"
	"runtime/debug"
	"sync"
	"time"
)

// keep is how long a goroutine waits for its next function.
const keep = 100 * time.Millisecond

// Pool keeps goroutines. Safe for concurrent use.
//
// Goroutines: one for each function that runs, and those that wait for the next, which Close ends.
type Pool struct {
	next chan func()
	shut chan struct{}
	once sync.Once
	wg   sync.WaitGroup
}

// New makes a pool with no goroutine yet.
func New() *Pool { return &Pool{next: make(chan func()), shut: make(chan struct{})} }

// Go runs f beside its caller and never waits: on a goroutine that has nothing to do, or on a new one.
func (p *Pool) Go(f func()) {
	select {
	case p.next <- f:
	default:
		p.wg.Go(func() { p.work(f) })
	}
}

func (p *Pool) work(f func()) {
	idle := time.NewTimer(keep)
	defer idle.Stop()
	for {
		f()
		idle.Reset(keep)
		select {
		case f = <-p.next:
		case <-p.shut:
			return
		case <-idle.C:
			return
		}
	}
}

// Close returns when every function has returned and every goroutine has ended. Twice is fine; nothing may be given to Go after it.
func (p *Pool) Close() {
	p.once.Do(func() { close(p.shut) })
	p.wg.Wait()
}

// Guard, deferred, keeps a panic from ending the process: what it happened in fails, and it is logged.
func Guard(log *slog.Logger, what string) {
	if p := recover(); p != nil {
		log.Error("panic", "in", what, "panic", p, "stack", string(debug.Stack()))
	}
}
