// Package progress is what rooms are shown of a turn while it runs: that somebody types, a placeholder, the answer as it
// grows, why nothing happens. None of it is the record: it may be lost, and the answer itself is delivery's.
//
// Goroutines: one for each turn, from what is shown first on, for which Progress.Stop waits, and one for each Typing.
package progress

import (
	"context"
	"sync"
	"time"

	"parley/channels"
	"parley/gateway/delivery"
	"parley/gateway/transport"
	"parley/workspace"
	"parley/workspace/store"
	"parley/workspace/workers"
)

// Store is the one unit that is used: it stores a placeholder. *store.Store has it.
type Store interface {
	Outbound(list ...store.NewOutbound) ([]workspace.Outbound, error)
}

// Options of a Display; all of them are needed.
type Options struct {
	Store    Store
	Delivery *delivery.Outbox
	Channels *transport.Channels
	Hide     *workspace.Redactor
	Now      func() time.Time
}

// Display is by what all turns show their progress. Safe for concurrent use.
type Display struct {
	Options
	base context.Context
}

// New makes a display that shows nothing more once base has ended.
func New(base context.Context, o Options) *Display { return &Display{Options: o, base: base} }

// Typing is shown in a room from after on, until the returned function is called.
func (d *Display) Typing(ctx context.Context, room workspace.RoomID, after time.Duration) (stop func()) {
	addr, err := d.Delivery.Address(room)
	if room == "" || err != nil {
		return func() {}
	}
	c := d.Channels.Find(addr)
	if c == nil || c.Traits.TypingEvery <= 0 {
		return func() {}
	}
	typer, ok := channels.As[channels.Typer](c.Adapter)
	if !ok {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer workers.Guard(c.Log, "typing")
		for wait := after; channels.Sleep(ctx, wait); wait = c.Traits.TypingEvery {
			if err := typer.ShowTyping(ctx, addr); err != nil {
				c.Log.Debug("typing cannot be shown", "err", err)
			}
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}
