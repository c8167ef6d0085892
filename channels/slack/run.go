package slack

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"parley/channels"
)

const watchEvery = 5 * time.Minute // in mode http: how often the token is tried

// pace is how long Slack is waited for.
type pace struct {
	first    time.Duration // after the first failure, doubled with each further one
	longest  time.Duration
	disabled time.Duration // at least, while Socket Mode is switched off
	crowded  time.Duration // at least, while the app has too many sockets
	quiet    time.Duration // how long a socket may be silent: Slack pings every few seconds; beyond it the line counts as dead
	ping     time.Duration // after so long a silence the other side is pinged
	greeted  time.Duration // at most so long is waited after a connection that was up
	settled  time.Duration // how long a connection holds before failures are counted from zero
}

func usualPace() pace {
	return pace{first: 500 * time.Millisecond, longest: time.Minute, disabled: 5 * time.Second, crowded: 30 * time.Second, quiet: 45 * time.Second,
		ping: 15 * time.Second, greeted: 2 * time.Second, settled: 5 * time.Second}
}

func (p pace) backoff(try int) time.Duration { return channels.Backoff(try, p.first, p.longest) }

// Run receives until ctx ends. It returns a Fatal error when Slack refuses the app for good, and nil after ctx ended.
func (c *Channel) Run(ctx context.Context, in channels.Intake) error {
	r := &receiver{c: c, in: in}
	c.live.Store(r)
	err := r.run(ctx)
	c.live.CompareAndSwap(r, nil)
	r.mu.Lock()
	r.over = true
	r.mu.Unlock()
	r.calls.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// receiver is one Run.
type receiver struct {
	c     *Channel
	in    channels.Intake
	calls sync.WaitGroup // of the HTTP handler

	since time.Time // when the last connection ended; zero: there was none
	blind bool      // it had been dead for a while

	mu      sync.Mutex
	over    bool            // Run has ended: no call may begin
	last    channels.Status // reported
	needs   string          // what a person must do, while the line is up
	strange map[string]bool // workspaces that nobody has, of which was told
}

// endKind says why a connection ended.
type endKind string

const (
	dropped   endKind = "dropped"   // the network, or the process on the other side
	refreshed endKind = "refreshed" // Slack asked for a new one
	silent    endKind = "silent"    // no ping came: connected, but deaf
	disabled  endKind = "disabled"  // Socket Mode was switched off
	crowded   endKind = "crowded"   // the app has more sockets than Slack allows
	refused   endKind = "refused"   // no connection was made
	unacked   endKind = "unacked"   // an acknowledgement could not be written
)

// ending is a connection's end. Err is nil only where Slack asked for it.
type ending struct {
	kind  endKind
	err   error
	ready bool          // it was up before
	up    time.Duration // for how long
}

func (r *receiver) run(ctx context.Context) error {
	r.report(channels.Status{State: channels.Connecting})
	for try := 0; ctx.Err() == nil; try++ {
		self, err := r.c.whoami(ctx)
		if err == nil {
			r.scopes(self)
			break
		}
		if err := r.failed(ctx, ending{kind: refused, err: err}, try); err != nil {
			return err
		}
	}
	if r.c.opts.Mode == "http" {
		return r.posted(ctx)
	}
	for try := 0; ctx.Err() == nil; {
		end := r.connection(ctx)
		if ctx.Err() != nil {
			break
		}
		if end.ready && end.up >= r.c.pace.settled { // else a server that greets and hangs up would be asked without a pause
			try = 0
		}
		if err := r.failed(ctx, end, try); err != nil {
			return err
		}
		try++
	}
	return nil
}

// failed reports why there is no connection, waits, and returns an error only where no waiting helps.
func (r *receiver) failed(ctx context.Context, end ending, try int) error {
	if ctx.Err() != nil {
		return nil
	}
	if end.kind == refreshed && end.ready && (try == 0 || end.up >= r.c.pace.settled) {
		return nil // at once: it was asked for
	}
	wait := r.c.pace.backoff(try)
	if end.ready {
		wait = min(wait, r.c.pace.greeted)
	}
	var e *channels.Error
	if errors.As(end.err, &e) {
		wait = max(wait, e.After)
	}
	code := codeOf(end.err)
	if channels.ClassOf(end.err) == channels.Fatal || end.kind == refused && (code == "missing_scope" || code == "not_allowed_token_type") {
		err := &channels.Error{Class: channels.Fatal, Err: end.err}
		r.report(channels.Status{State: channels.Failed, Cause: end.err.Error(), Err: err, Hint: advice(code)})
		return err
	}
	s := channels.Status{State: channels.Connecting, Cause: end.err.Error(), Err: end.err}
	switch {
	case end.kind == silent:
		s.State, s.Hint = channels.Deaf, "Nothing can arrive; a new connection is being made. Check the network if this stays."
	case end.kind == disabled:
		s.State, s.Hint = channels.Needs, "Socket Mode was switched off: switch it on at https://api.slack.com/apps, or use mode: http."
		wait = max(wait, r.c.pace.disabled)
	case end.kind == crowded:
		s.State, s.Hint = channels.Needs, "Ten programs are connected with this app: stop those that should not be."
		wait = max(wait, r.c.pace.crowded)
	case says(end.err, "ratelimited") || e != nil && e.After > 0:
		s.Hint = "Slack asks to wait; the connection is tried again then."
	case try > 3:
		s.Hint = "Check the network between this machine and Slack; it is tried on."
	}
	r.report(s)
	channels.Sleep(ctx, wait)
	return nil
}

// advice is what a person can do about a refusal.
func advice(code string) string {
	switch code {
	case "missing_scope":
		return "The app-level token lacks the scope connections:write: make one with it at https://api.slack.com/apps, Basic Information."
	case "not_allowed_token_type":
		return "A token of the wrong kind is configured: bot_token begins with xoxb-, app_token with xapp-."
	case "account_inactive", "app_not_installed":
		return "The app was removed from the workspace: install it again and set its new bot token."
	case "token_revoked", "token_expired":
		return "The token was revoked or has expired: install the app again and set its new token."
	}
	return "Slack refuses the token: copy it again from https://api.slack.com/apps and set it in the configuration."
}

// report tells the state when it changed.
func (r *receiver) report(s channels.Status) {
	r.mu.Lock()
	same := s.State == r.last.State && s.Cause == r.last.Cause && s.Hint == r.last.Hint
	r.last = s
	r.mu.Unlock()
	if !same {
		r.in.Report(s)
	}
}

// ready tells that events can come, with what else there is to say.
func (r *receiver) ready(cause, hint string) {
	r.mu.Lock()
	if cause == "" && r.needs != "" {
		cause, hint = r.needs, reinstall
	}
	r.mu.Unlock()
	r.report(channels.Status{State: channels.Ready, Cause: cause, Hint: hint})
}

// scopes names what the workspace did not grant.
func (r *receiver) scopes(self *identity) {
	if len(self.missing) == 0 {
		return
	}
	r.mu.Lock()
	r.needs = "the app lacks scopes: " + strings.Join(self.missing, ", ")
	r.mu.Unlock()
	r.c.log.Warn("the app lacks scopes", "missing", strings.Join(self.missing, " "))
	r.report(channels.Status{State: channels.Needs, Cause: r.needs, Hint: reinstall})
}

// refused takes the word with which Slack refused a call: a scope that is missing is told, and a token that is refused
// shows in the next connection as well.
func (r *receiver) refused(method, code string, err error) {
	if code != "missing_scope" || method == "apps.connections.open" {
		return
	}
	r.mu.Lock()
	up, first := r.last.State == channels.Ready, r.needs == ""
	if first {
		r.needs = r.c.cleaned(err).Error()
	}
	r.mu.Unlock()
	if up && first {
		r.ready("", "")
	}
}

// posted is mode http: the handler receives, and the token is tried from time to time.
func (r *receiver) posted(ctx context.Context) error {
	r.ready("", "")
	r.calls.Go(func() { r.backfill(ctx) })
	for try := 0; channels.Sleep(ctx, watchEvery); {
		_, err := r.c.whoami(ctx)
		if err == nil {
			try = 0
			r.ready("", "")
			continue
		}
		if err := r.failed(ctx, ending{kind: refused, err: err}, try); err != nil {
			return err
		}
		try++
	}
	return nil
}

// handIn offers a batch until it is taken; an error says that ctx ended before.
func (r *receiver) handIn(ctx context.Context, batch []channels.Inbound) error {
	for try := 0; ; try++ {
		err := channels.Offer(ctx, r.in, r.c.log, batch...)
		if err == nil {
			if try > 0 {
				r.ready("", "")
			}
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		r.report(channels.Status{State: channels.Deaf, Cause: "messages wait at Slack: " + err.Error(), Err: err,
			Hint: "Nothing is lost; messages are taken as soon as the gateway can write and has room again."})
		channels.Sleep(ctx, min(20*time.Millisecond<<min(try, 6), time.Second))
	}
}
