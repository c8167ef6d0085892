// Package transport is the configured channels with their connections: which adapter serves an address, whether it can send, how
// it is supervised, renewed with changed keys, linked to an account, and by which id a conversation goes that the network
// has moved.
//
// Goroutines: one for each channel, and one until its menu is published, for which Channels.Run waits; one for each attempt to
// link a channel, for which Logins.Stop does.
package transport

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"parley/channels"
	"parley/configs"
	"parley/routes"
)

// RepeatMark stands before a part that may have been sent before. What a channel takes in one message leaves room for it.
const RepeatMark = "(maybe a repeat) "

// Channel is one configured channel with what is known of its connection. Safe for concurrent use.
type Channel struct {
	Name    string
	Network channels.Network
	Adapter channels.Channel // nil: messages of HTTP, which have no room
	Traits  channels.Traits
	Log     *slog.Logger

	removed chan struct{} // closed once it is not configured any more
	now     func() time.Time
	mu      sync.Mutex
	access  routes.Access
	streams bool     // answers grow by edits
	synced  bool     // the configured people are bound to this account
	options any      // what the adapter was made of
	next    *renewal // that is to take over; nil: none
	state   state
	run     run
}

// View tells people how a channel is.
type View struct {
	Name    string         `json:"name"`
	Network string         `json:"type"`
	Account string         `json:"account,omitempty"`
	State   channels.State `json:"state"`
	Since   time.Time      `json:"since"`
	Cause   string         `json:"cause,omitempty"`
	Hint    string         `json:"hint,omitempty"`
}

// New makes a channel that is not connected yet. One without an adapter is that of HTTP, which never is.
func New(c configs.Channel, adapter channels.Channel, log *slog.Logger, now func() time.Time) *Channel {
	ch := &Channel{Name: c.Name, Network: channels.Network(c.Type), Adapter: adapter, streams: c.Stream != "off",
		Log: log.With("channel", c.Name), removed: make(chan struct{}), now: now, access: access(c.Access), options: c.Options,
		state: newState(now()), run: run{again: make(chan struct{}, 1)}}
	if d, ok := channels.As[channels.Describer](adapter); ok {
		ch.Traits = d.Traits()
	}
	if adapter == nil { // who asks over HTTP was judged by its listener
		ch.Traits.Local = true
	}
	if ch.Traits.MaxUnits > 0 {
		ch.Traits.MaxUnits -= len(RepeatMark)
	}
	return ch
}

func access(a configs.Access) routes.Access {
	return routes.Access{DM: a.DM, Groups: a.Groups, Allow: a.Allow, RequireMention: a.RequireMention}
}

// Account is the network's id of the channel's own account; empty while it is not known.
func (c *Channel) Account() channels.AccountID {
	if a, ok := channels.As[channels.Accounter](c.Adapter); ok {
		return a.Account()
	}
	return ""
}

// Serves says whether the address is one of this channel's.
func (c *Channel) Serves(a channels.Address) bool {
	return c.Network == a.Network && (c.Traits.Local || c.Account() == a.Account && c.duplicateOf() == "")
}

// configure puts in force what may change while the channel runs, and has the configured people bound to the account once more.
func (c *Channel) configure(conf configs.Channel) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.access, c.streams, c.synced = access(conf.Access), conf.Stream != "off", false
}

// Streams says that answers grow by edits.
func (c *Channel) Streams() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.streams && !c.Traits.Whole
}

// Historian tells what was said in a thread, where the network can be asked that: a session in one begins with it. No channel
// has none.
func (c *Channel) Historian(in channels.Address) (channels.Historian, bool) {
	if c == nil || in.Thread == "" {
		return nil, false
	}
	return channels.As[channels.Historian](c.Adapter)
}

// Access is who may speak.
func (c *Channel) Access() routes.Access {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.access
}

// Sync calls bind once per connection's account and configuration. It fails for a channel that was removed: nobody is
// configured for it.
func (c *Channel) Sync(bind func(*Channel) error) error {
	select {
	case <-c.removed:
		return errRemoved
	default:
	}
	c.mu.Lock()
	synced := c.synced
	c.mu.Unlock()
	if synced {
		return nil
	}
	if err := bind(c); err != nil {
		return err
	}
	c.mu.Lock()
	c.synced = true
	c.mu.Unlock()
	return nil
}

// View tells the channel's state.
func (c *Channel) View() View {
	account := string(c.Account()) // the adapter has locks of its own
	c.mu.Lock()
	defer c.mu.Unlock()
	return View{Name: c.Name, Network: string(c.Network), Account: account, State: c.state.status.State, Since: c.state.since,
		Cause: c.state.status.Cause, Hint: c.state.status.Hint}
}

// Check asks the network about the account.
func (c *Channel) Check(ctx context.Context) []channels.Finding {
	checker, ok := channels.As[channels.Checker](c.Adapter)
	if !ok {
		return []channels.Finding{{OK: true, What: "there is nothing to check (" + string(c.Network) + ")"}}
	}
	return checker.Check(ctx)
}
