package transport

import (
	"context"
	"reflect"
	"sync/atomic"

	"parley/channels"
	"parley/configs"
)

// A channel whose own keys changed (its token was rotated, say, in the configuration or in a file that it names) gets a new
// adapter: the connection at hand ends, and the next one is the new adapter's. What is to be sent meanwhile waits, what
// the network has comes when it is connected again; the other channels notice nothing.

// plug is the adapter of a channel, which can be replaced.
type plug struct {
	now atomic.Pointer[channels.Channel]
}

var _ channels.Channel = (*plug)(nil)

// Replaceable wraps an adapter so that Renew can replace it.
func Replaceable(ch channels.Channel) channels.Channel {
	p := &plug{}
	p.now.Store(&ch)
	return p
}

// Unwrap is the adapter at the moment.
func (p *plug) Unwrap() channels.Channel { return *p.now.Load() }

// Run is the adapter's, of the moment when it begins.
func (p *plug) Run(ctx context.Context, in channels.Intake) error { return p.Unwrap().Run(ctx, in) }

// Send is the adapter's.
func (p *plug) Send(ctx context.Context, post channels.Post) (channels.MessageID, error) {
	return p.Unwrap().Send(ctx, post)
}

// Renewal is an adapter that is to take a channel over, with what it was made of.
type Renewal struct {
	adapter channels.Channel
	options any
}

// Renewals makes new adapters for the channels whose own keys changed. An account that is linked in the data directory has no such
// keys that a person would rotate: it waits for a restart. build gives nil for a network that is not built in.
func (cs *Channels) Renewals(list []configs.Channel, build func(configs.Channel) (channels.Channel, error)) (map[*Channel]Renewal, error) {
	out := map[*Channel]Renewal{}
	for _, conf := range list {
		c := cs.Named(conf.Name)
		if c == nil || string(c.Network) != conf.Type || reflect.DeepEqual(c.options, conf.Options) {
			continue
		}
		if _, linked := channels.As[channels.Linker](c.Adapter); linked {
			c.Log.Warn("changed keys of the channel wait for a restart")
			continue
		}
		adapter, err := build(conf)
		if err != nil {
			return nil, err
		}
		if adapter != nil {
			out[c] = Renewal{adapter, conf.Options}
		}
	}
	return out, nil
}

// Renew ends the connection at hand and gives its account free; the supervisor goes on with the new adapter.
func (cs *Channels) Renew(c *Channel, r Renewal) {
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

// renewing says that a new adapter waits to be taken.
func (c *Channel) renewing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.next != nil
}
