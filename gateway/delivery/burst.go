// The burst: what is held back right after a crash.

package delivery

import (
	"context"
	"sync"
	"time"

	"parley/channels"
	"parley/gateway/transport"
)

// burst holds back what goes out right after a crash. Then everything that was left is ready at once; a process that is
// killed again in the middle of that would have as many answers under way as there are rooms, and on a network that can
// neither be asked nor dedupes each may come twice. So few are sent at a time, each after the note of the one before,
// until the burst is over.
type burst struct {
	places chan struct{}
	over   time.Time // by a clock that nobody can set
}

const (
	burstAtOnce = 2                // answers under way at once
	burstTime   = 10 * time.Second // from the start on
	burstStuck  = time.Second      // a send that takes longer holds nobody else up
)

func newBurst(began time.Time) *burst {
	return &burst{places: make(chan struct{}, burstAtOnce), over: began.Add(burstTime)}
}

// pass is a place in the burst; nil: none is needed.
type pass struct {
	once  sync.Once
	b     *burst
	timer *time.Timer
}

// asks says whether an answer on this channel must be held back now.
func (b *burst) asks(ch *transport.Channel) bool {
	if b == nil || !time.Now().Before(b.over) || ch == nil || ch.Traits.Idempotent {
		return false
	}
	_, finds := channels.As[channels.Finder](ch.Adapter)
	return !finds
}

// try takes a place if there is one.
func (b *burst) try(ch *transport.Channel) (p *pass, ok bool) {
	if !b.asks(ch) {
		return nil, true
	}
	select {
	case b.places <- struct{}{}:
		return &pass{b: b}, true
	default:
		return nil, false
	}
}

// enter waits for a place. It is false when ctx ended.
func (b *burst) enter(ctx context.Context, ch *transport.Channel) (*pass, bool) {
	if !b.asks(ch) {
		return nil, true
	}
	over := time.NewTimer(time.Until(b.over))
	defer over.Stop()
	select {
	case b.places <- struct{}{}:
		return &pass{b: b}, true
	case <-over.C:
		return nil, true
	case <-ctx.Done():
		return nil, false
	}
}

// begin is called right before the send.
func (p *pass) begin() {
	if p != nil {
		p.timer = time.AfterFunc(burstStuck, p.give)
	}
}

// leave gives the place back, once.
func (p *pass) leave() {
	if p == nil {
		return
	}
	if p.timer != nil {
		p.timer.Stop()
	}
	p.give()
}

func (p *pass) give() { p.once.Do(func() { <-p.b.places }) }
