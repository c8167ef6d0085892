package transport

import (
	"context"
	"errors"
	"slices"
	"sync"

	"parley/channels"
)

// ErrDuplicateAccount: two channels with one account would take each other's messages, and answer from two rooms.
var ErrDuplicateAccount = errors.New("another channel has this account")

// Channels is all channels of the gateway. Its list is complete before anything runs.
type Channels struct {
	list   []*Channel
	direct []*Channel // without an adapter: nothing of it connects

	mu     sync.Mutex
	owners map[account]string // the channel that an account is on
}

// account is one of a network's.
type account struct {
	network channels.Network
	id      channels.AccountID
}

// Add appends a channel, before any of them runs.
func (cs *Channels) Add(c *Channel) {
	if c.Adapter == nil {
		cs.direct = append(cs.direct, c)
		return
	}
	cs.list = append(cs.list, c)
}

// All lists the channels that have connections, as they are configured.
func (cs *Channels) All() []*Channel { return cs.list }

// Local lists the networks whose people are signed in at the gateway itself.
func (cs *Channels) Local() (list []channels.Network) {
	for _, c := range slices.Concat(cs.direct, cs.list) {
		if c.Traits.Local {
			list = append(list, c.Network)
		}
	}
	return list
}

// IsLocal says whether a network is one of them.
func (cs *Channels) IsLocal(n channels.Network) bool { return slices.Contains(cs.Local(), n) }

// Duplicate says whether another channel has the account that this one turned out to have, and ends its connection then.
// The first that is connected keeps it until it releases it or the gateway ends.
func (cs *Channels) Duplicate(c *Channel) bool {
	id := c.Account()
	if c.Traits.Local || id == "" {
		return false
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.owners == nil {
		cs.owners = map[account]string{}
	}
	at := account{c.Network, id}
	first, taken := cs.owners[at]
	if !taken {
		cs.owners[at] = c.Name
	}
	if !taken || first == c.Name {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state.duplicateOf = first
	if c.run.end != nil {
		c.run.end()
	}
	return true
}

// release lets another channel have an account that this one left.
func (cs *Channels) release(c *Channel, id channels.AccountID) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	at := account{c.Network, id}
	if cs.owners[at] == c.Name {
		delete(cs.owners, at)
	}
}

// Named is the channel with a name of the configuration; nil: there is none.
func (cs *Channels) Named(name string) *Channel {
	for _, c := range cs.list {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// Find is the channel that serves an address; nil: none does, or it has not connected yet.
func (cs *Channels) Find(a channels.Address) *Channel {
	for _, c := range cs.list {
		if c.Serves(a) {
			return c
		}
	}
	return nil
}

// Serving is the channel of an address, or the one that will turn out to be it once it has connected.
func (cs *Channels) Serving(a channels.Address) *Channel {
	if c := cs.Find(a); c != nil {
		return c
	}
	return cs.pending(a.Network)
}

// Ready says that the channel of an address can send now.
func (cs *Channels) Ready(a channels.Address) bool {
	c := cs.Find(a)
	return c != nil && c.Ready()
}

// Wait blocks until the channel of the address can send. It is false when ctx or the gateway ended, or when no
// configured channel has this account.
func (cs *Channels) Wait(ctx context.Context, ending <-chan struct{}, a channels.Address) (*Channel, bool) {
	for {
		c := cs.Serving(a) // accounts are known once connected
		if c == nil {
			return nil, false
		}
		up := c.Up()
		select {
		case <-up: // also when the gateway ends: what is ready goes out
		default:
			select {
			case <-ctx.Done():
				return nil, false
			case <-ending:
				return nil, false
			case <-up:
			}
		}
		if w, ok := channels.As[channels.Awaiter](c.Adapter); ok && w.Await(ctx, a) != nil {
			return nil, false
		}
		if c.Serves(a) {
			return c, true
		}
		if cs.Serving(a) == nil {
			return nil, false
		}
	}
}

// pending is a channel of the network that has not connected yet, so that its account is not known.
func (cs *Channels) pending(n channels.Network) *Channel {
	for _, c := range cs.list {
		if c.Network != n || c.Account() != "" {
			continue
		}
		c.mu.Lock()
		up := c.state.wasUp
		c.mu.Unlock()
		if !up { // one that is up and has no account will never tell it
			return c
		}
	}
	return nil
}
