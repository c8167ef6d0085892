// Package intake is the way in. What a network delivered is judged (judge.go), bound to an agent and a session (bind.go), and
// journalled in one commit (accept.go); only then does the adapter acknowledge, and only then does anything act on it. What comes
// from inside, such as a message of the API, takes the same way (submit.go).
//
// It starts no goroutine.
package intake

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"parley/agentloop/lane"
	"parley/channels"
	"parley/configs"
	"parley/gateway/approval"
	"parley/gateway/delivery"
	"parley/gateway/live"
	"parley/gateway/snapshot"
	"parley/gateway/transcript"
	"parley/gateway/transport"
	"parley/workspace"
	"parley/workspace/store"
)

// refusalsKept is how many refused messages an hour of one sender are stored.
const refusalsKept = 20

// Store is the units and readers of the journal that a Receiver uses. *store.Store has them.
type Store interface {
	Accept(batch ...store.Arrival) ([]store.Accepted, error)
	InputByKey(source, account, key string) (workspace.Input, error)
	LastPairing(network channels.Network, account channels.AccountID, user channels.UserID) (workspace.Pairing, error)
	Newest(network channels.Network, account channels.AccountID) (map[channels.PeerID]channels.MessageID, error)
	IDs() *workspace.IDs
}

// Commands is what does the slash commands of the journal.
type Commands interface {
	// BeforeRouting says whether an input is a command that decides where the room's next message goes: it is done before that
	// one is judged.
	BeforeRouting(in workspace.Input) bool
	// Run does a command and returns after its commit.
	Run(ctx context.Context, in workspace.Input)
	// Start does a command beside the session's turns and does not wait. It is false for one that takes its place in the
	// session's order, which is for its lane to do.
	Start(ctx context.Context, in workspace.Input) bool
}

// Onward is where an input goes once it is stored.
type Onward struct {
	Lanes       *lane.Lanes
	Commands    Commands
	Outbox      *delivery.Outbox
	Stale       *delivery.Stale
	Transcripts *transcript.Cache
	Feed        *live.Feed
}

// Options of a Receiver; all of them are needed.
type Options struct {
	Store     Store
	Directory *Directory
	Channels  *transport.Channels
	Onward
	Snapshot   func() *snapshot.Snapshot // of the configuration in force
	Questions  *approval.Questions
	Overloaded func() bool // nothing more is taken for the moment
	Began      time.Time   // of the process: what was received before has waited through a restart
	Hide       *workspace.Redactor
	Now        func() time.Time
	Log        *slog.Logger
}

// Receiver takes in what people send. Safe for concurrent use.
type Receiver struct {
	Options
	inside   *transport.Channel // of what comes from inside: it has no room
	refusals *limiter

	accepted, duplicates, refused, shed atomic.Int64
}

// New makes a receiver, and the channel of what comes from inside.
func New(o Options) *Receiver {
	r := &Receiver{Options: o, refusals: newLimiter(refusalsKept, o.Now)}
	r.inside = transport.New(configs.Channel{Name: configs.API, Type: configs.API}, nil, o.Log, o.Now)
	o.Channels.Add(r.inside)
	return r
}

// Counts are the inputs since the start.
type Counts struct{ Accepted, Duplicates, Refused, Shed int64 }

// Counts are how many were stored, had been stored before, were refused by the gate, and were not taken for want of memory.
func (r *Receiver) Counts() Counts {
	return Counts{r.accepted.Load(), r.duplicates.Load(), r.refused.Load(), r.shed.Load()}
}

// For is the receiver as one channel sees it.
func (r *Receiver) For(ch *transport.Channel) channels.Intake { return channelIntake{r, ch} }

type channelIntake struct {
	r  *Receiver
	ch *transport.Channel
}

func (i channelIntake) Report(s channels.Status) {
	if s.State == channels.Ready && i.r.Channels.Duplicate(i.ch) {
		return // its end is told by the supervisor
	}
	i.ch.Report(s)
}

func (i channelIntake) Newest(context.Context) (map[channels.PeerID]channels.MessageID, error) {
	return i.r.Store.Newest(i.ch.Network, i.ch.Account())
}

// Receive journals a batch and returns after the commit.
func (i channelIntake) Receive(ctx context.Context, batch ...channels.Inbound) (err error) {
	defer func() {
		if err != nil {
			i.ch.Refused() // it comes again, however late
		}
	}()
	if !i.ch.Traits.Local {
		if i.r.Channels.Duplicate(i.ch) {
			return transport.ErrDuplicateAccount
		}
		if err := i.ch.Sync(i.r.bindAccounts); err != nil {
			return err
		}
	}
	_, err = i.r.receive(ctx, i.ch, batch...)
	return err
}
