package transport

import (
	"context"
	"sync"
	"sync/atomic"

	"parley/channels"
)

// plug is the adapter of a configured channel, which can be replaced and taken out.
type plug struct {
	now atomic.Pointer[channels.Channel]

	mu      sync.Mutex
	sending int           // how many messages are
	closed  bool          // no further one is
	idle    chan struct{} // closed once it is closed and nothing is sent
}

var _ channels.Channel = (*plug)(nil)

func newPlug(ch channels.Channel) *plug {
	p := &plug{idle: make(chan struct{})}
	p.now.Store(&ch)
	return p
}

// Unwrap is the adapter at the moment.
func (p *plug) Unwrap() channels.Channel { return *p.now.Load() }

// Run is the adapter's, of the moment when it begins.
func (p *plug) Run(ctx context.Context, in channels.Intake) error { return p.Unwrap().Run(ctx, in) }

// Send is the adapter's. Nothing is sent over one that was taken out.
func (p *plug) Send(ctx context.Context, post channels.Post) (channels.MessageID, error) {
	if !p.count(1) {
		return "", &channels.Error{Class: channels.Retry, Err: errRemoved}
	}
	defer p.count(-1)
	return p.Unwrap().Send(ctx, post)
}

// count adds to what is being sent, and says whether that may be.
func (p *plug) count(n int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed && n > 0 {
		return false
	}
	if p.sending += n; p.closed && p.sending == 0 {
		close(p.idle)
	}
	return true
}

// close refuses what is to be sent from here on. What it returns is closed when nothing is being sent any more.
func (p *plug) close() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed = true; p.sending == 0 {
		close(p.idle)
	}
	return p.idle
}

// renew ends the connection at hand and gives its account free; the supervisor goes on with the new adapter.
func (cs *Channels) renew(c *Channel, r renewal) {
	cs.release(c, c.Account())
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next, c.options = &r, r.options
	c.Log.Info("channel reconnects: its keys changed")
	if c.run.under {
		c.run.end() // the supervisor sees next
		return
	}
	c.wake()
}

// adopt takes the new adapter, if there is one. Nothing is sent until it is connected.
func (c *Channel) adopt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next == nil {
		return
	}
	select {
	case <-c.run.again: // it is for this adapter
	default:
	}
	c.Adapter.(*plug).now.Store(&c.next.adapter) // each configured channel has one
	c.next, c.synced = nil, false
	st := &c.state
	st.duplicateOf, st.status, st.since = "", channels.Status{State: channels.Connecting}, c.now()
	if st.wasUp {
		st.wasUp, st.up = false, make(chan struct{})
	}
}

// Renewing says that a new adapter waits to be taken: what is known of the channel is of the former one.
func (c *Channel) Renewing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.next != nil
}
