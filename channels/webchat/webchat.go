// Package webchat is the chat in the browser: a page that the gateway serves, the live line between that page and the
// gateway, and the channel that both are. A message of the page is journalled as one of any network is; what the gateway
// says to a conversation, beside its transcript, goes to the pages of that person.
//
// It knows no session, no transcript and no right: who a page speaks for was judged before a line is served, and what a
// line follows is told by the Desk.
//
// Goroutines: a few per connected page, which end with it; Run waits for all of them.
package webchat

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"parley/channels"
)

// Network is this channel's name everywhere.
const Network channels.Network = "webchat"

// Person is who a page speaks for.
type Person struct {
	ID   string `json:"id"`
	Role string `json:"role"`
	Name string `json:"name"`
}

// Follow is a session that a page wants to follow.
type Follow struct {
	Key   string // of the session
	Was   string // id of the generation that After counts in; empty: unknown
	After int64  // sequence that the page has
}

// Stored is what became of a message that was journalled.
type Stored struct {
	InputID string  `json:"input_id"`
	RunID   *string `json:"run_id"` // null: it waits, or no run is needed
	Session string  `json:"session"`
}

// Put hands a frame to a page. It waits while the page is slow, and fails when the line has ended.
type Put func(frame any) error

// Desk is what the line needs of the gateway behind it. Its methods are called from many goroutines.
type Desk interface {
	// Follow sends the events of a session until ctx ends. An error is for the page.
	Follow(ctx context.Context, who Person, f Follow, put Put) error
	// Watch sends what else changes for the person until ctx ends.
	Watch(ctx context.Context, who Person, put Put) error
	// Place is the conversation that a message names: a session's name or its whole key, under an agent.
	Place(who Person, agent, session string) (channels.PeerID, error)
	// Stored tells what became of a message that Receive took. An error says that it was not let in.
	Stored(who Person, id channels.MessageID) (Stored, error)
	// File is what is known of an uploaded file of this person.
	File(who Person, ref string) (channels.Attachment, error)
	// Open reads an attachment of an Inbound.
	Open(ctx context.Context, a channels.Attachment) (io.ReadCloser, error)
	// Offer lets the person fetch a file, by the reference that it returns.
	Offer(who Person, f channels.File) (ref string, err error)
	// Takes says whether the address still takes posts. ErrGone: never again; ErrShut: no address does.
	Takes(to channels.Address) error
	// Problem is an error as the API shows it.
	Problem(err error) json.RawMessage
}

// Errors of Desk.Takes.
var (
	ErrGone = errors.New("nobody reads this conversation any more")
	ErrShut = errors.New("nobody can sign in")
)

// Options of the channel. Desk is needed.
type Options struct {
	Desk    Desk
	Hide    func([]byte) []byte // takes secrets out of what pages are sent, JSON; nil: nothing is hidden
	Log     *slog.Logger
	Now     func() time.Time
	Version string
	Boot    int64 // counts the starts of the gateway
	// AckWithin is how long a page may take to say that it shows a post; 0: 10 s.
	AckWithin time.Duration
	// PingEvery is how often a line is tried while it is silent; 0: 20 s.
	PingEvery time.Duration
	// SlowAfter is how long a page may leave no room for what it is to read; 0: 10 s.
	SlowAfter time.Duration
}

// Channel is WebChat. Run makes it live; the rest is safe for concurrent use at any time.
type Channel struct {
	opt   Options
	began chan struct{} // closed when Run begins for the first time

	mu    sync.Mutex
	ctx   context.Context // Run's; nil: it does not run
	in    channels.Intake
	fatal context.CancelCauseFunc
	lines map[*line]struct{}
	open  int           // lines whose page is there
	came  chan struct{} // closed and replaced when a page comes
	posts map[string]*posts
	wg    sync.WaitGroup // lines and who speaks to them
}

var (
	_ channels.Channel   = (*Channel)(nil)
	_ channels.Editor    = (*Channel)(nil)
	_ channels.Deleter   = (*Channel)(nil)
	_ channels.Typer     = (*Channel)(nil)
	_ channels.Opener    = (*Channel)(nil)
	_ channels.Describer = (*Channel)(nil)
)

// New makes the channel and does no IO.
func New(o Options) *Channel {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.AckWithin == 0 {
		o.AckWithin = 10 * time.Second
	}
	if o.PingEvery == 0 {
		o.PingEvery = 20 * time.Second
	}
	if o.SlowAfter == 0 {
		o.SlowAfter = 10 * time.Second
	}
	return &Channel{opt: o, began: make(chan struct{}), lines: map[*line]struct{}{}, came: make(chan struct{}), posts: map[string]*posts{}}
}

// Traits implements channels.Describer.
func (c *Channel) Traits() channels.Traits {
	return channels.Traits{Idempotent: true, Unit: channels.UTF16, Dialect: channels.Markdown, Buttons: true, EditEvery: 250 * time.Millisecond,
		TypingEvery: 4 * time.Second, MaxFile: maxFile, Local: true}
}

// maxFile is the largest file that goes either way, in bytes.
const maxFile = 20 << 20

// Run takes pages until ctx ends; then each is told and closed.
func (c *Channel) Run(ctx context.Context, in channels.Intake) error {
	run, fatal := context.WithCancelCause(ctx)
	defer fatal(nil)
	c.mu.Lock()
	c.ctx, c.in, c.fatal = run, in, fatal
	select {
	case <-c.began:
	default:
		close(c.began)
	}
	c.report(in)
	c.mu.Unlock()
	<-run.Done()
	c.mu.Lock()
	c.ctx = nil
	close(c.came) // nobody comes any more
	c.came = make(chan struct{})
	for l := range c.lines {
		l.end(errClosing)
	}
	c.mu.Unlock()
	c.wg.Wait()
	if ctx.Err() != nil {
		return nil
	}
	in.Report(channels.Status{State: channels.Failed, Cause: ErrShut.Error(), Hint: "Start the gateway again: it makes a token, and prints a link to sign in with."})
	return &channels.Error{Class: channels.Fatal, Err: ErrShut}
}

// report says whether anybody reads. The lock is held.
func (c *Channel) report(in channels.Intake) {
	if c.open > 0 {
		in.Report(channels.Status{State: channels.Ready})
		return
	}
	in.Report(channels.Status{State: channels.Idle, Cause: "no page is open", Hint: "`parley webchat` prints a link to sign in with."})
}

// Caps of lines.
const (
	maxLines   = 256 // of one person
	maxFollows = 64  // of one line
	allLines   = 1024
)

var (
	errFull    = errors.New("too many pages are open")
	errStopped = errors.New("webchat is not running")
)

// startWithin is how long a page waits for the channel to begin: the gateway listens a moment before its channels run.
const startWithin = 5 * time.Second

// enter counts a line in; leave must follow.
func (c *Channel) enter(l *line) error {
	wait, cancel := context.WithTimeout(l.ctx, startWithin)
	defer cancel()
	select {
	case <-c.began:
	case <-wait.Done():
		return errStopped
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx == nil {
		return errStopped
	}
	own := 0
	for other := range c.lines {
		if other.who.ID == l.who.ID {
			own++
		}
	}
	if own >= maxLines || len(c.lines) >= allLines {
		return errFull
	}
	c.lines[l] = struct{}{}
	c.wg.Add(1)
	return nil
}

// opened says that the line's page is there: from now on it is told things.
func (c *Channel) opened(l *line) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l.open = true
	if c.open++; c.open == 1 && c.ctx != nil {
		c.report(c.in)
	}
	close(c.came)
	c.came = make(chan struct{})
}

func (c *Channel) leave(l *line) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.lines, l)
	if l.open {
		if c.open--; c.open == 0 && c.ctx != nil {
			c.report(c.in)
		}
	}
	c.wg.Done()
}

// intake is Run's, with the context that ends with it.
func (c *Channel) intake() (context.Context, channels.Intake, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx == nil {
		return nil, nil, errStopped
	}
	return c.ctx, c.in, nil
}
