package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"parley/channels"
	"parley/configs"
	"parley/routes"
)

// line is one configured channel with what is known of its connection.
type line struct {
	name    string
	network channels.Network
	channel channels.Channel
	traits  channels.Traits
	local   bool // its people go by their own ids and read their transcripts: answers are not sent to it besides
	stream  bool // answers grow by edits
	log     *slog.Logger
	now     func() time.Time

	mu     sync.Mutex
	access routes.Access
	status channels.Status
	since  time.Time
	wasUp  bool          // ready at least once, and not failed since
	up     chan struct{} // closed while wasUp
	held   time.Time     // the whole account waits
	late   time.Time     // when events were refused last: what comes next may be from then
	synced bool          // the configured people are bound to this account
	twin   string        // the channel that has this account already; empty: none
	end    func()        // ends the connection at hand
	runs   bool          // the channel's Run is under way: it sees by itself that it was linked
	again  chan struct{} // it was linked anew while it did not run, or gets another adapter; holds one

	options any              // what the adapter was made of
	next    channels.Channel // that is to take over; nil: none
}

// LineView is a line's state for people.
type LineView struct {
	Name, Network, Account string
	State                  channels.State
	Since                  time.Time
	Cause, Hint            string
}

func newLine(c configs.Channel, ch channels.Channel, log *slog.Logger, now func() time.Time) *line {
	l := &line{name: c.Name, network: channels.Network(c.Type), channel: ch, options: c.Options, stream: c.Stream != "off", log: log.With("channel", c.Name), now: now, local: c.Type == webchatName || c.Type == apiName,
		access: access(c.Access), status: channels.Status{State: channels.Connecting}, since: now(), up: make(chan struct{}), again: make(chan struct{}, 1)}
	if d, ok := channels.As[channels.Describer](ch); ok {
		l.traits = d.Traits()
	}
	l.stream = l.stream && !l.traits.Whole
	if l.traits.MaxUnits > 0 {
		l.traits.MaxUnits -= len(repeatMark) // a part may have to go once more with the mark before it
	}
	return l
}

func access(a configs.Access) routes.Access {
	return routes.Access{DM: a.DM, Groups: a.Groups, Allow: a.Allow, RequireMention: a.RequireMention}
}

func (l *line) account() channels.AccountID {
	if a, ok := channels.As[channels.Accounter](l.channel); ok {
		return a.Account()
	}
	return ""
}

// serves says whether the address is one of this channel's.
func (l *line) serves(a channels.Address) bool {
	return l.network == a.Network && (l.local || l.account() == a.Account && l.rival() == "")
}

// errTwin: two channels with one account would take each other's messages, and answer from two rooms.
var errTwin = errors.New("another channel has this account")

// usurps says whether another channel has the account that this one turned out to have, and ends its connection then.
// The first that is connected keeps it until the gateway ends.
func (ls *lines) usurps(l *line) bool {
	account := l.account()
	if l.local || account == "" {
		return false
	}
	ls.claims.Lock()
	defer ls.claims.Unlock()
	if ls.owner == nil {
		ls.owner = map[claimed]string{}
	}
	at := claimed{l.network, account}
	first, taken := ls.owner[at]
	if !taken {
		ls.owner[at] = l.name
	}
	if !taken || first == l.name {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.twin = first
	if l.end != nil {
		l.end()
	}
	return true
}

// report stores the state that the adapter tells.
func (l *line) report(s channels.Status) {
	l.mu.Lock()
	changed := l.status.State != s.State
	if changed {
		l.since = l.now()
	}
	l.status = s
	switch {
	case (s.State == channels.Ready || s.State == channels.Idle) && !l.wasUp:
		l.wasUp = true
		close(l.up)
	case s.State == channels.Failed && l.wasUp:
		l.wasUp = false
		l.up = make(chan struct{})
	}
	l.mu.Unlock()
	if changed {
		l.say(s)
	}
}

// say logs a state as loud as it is bad, and only what there is to say.
func (l *line) say(s channels.Status) {
	log, said := l.log.Info, []any{"state", string(s.State)}
	switch s.State {
	case channels.Failed:
		log = l.log.Error
	case channels.Needs, channels.Deaf:
		log = l.log.Warn
	case channels.Ready, channels.Idle:
		if l.local { // a page that is opened and closed is no news
			log = l.log.Debug
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

func (l *line) ready() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wasUp && !l.now().Before(l.held)
}

// refuse notes that events were not taken.
func (l *line) refuse() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.late = l.now()
}

// catchingUp says that what comes may have waited at the network: the line is not up, or came up just now.
func (l *line) catchingUp() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	since := l.since
	if l.late.After(since) {
		since = l.late
	}
	return l.status.State != channels.Ready || l.now().Sub(since) < catchUp
}

func (l *line) hold(until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if until.After(l.held) {
		l.held = until
	}
}

func (l *line) heldUntil() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held
}

// suspect notes that the account itself was refused on a send; Run will find out for itself.
func (l *line) suspect(err error) {
	l.log.Error("the network refuses this account", "err", err)
	l.hold(l.now().Add(30 * time.Second))
}

func (l *line) setAccess(a routes.Access) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.access, l.synced = a, false
}

// sync calls bind once per connection's account and configuration.
func (l *line) sync(bind func(*line) error) error {
	l.mu.Lock()
	synced := l.synced
	l.mu.Unlock()
	if synced {
		return nil
	}
	if err := bind(l); err != nil {
		return err
	}
	l.mu.Lock()
	l.synced = true
	l.mu.Unlock()
	return nil
}

func (l *line) gate() routes.Access {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.access
}

func (l *line) view() LineView {
	account := string(l.account()) // the adapter has locks of its own
	l.mu.Lock()
	defer l.mu.Unlock()
	return LineView{Name: l.name, Network: string(l.network), Account: account, State: l.status.State, Since: l.since,
		Cause: l.status.Cause, Hint: l.status.Hint}
}

// anew has a channel that had failed run again. One that runs knows of its link already: a word kept for it would have it
// begin again after its next failure, which may be one that it must not come back from.
func (l *line) anew() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.runs {
		return
	}
	select {
	case l.again <- struct{}{}:
	default:
	}
}

// supervise runs the channel until ctx ends: a panic or an error restarts it with backoff, a Fatal ends it until it is
// linked anew.
func (l *line) supervise(ctx context.Context, in channels.Intake) {
	for tries := 1; ctx.Err() == nil; tries++ {
		l.adopt()
		began := l.now()
		err := l.runOnce(ctx, in)
		if ctx.Err() != nil {
			return
		}
		if l.renewing() {
			tries = 0
			continue
		}
		if first := l.rival(); first != "" {
			l.report(channels.Status{State: channels.Failed, Cause: fmt.Sprintf("channel %s has the same account", first),
				Hint: "Take one of the two out of the configuration, or give it another account.", Err: errTwin})
			l.rest(ctx, nil)
			continue
		}
		var e *channels.Error
		if errors.As(err, &e) && e.Class == channels.Fatal {
			l.mu.Lock()
			hint := l.status.Hint
			l.mu.Unlock()
			l.report(channels.Status{State: channels.Failed, Cause: e.Err.Error(), Hint: hint, Err: err})
			l.rest(ctx, nil)
			tries = 0
			continue
		}
		if l.now().Sub(began) > 5*time.Minute {
			tries = 1
		}
		l.report(channels.Status{State: channels.Connecting, Cause: fmt.Sprintf("the connection ended: %v", err)})
		timer := time.NewTimer(backoff(tries))
		l.rest(ctx, timer.C)
		timer.Stop()
	}
}

// rest waits until the channel is to be run again: it was linked anew, its keys changed, or at the time when given.
func (l *line) rest(ctx context.Context, until <-chan time.Time) {
	select {
	case <-ctx.Done():
	case <-l.again:
	case <-until:
	}
}

func (l *line) runOnce(ctx context.Context, in channels.Intake) (err error) {
	defer func() {
		if p := recover(); p != nil {
			l.log.Error("channel panicked", "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l.mu.Lock()
	l.end, l.runs = cancel, true
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.runs = false
	}()
	return l.channel.Run(ctx, in)
}

// rival is the channel that has this account already.
func (l *line) rival() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.twin
}

// lines is all channels of the gateway.
type lines struct {
	list []*line

	claims sync.Mutex
	owner  map[claimed]string // the channel that an account is on
}

// disown lets another channel have an account that this one left.
func (ls *lines) disown(l *line, account channels.AccountID) {
	ls.claims.Lock()
	defer ls.claims.Unlock()
	at := claimed{l.network, account}
	if ls.owner[at] == l.name {
		delete(ls.owner, at)
	}
}

// claimed is an account of a network.
type claimed struct {
	network channels.Network
	account channels.AccountID
}

func (ls *lines) byName(name string) *line {
	for _, l := range ls.list {
		if l.name == name {
			return l
		}
	}
	return nil
}

func (ls *lines) find(a channels.Address) *line {
	for _, l := range ls.list {
		if l.serves(a) {
			return l
		}
	}
	return nil
}

// serving is the channel of an address, or the one that will turn out to be it once it has connected.
func (ls *lines) serving(a channels.Address) *line {
	if l := ls.find(a); l != nil {
		return l
	}
	return ls.pending(a.Network)
}

func (ls *lines) ready(a channels.Address) bool {
	l := ls.find(a)
	return l != nil && l.ready()
}

// wait blocks until the channel of the address can send. It is false when ctx or the gateway ended, or when no
// configured channel has this account.
func (ls *lines) wait(ctx context.Context, ending <-chan struct{}, a channels.Address) (*line, bool) {
	for {
		l := ls.find(a)
		if l == nil { // accounts are known once connected
			l = ls.pending(a.Network)
			if l == nil {
				return nil, false
			}
		}
		l.mu.Lock()
		up := l.up
		l.mu.Unlock()
		select {
		case <-up: // also when the gateway ends: what is ready goes out
		default:
			select {
			case <-ctx.Done():
				return nil, false
			case <-ending:
				return nil, false
			case <-up:
			}
		}
		if w, ok := channels.As[channels.Awaiter](l.channel); ok && w.Await(ctx, a) != nil {
			return nil, false
		}
		if l.serves(a) {
			return l, true
		}
		if ls.find(a) == nil && ls.pending(a.Network) == nil {
			return nil, false
		}
	}
}

// pending is a channel of the network that has not connected yet, so that its account is not known.
func (ls *lines) pending(n channels.Network) *line {
	for _, l := range ls.list {
		if l.network != n || l.account() != "" {
			continue
		}
		l.mu.Lock()
		up := l.wasUp
		l.mu.Unlock()
		if !up { // one that is up and has no account will never tell it
			return l
		}
	}
	return nil
}
