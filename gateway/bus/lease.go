// Leases: what one process alone may do.

package bus

import "context"

// Lease lets its holder do what one process alone may do.
type Lease struct {
	// Epoch is the holder's boot in the store: what is written under the lease is to be refused under an older one. Within one
	// process nobody asks for it: all that it writes stands under the store's own epoch, which the store compares with the database's,
	// so that a process that is not the newest writes nothing. It is for a bus whose holders have one store between them.
	Epoch int64

	bus  *Bus
	name string
	ctx  context.Context
	end  context.CancelFunc
	free chan struct{} // closed by Release
}

// Lease waits until nobody else has the lease of this name, or ctx ends; then its error is returned. Release must follow.
func (b *Bus) Lease(ctx context.Context, name string) (*Lease, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		b.mu.Lock()
		holder := b.leases[name]
		if holder == nil {
			l := &Lease{Epoch: b.epoch, bus: b, name: name, free: make(chan struct{})}
			l.ctx, l.end = context.WithCancel(ctx)
			b.leases[name] = l
			b.mu.Unlock()
			return l, nil
		}
		b.mu.Unlock()
		select {
		case <-holder.free:
		case <-ctx.Done():
		}
	}
}

// Context ends when the lease does: with the context that it was asked with, or with Release. Its holder stops then.
func (l *Lease) Context() context.Context { return l.ctx }

// Release lets the next one have it. Twice is fine.
func (l *Lease) Release() {
	l.end()
	l.bus.mu.Lock()
	defer l.bus.mu.Unlock()
	if l.bus.leases[l.name] == l {
		delete(l.bus.leases, l.name)
		close(l.free)
	}
}

// Alone waits for the lease of that name and does f under it. It returns when f has, or when ctx ended before it began.
func (b *Bus) Alone(ctx context.Context, name string, f func(context.Context)) {
	l, err := b.Lease(ctx, name)
	if err != nil {
		return
	}
	defer l.Release()
	f(l.Context())
}
