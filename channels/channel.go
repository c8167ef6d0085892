// Package channels holds the nouns that travel — an address, an inbound message, a post — and the contract
// between the gateway and a network. It is a leaf: it imports nothing of Parley's and owns no goroutine.
//
// An adapter (channels/telegram and its neighbours) owns its connection and nothing else: no task, no model,
// no transcript. It normalises what arrives into Inbound values and hands them to an Intake; it sends exactly
// one network message per Send. Splitting, retrying, pacing and deduplication are the gateway's.
package channels

import (
	"context"
	"io"
	"net/http"
	"time"
)

// Channel is what every network must do. All else is optional and asked for with As.
type Channel interface {
	// Run connects, receives and reconnects until ctx ends; it blocks, owns every goroutine it starts, and
	// returns only after they have ended. It returns nil after ctx ended. A *Error of class Fatal ends
	// supervision (wrong token, removed account); any other error is retried with backoff by the supervisor.
	Run(ctx context.Context, in Intake) error
	// Send sends one network message, already cut and rendered. It may block for one network round trip.
	// A nil error means that the network answered with the id. Errors are classified with *Error; what is
	// not classified counts as Unknown: it may have been sent.
	Send(ctx context.Context, p Post) (MessageID, error)
}

// Intake is the publishing side of the bus, made for one channel. Safe for concurrent use.
type Intake interface {
	// Receive journals the batch in one commit. nil means durable: acknowledge the network. ErrBusy and
	// ErrUnwritable mean that nothing was taken: do not acknowledge, offer the same batch again later.
	Receive(ctx context.Context, batch ...Inbound) error
	// Newest is the newest journalled message of every known room, for networks that are backfilled (Traits.Backfill).
	Newest(ctx context.Context) (map[PeerID]MessageID, error)
	// Report tells the state of the connection. It never blocks.
	Report(Status)
}

// Editor replaces the text of a message that was sent. Editing to the same text is a success.
type Editor interface {
	Edit(ctx context.Context, id MessageID, p Post) error
}

// Deleter removes a message that was sent. Deleting what is gone is a success.
type Deleter interface {
	Delete(ctx context.Context, to Address, id MessageID) error
}

// Streamer is for append-only networks. Such a stream never rewrites what was sent; once it is closed, and also after a
// crash that left it open, an Edit of its id gives the message its final text. A BadMessage says that no stream may be
// opened there: the core sends and edits an ordinary message instead. The text of the post may be empty.
type Streamer interface {
	Stream(ctx context.Context, p Post) (Stream, error)
}

// Stream is an open append-only message.
type Stream interface {
	ID() MessageID
	Append(ctx context.Context, text string) error
	Close(ctx context.Context, rest string) error
}

// Finder looks for a post that may have been sent since the given time, by its token. sure says that an
// absence can be relied on.
type Finder interface {
	Find(ctx context.Context, p Post, since time.Time) (id MessageID, found, sure bool, err error)
}

// Typer shows that an answer is being worked on. The core repeats it as often as Traits.TypingEvery says.
// Its errors are never more than a debug line.
type Typer interface {
	ShowTyping(ctx context.Context, to Address) error
}

// Awaiter is for networks whose people come and go: Await blocks until what is sent to the address can be seen, or ctx
// ends. The core calls it before Send.
type Awaiter interface {
	Await(ctx context.Context, to Address) error
}

// Reactor puts a reaction on a message; the empty emoji removes ours.
type Reactor interface {
	React(ctx context.Context, to Address, id MessageID, emoji string) error
}

// Opener opens an attachment by the reference that the adapter put into it. It refuses what is larger than
// its Size says before reading, with ErrTooLarge; other errors are classified (Error), where Unknown may be tried again.
type Opener interface {
	Open(ctx context.Context, a Attachment) (io.ReadCloser, error)
}

// Historian reads the root and the last n messages of a thread, oldest first.
type Historian interface {
	History(ctx context.Context, a Address, n int) ([]Inbound, error)
}

// MenuPublisher offers the command names to the network's own menu.
type MenuPublisher interface {
	PublishMenu(ctx context.Context, items []MenuItem) error
}

// Linker signs the account in (WhatsApp's QR, a phone code) and out.
type Linker interface {
	Login(ctx context.Context, how LoginHow, show func(LoginStep)) error
	Logout(ctx context.Context) error
}

// Checker examines credentials and settings for `parley doctor` and `parley channel test`.
type Checker interface {
	Check(ctx context.Context) []Finding
}

// Mounter serves HTTP under /channels/<name>/ of the one listener. Its handler authenticates by itself.
type Mounter interface {
	Handler() http.Handler
}

// Describer states the network's limits. An adapter without it gets the zero Traits.
type Describer interface {
	Traits() Traits
}

// Accounter tells the network's own immutable id of the bot; empty until it is known.
type Accounter interface {
	Account() AccountID
}

// As finds C in ch or in what it wraps. A plain assertion would see the outermost decorator only.
func As[C any](ch Channel) (C, bool) {
	for ch != nil {
		if c, ok := ch.(C); ok {
			return c, true
		}
		w, ok := ch.(interface{ Unwrap() Channel })
		if !ok {
			break
		}
		ch = w.Unwrap()
	}
	var none C
	return none, false
}
