package sandbox

import (
	"context"
	"sync"
	"time"
)

// keepSpare is how long a spare stays when no command comes.
const keepSpare = time.Minute

// spares keeps one box ready for the next command: most of what a start takes is the same for all of them, and is done behind
// the command before it. It is the very process that would be started for the command, by the very code, only earlier: there
// is not a second way into a sandbox. It knows nothing of any command, and one that was taken is never put back.
//
// What it costs is some megabytes for a minute after the last command. It owns a goroutine while a spare is being made.
type spares struct {
	keep time.Duration // how long; negative: none is made

	mu     sync.Mutex
	ready  *box
	making chan struct{} // closed when the one that is being made is there, or could not be made; nil: none is
	closed bool
	timer  *time.Timer
	work   sync.WaitGroup // makers and enders
}

// take gives the spare, if there is one that this call may have. One that is being made is waited for: it has begun before
// the call.
func (n *ns) take(ctx context.Context, h how) *box {
	if h.inherit != nil || h.stdin != nil {
		return nil
	}
	p := &n.spares
	p.mu.Lock()
	defer p.mu.Unlock()
	if making := p.making; making != nil && p.ready == nil {
		p.mu.Unlock()
		select {
		case <-making:
		case <-ctx.Done():
		}
		p.mu.Lock()
	}
	b := p.ready
	if b == nil || b.weak != h.weak {
		return nil
	}
	p.ready = nil
	if b.stale() {
		p.work.Go(b.end)
		return nil
	}
	return b
}

// refill makes a spare, or lets the one that is there stay longer.
func (n *ns) refill(h how) {
	p := &n.spares
	if p.keep < 0 || h.self != "" || h.inherit != nil || h.stdin != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	if p.timer == nil {
		p.timer = time.AfterFunc(p.keep, n.drop)
	} else {
		p.timer.Reset(p.keep)
	}
	if p.making != nil || p.ready != nil {
		return
	}
	made := make(chan struct{})
	p.making = made
	p.work.Go(func() {
		b, err := n.newBox(h)
		p.mu.Lock()
		p.making = nil
		if err == nil && !p.closed {
			p.ready, b = b, nil
		}
		p.mu.Unlock()
		close(made)
		switch {
		case err != nil: // too many processes, say: the next command tries for itself, and tells
			n.log.Debug("no spare sandbox", "err", err)
		case b != nil:
			b.end()
		}
	})
}

// drop ends the spare that waits.
func (n *ns) drop() {
	p := &n.spares
	p.mu.Lock()
	b := p.ready
	p.ready = nil
	if b != nil {
		p.work.Add(1)
		defer p.work.Done()
	}
	p.mu.Unlock()
	if b != nil {
		b.end()
	}
}

// Close ends what waits for a command. A command that runs goes on, and one that comes later starts by itself.
func (n *ns) Close() {
	p := &n.spares
	p.mu.Lock()
	p.closed = true
	if p.timer != nil {
		p.timer.Stop()
	}
	p.mu.Unlock()
	n.drop()
	p.work.Wait()
	n.disk.Close()
}
