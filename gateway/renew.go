package gateway

import (
	"context"
	"fmt"
	"reflect"
	"sync/atomic"

	"parley/channels"
	"parley/configs"
)

// A channel whose own keys changed (its token was rotated, say, in the configuration or in a file that it names) gets a new
// adapter: the connection at hand ends, and the next one is the new adapter's. What is to be sent meanwhile waits, what
// the network has comes when it is connected again; the other channels notice nothing.

// plug is the adapter of a line, which can be replaced.
type plug struct {
	now atomic.Pointer[channels.Channel]
}

var _ channels.Channel = (*plug)(nil)

func plugged(ch channels.Channel) *plug {
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

// renewal is an adapter that is to take a line over, with what it was made of.
type renewal struct {
	channel channels.Channel
	options any
}

// renewals makes anew the adapters whose own keys changed. An account that is linked in the data directory has no such
// keys that a person would rotate: it waits for a restart.
func (g *Gateway) renewals(c *configs.Config) (map[*line]renewal, error) {
	list := map[*line]renewal{}
	for _, conf := range c.Channels {
		l := g.lines.byName(conf.Name)
		if l == nil || string(l.network) != conf.Type || reflect.DeepEqual(l.options, conf.Options) {
			continue
		}
		if _, linked := channels.As[channels.Linker](l.channel); linked {
			l.log.Warn("changed keys of the channel wait for a restart")
			continue
		}
		ch, err := g.newChannel(conf, c.DataDir)
		if err != nil {
			return nil, err
		}
		if ch != nil {
			list[l] = renewal{ch, conf.Options}
		}
	}
	return list, nil
}

// newChannel makes the adapter of a configured channel; nil: its network is not built in.
func (g *Gateway) newChannel(conf configs.Channel, dir string) (channels.Channel, error) {
	for _, f := range g.opt.Channels {
		if string(f.Network) != conf.Type {
			continue
		}
		ch, err := f.New(conf.Name, conf.Options, channels.Deps{Log: g.log.With("channel", conf.Name), HTTP: g.http, Clock: clock(g.opt.Now), Dir: dir})
		if err != nil {
			return nil, fmt.Errorf("channel %q: %w", conf.Name, err)
		}
		return ch, nil
	}
	return nil, nil
}

// renew ends the connection at hand; the supervisor goes on with the new adapter.
func (l *line) renew(r renewal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next, l.options = r.channel, r.options
	l.log.Info("the channel connects anew, with changed keys")
	if l.runs {
		l.end() // the supervisor sees next
		return
	}
	select {
	case l.again <- struct{}{}:
	default:
	}
}

// adopt takes the new adapter, if there is one. Nothing is sent until it is connected.
func (l *line) adopt() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next == nil {
		return
	}
	select {
	case <-l.again: // it is for this adapter
	default:
	}
	next := l.next
	l.channel.(*plug).now.Store(&next) // each configured line has one
	l.next, l.twin, l.synced = nil, "", false
	l.status, l.since = channels.Status{State: channels.Connecting}, l.now()
	if l.wasUp {
		l.wasUp, l.up = false, make(chan struct{})
	}
}

// renewing says that a new adapter waits to be taken.
func (l *line) renewing() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next != nil
}
