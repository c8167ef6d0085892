package transport

import (
	"time"

	"parley/channels"
)

// CatchUp is how long after a connection began, or events were refused, what comes may be from before.
const CatchUp = 5 * time.Minute

// state is what is known of a connection, guarded by the channel's lock.
type state struct {
	status      channels.Status
	since       time.Time
	wasUp       bool          // ready at least once, and not failed since
	up          chan struct{} // closed while wasUp
	held        time.Time     // the whole account waits until then
	refused     time.Time     // when events were refused last: what comes next may be from then
	duplicateOf string        // the channel that has this account already; empty: none
}

func newState(now time.Time) state {
	return state{status: channels.Status{State: channels.Connecting}, since: now, up: make(chan struct{})}
}

// Report stores the state that the adapter tells.
func (c *Channel) Report(s channels.Status) {
	c.mu.Lock()
	st := &c.state
	changed := st.status.State != s.State
	if changed {
		st.since = c.now()
	}
	st.status = s
	switch {
	case (s.State == channels.Ready || s.State == channels.Idle) && !st.wasUp:
		st.wasUp = true
		close(st.up)
	case s.State == channels.Failed && st.wasUp:
		st.wasUp = false
		st.up = make(chan struct{})
	}
	c.mu.Unlock()
	if changed {
		c.say(s)
	}
}

// say logs a state as loud as it is bad, and only what there is to say.
func (c *Channel) say(s channels.Status) {
	log, said := c.Log.Info, []any{"state", string(s.State)}
	switch s.State {
	case channels.Failed:
		log = c.Log.Error
	case channels.Needs, channels.Deaf:
		log = c.Log.Warn
	case channels.Ready, channels.Idle:
		if c.Traits.Local { // a page that is opened and closed is no news
			log = c.Log.Debug
		}
	}
	if s.Cause != "" {
		said = append(said, "cause", s.Cause)
	} else if s.Err != nil {
		said = append(said, "err", s.Err)
	}
	if s.Hint != "" {
		said = append(said, "hint", s.Hint)
	}
	log("channel state", said...)
}

// Up is closed while the channel is connected, or was and has not failed since.
func (c *Channel) Up() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.up
}

// Ready says that the channel can send now.
func (c *Channel) Ready() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.wasUp && !c.now().Before(c.state.held)
}

// Refused notes that events were not taken: the network offers them once more, however late.
func (c *Channel) Refused() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state.refused = c.now()
}

// CatchingUp says that what comes may have waited at the network: the channel is not connected, or has been for a moment only.
func (c *Channel) CatchingUp() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	since := c.state.since
	if c.state.refused.After(since) {
		since = c.state.refused
	}
	return c.state.status.State != channels.Ready || c.now().Sub(since) < CatchUp
}

// Hold has the whole account wait.
func (c *Channel) Hold(until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if until.After(c.state.held) {
		c.state.held = until
	}
}

// HeldUntil is until when the account waits.
func (c *Channel) HeldUntil() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.held
}

// Suspect notes that the account itself was refused on a send; Run will find out for itself.
func (c *Channel) Suspect(err error) {
	c.Log.Error("the network refuses this account", "err", err)
	c.Hold(c.now().Add(30 * time.Second))
}

// admit has a channel connect that was kept out since the named one had its account.
func (c *Channel) admit(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state.duplicateOf == name {
		c.state.duplicateOf = ""
		c.wake()
	}
}

// duplicateOf is the channel that has this account already.
func (c *Channel) duplicateOf() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.duplicateOf
}
