package transport

import (
	"context"
	"slices"
	"sync"

	"parley/channels"
)

// Run supervises the channels until ctx ends, and those that Apply adds. One that was removed ends after what it is sending,
// and gives its account free before a new one begins.
func (cs *Channels) Run(ctx context.Context, intake func(*Channel) channels.Intake) {
	var wg sync.WaitGroup
	defer wg.Wait()
	running := map[*Channel]func(){} // with what ends them
	for {
		list := cs.All()
		cs.end(running, list)
		for _, c := range list {
			if running[c] == nil {
				running[c] = cs.begin(ctx, &wg, c, intake(c))
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-cs.changed:
		}
	}
}

// begin supervises a channel and returns what ends that.
func (cs *Channels) begin(ctx context.Context, wg *sync.WaitGroup, c *Channel, in channels.Intake) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	over := make(chan struct{})
	wg.Go(func() {
		defer close(over)
		supervise := func(ctx context.Context) { c.Supervise(ctx, in) }
		if c.Traits.Local { // its people come to each process
			supervise(ctx)
			return
		}
		cs.opt.Alone(ctx, "channel "+c.Name, supervise)
	})
	if m, ok := channels.As[channels.MenuPublisher](c.Adapter); ok {
		wg.Go(func() { cs.publishMenu(ctx, c, m) })
	}
	return func() {
		if p, ok := c.Adapter.(*plug); ok {
			select {
			case <-p.close():
			case <-ctx.Done():
			}
		}
		cancel()
		<-over
	}
}

// end ends the channels that run and are not on the list.
func (cs *Channels) end(running map[*Channel]func(), list []*Channel) {
	var wg sync.WaitGroup
	for c, end := range running {
		if !slices.Contains(list, c) {
			delete(running, c)
			wg.Go(func() {
				end()
				cs.vacate(c)
			})
		}
	}
	wg.Wait()
}

func (cs *Channels) publishMenu(ctx context.Context, c *Channel, m channels.MenuPublisher) {
	select {
	case <-ctx.Done():
	case <-c.Up():
		if err := m.PublishMenu(ctx, cs.opt.Menu); err != nil && ctx.Err() == nil {
			c.Log.Warn("command menu is not published", "err", err)
		}
	}
}
