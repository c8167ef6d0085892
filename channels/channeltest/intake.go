package channeltest

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"parley/channels"
)

// intake plays the gateway's bus: it takes what is offered, unless the check says otherwise.
type intake struct {
	mu       sync.Mutex
	changed  chan struct{} // closed and replaced at every change
	offers   []offer
	statuses []channels.Status
	restarts []error
	backfill bool // its network says that it is backfilled: of others the gateway keeps no newest message
	newest   map[channels.PeerID]channels.MessageID
	// answer decides over an offer; nil: take it. It is called without the lock and may block.
	answer   func(ctx context.Context, n int, batch []channels.Inbound) error
	released chan struct{}
}

// offer is one call of Receive.
type offer struct {
	batch []channels.Inbound
	err   error
}

func newIntake() *intake {
	return &intake{changed: make(chan struct{}), released: make(chan struct{}), newest: map[channels.PeerID]channels.MessageID{}}
}

// Receive implements channels.Intake.
func (in *intake) Receive(ctx context.Context, batch ...channels.Inbound) error {
	in.mu.Lock()
	answer, n := in.answer, len(in.offers)
	in.offers = append(in.offers, offer{slices.Clone(batch), errPending})
	in.notify()
	in.mu.Unlock()
	var err error
	if answer != nil {
		err = answer(ctx, n, batch)
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.offers[n].err = err
	if err == nil {
		for _, m := range batch {
			if in.backfill && m.Kind == channels.KindMessage {
				in.newest[m.To.Peer] = m.ID
			}
		}
	}
	in.notify()
	return err
}

// errPending marks an offer that is not answered yet, or that panicked.
var errPending = fmt.Errorf("not answered")

// Newest implements channels.Intake.
func (in *intake) Newest(context.Context) (map[channels.PeerID]channels.MessageID, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	m := map[channels.PeerID]channels.MessageID{}
	for k, v := range in.newest {
		m[k] = v
	}
	return m, nil
}

// Report implements channels.Intake.
func (in *intake) Report(s channels.Status) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.statuses = append(in.statuses, s)
	in.notify()
}

// notify wakes all waiters. The caller holds in.mu.
func (in *intake) notify() {
	close(in.changed)
	in.changed = make(chan struct{})
}

func (in *intake) restarted(err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.restarts = append(in.restarts, err)
	in.notify()
}

// decide sets how offers are answered from now on; n counts offers from 0.
func (in *intake) decide(f func(ctx context.Context, n int, batch []channels.Inbound) error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.answer = f
}

// release lets answers that block on released go.
func (in *intake) release() {
	in.mu.Lock()
	defer in.mu.Unlock()
	select {
	case <-in.released:
	default:
		close(in.released)
	}
}

// renew is a new process: what was journalled stays, statuses and decisions go.
func (in *intake) renew() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.statuses, in.answer, in.released = nil, nil, make(chan struct{})
}

// wait blocks until cond holds; false: ctx ended first.
func (in *intake) wait(ctx context.Context, cond func() bool) bool {
	for {
		in.mu.Lock()
		changed := in.changed
		in.mu.Unlock()
		if cond() {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// taken are the inbounds of all offers that were answered with nil, in order.
func (in *intake) taken() []channels.Inbound {
	in.mu.Lock()
	defer in.mu.Unlock()
	var all []channels.Inbound
	for _, o := range in.offers {
		if o.err == nil {
			all = append(all, o.batch...)
		}
	}
	return all
}

// offered are all calls of Receive.
func (in *intake) offered() []offer {
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.Clone(in.offers)
}

func (in *intake) state(s channels.State) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.ContainsFunc(in.statuses, func(st channels.Status) bool { return st.State == s })
}

func (in *intake) statusText() string {
	in.mu.Lock()
	defer in.mu.Unlock()
	text := ""
	for _, s := range in.statuses {
		text += fmt.Sprintf("%+v %v\n", s, s.Err)
	}
	for _, err := range in.restarts {
		text += fmt.Sprintf("%v %+v\n", err, err)
	}
	return text
}

func (in *intake) summary() string {
	in.mu.Lock()
	defer in.mu.Unlock()
	text := fmt.Sprintf("%d offers", len(in.offers))
	for i, o := range in.offers {
		if i == 8 {
			text += " …"
			break
		}
		for _, m := range o.batch {
			text += fmt.Sprintf(" [%s %s %s %q]", m.Kind, m.To, m.ID, m.Text)
		}
	}
	for _, s := range in.statuses {
		text += fmt.Sprintf(" <%s %s>", s.State, s.Cause)
	}
	for _, err := range in.restarts {
		text += fmt.Sprintf(" (Run returned: %v)", err)
	}
	return text
}

func (in *intake) reports() []channels.Status {
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.Clone(in.statuses)
}

func (in *intake) failures() []error {
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.Clone(in.restarts)
}
