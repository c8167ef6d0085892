package transport

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"parley/channels"
	"parley/configs"
)

// ErrDuplicateAccount: two channels with one account would take each other's messages, and answer from two rooms.
var ErrDuplicateAccount = errors.New("another channel has this account")

// Options of Channels.
type Options struct {
	Build func(configs.Channel) (channels.Channel, error) // makes an adapter; nil: the network is not built in
	Menu  []channels.MenuItem                             // what networks show of the commands
	// Alone calls a function while this process alone may do what it does; nil: it always may.
	Alone func(ctx context.Context, what string, f func(context.Context))
	Log   *slog.Logger
	Now   func() time.Time
}

// Channels is all channels of the gateway. A zero one has none but those that are added.
type Channels struct {
	opt     Options
	list    atomic.Pointer[[]*Channel] // with connections; replaced as a whole
	fixed   []*Channel                 // that are always there
	changed chan struct{}              // holds one: the list is another than that which runs

	mu     sync.Mutex
	owners map[account]string // the channel that an account is on
}

// NewChannels makes none yet: Prepare and Apply do, of a configuration.
func NewChannels(o Options) *Channels {
	if o.Alone == nil {
		o.Alone = func(ctx context.Context, _ string, f func(context.Context)) { f(ctx) }
	}
	return &Channels{opt: o, changed: make(chan struct{}, 1)}
}

// account is one of a network's.
type account struct {
	network channels.Network
	id      channels.AccountID
}

// Add appends a channel that is always there, whatever is configured, before any of them runs.
func (cs *Channels) Add(c *Channel) {
	cs.fixed = append(cs.fixed, c)
	if c.Adapter == nil { // nothing of it connects
		return
	}
	list := append(slices.Clone(cs.All()), c)
	cs.list.Store(&list)
}

// All lists the channels that have connections: as they are configured, and behind them those that are always there. The
// list is never changed, but replaced.
func (cs *Channels) All() []*Channel {
	if list := cs.list.Load(); list != nil {
		return *list
	}
	return nil
}

// Views are the states of all, for people.
func (cs *Channels) Views() (list []View) {
	for _, c := range cs.All() {
		list = append(list, c.View())
	}
	return list
}

// Local lists the networks whose people are signed in at the gateway itself.
func (cs *Channels) Local() (list []channels.Network) {
	for _, c := range slices.Concat(cs.fixed, cs.All()) {
		if c.Traits.Local && !slices.Contains(list, c.Network) {
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

// vacate gives free what a channel that has ended had. Whom it kept out as a duplicate connects now.
func (cs *Channels) vacate(c *Channel) {
	cs.mu.Lock()
	for at, name := range cs.owners {
		if name == c.Name {
			delete(cs.owners, at)
		}
	}
	cs.mu.Unlock()
	for _, other := range cs.All() {
		other.admit(c.Name)
	}
}

// Named is the channel with a name of the configuration; nil: there is none.
func (cs *Channels) Named(name string) *Channel {
	for _, c := range cs.All() {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// Find is the channel that serves an address; nil: none does, or it has not connected yet.
func (cs *Channels) Find(a channels.Address) *Channel {
	for _, c := range cs.All() {
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
			case <-c.removed:
				continue
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
	for _, c := range cs.All() {
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
