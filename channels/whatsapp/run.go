package whatsapp

import (
	"context"
	"errors"
	"fmt"
	"time"

	wastore "go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"

	"parley/channels"
)

// pace is how long WhatsApp and whatsmeow are waited for.
type pace struct {
	reason  time.Duration // after a line's end, for whatsmeow to tell why
	first   time.Duration // after the first failure, doubled with each further one
	longest time.Duration
	again   time.Duration // from a connection to what devices asked for before it: first the confirmations that waited at the server come
	unread  time.Duration // from a device's question to Parley's own answer, if whatsmeow's is not confirmed by then
}

func usualPace() pace {
	return pace{reason: 300 * time.Millisecond, first: 200 * time.Millisecond, longest: time.Minute, again: 2 * time.Second, unread: 5 * time.Second}
}

// answerFor is how long WhatsApp may take to answer anything that it is asked: whoever waits, and whoever waits for that one,
// is freed after it.
const answerFor = 10 * time.Second

func (c *Channel) answerWait() time.Duration { return time.Duration(c.answer.Load()) }

// Run keeps the linked device connected until ctx ends. Without one it says so, and waits for a Login. It returns a Fatal
// error when WhatsApp ended the link or another program took the device's place; a Login and a new Run heal both.
func (c *Channel) Run(ctx context.Context, in channels.Intake) error {
	if err := c.start(); err != nil {
		return err
	}
	defer c.end()
	v, err := c.keep.acquire(ctx)
	if err != nil {
		if errors.Is(err, errOwned) {
			in.Report(channels.Status{State: channels.Needs, Cause: err.Error(), Err: err,
				Hint: "Stop the other program that uses this data directory; it is tried on."})
		}
		return ended(ctx, err)
	}
	defer c.keep.release()
	w := &watch{in: in}
	for ctx.Err() == nil {
		dev, err := v.device(ctx)
		if err != nil {
			return ended(ctx, fmt.Errorf("read the linked device: %w", err))
		}
		if dev == nil {
			c.forgetAccount()
			w.report(channels.Status{State: channels.Needs, Cause: "no WhatsApp account is linked", Hint: c.linkHint()})
			select {
			case <-ctx.Done():
			case <-c.changed:
			}
			continue
		}
		if err := c.serve(ctx, v, dev, w); err != nil {
			return ended(ctx, err)
		}
	}
	return nil
}

// ended is nil for whatever went wrong after the context's end.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (c *Channel) linkHint() string {
	return fmt.Sprintf("Link one: parley channel login %s, then scan the code with the phone (or with --phone and its number).", c.name)
}

// serve is one device with as many connections as it takes. nil: begin again with what the store has now.
func (c *Channel) serve(ctx context.Context, v *deviceStore, dev *wastore.Device, w *watch) error {
	select {
	case <-c.changed: // it is this device that was linked
	default:
	}
	s := c.newSession(v, dev, w)
	c.setLive(s)
	err := s.run(ctx)
	c.setLive(nil)
	s.close()
	var gone *goneError
	switch {
	case err == nil || ctx.Err() != nil, errors.Is(err, errRefused):
		return nil
	case errors.As(err, &gone):
		c.forgetAccount()
		if e := v.forget(context.WithoutCancel(ctx), s.id); e != nil {
			c.log.Error("the keys of an unlinked device cannot be deleted", "err", e)
		}
		if gone.ours {
			return nil
		}
	}
	return err
}

func (c *Channel) forgetAccount() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.account = ""
}

// watch tells states when they change.
type watch struct {
	in   channels.Intake
	last channels.Status
}

func (w *watch) report(s channels.Status) {
	if s.State == w.last.State && s.Cause == w.last.Cause && s.Hint == w.last.Hint {
		return
	}
	w.last = s
	w.in.Report(s)
}

// goneError says that the device's link ended, for good.
type goneError struct {
	cause string
	ours  bool // a Logout
}

func (e *goneError) Error() string { return e.cause }

// errRefused says that the gateway did not take a message for so long that the connection was given up: whatever else had
// arrived on it must come again behind that message.
var errRefused = errors.New("the gateway takes no messages")

// run connects until ctx ends or the device cannot go on.
func (s *session) run(ctx context.Context) error {
	s.report(channels.Status{State: channels.Connecting})
	for tries := 0; ; tries++ {
		up, err := s.once(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if up {
			tries = 0
		}
		wait, final := s.trouble(err, tries)
		if final != nil {
			return final
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.c.changed:
			return nil // a Login took place
		case <-time.After(wait):
		}
	}
}

// readyWait is how long the server may take from the handshake to the end of the login.
const readyWait = 45 * time.Second

// once connects and stays until the line ends. up says that it was ready.
func (s *session) once(ctx context.Context) (up bool, err error) {
	began := s.c.clock.Now()
	if err := s.connect(ctx); err != nil {
		return false, err
	}
	late := time.NewTimer(readyWait)
	defer late.Stop()
	quiet := time.NewTicker(presentFor / 2)
	defer quiet.Stop()
	settled := time.NewTimer(s.c.pace.again)
	defer settled.Stop()
	var asked <-chan struct{} // all that devices asked for again is answered
	sure := time.NewTimer(s.c.answerWait())
	defer sure.Stop()
	for {
		select {
		case <-ctx.Done():
			return up, nil
		case <-quiet.C:
			s.withdraw(ctx)
		case <-settled.C:
			if up {
				asked = s.answerAgain(began)
			}
		case <-asked:
			asked = nil
			settled.Reset(s.c.pace.unread)
		case <-sure.C:
			switch {
			case !up || s.owed.doubted() == 0:
			case s.owed.settle():
				s.report(channels.Status{State: channels.Ready})
			default:
				sure.Reset(s.c.answerWait())
			}
		case <-s.c.changed:
			s.hangUp()
			return up, errAgain
		case <-late.C:
			s.hangUp()
			return up, errMute
		case got := <-s.signals:
			switch sig := got.(type) {
			case ready:
				late.Stop()
				up = true
				settled.Reset(s.c.pace.again)
				sure.Reset(s.c.answerWait())
				s.arrived(ctx)
			case lost:
				if why := s.reason(); why != nil {
					return up, why
				}
				return up, errLost
			case silent:
				s.report(channels.Status{State: channels.Deaf, Cause: "WhatsApp does not answer on an open connection",
					Hint: "Check the network of this machine; Parley connects again."})
				if sig.times > 1 {
					s.hangUp()
					return up, errMute
				}
			case heard:
				s.report(channels.Status{State: channels.Ready})
			case error:
				s.hangUp()
				return up, sig
			}
		}
	}
}

var (
	errLost  = errors.New("the connection was lost")
	errMute  = errors.New("WhatsApp did not answer")
	errAgain = errors.New("the device changed")

	errUnanswered = errors.New("WhatsApp acknowledges nothing on an open connection")
)

// Signals of a session's handlers to its loop; errors are signals, too.
type (
	ready  struct{}
	lost   struct{}
	silent struct{ times int }
	heard  struct{}
)

// bannedError is a ban for a time.
type bannedError struct {
	until time.Time // zero: not told
	why   string
}

func (e *bannedError) Error() string { return "WhatsApp has banned this account for a time: " + e.why }

var (
	errReplaced = errors.New("another program uses this device's connection")
	errOutdated = errors.New("WhatsApp refuses this version of the client as outdated")
)

// trouble tells what went wrong, and says how long to wait, or that there is no going on.
func (s *session) trouble(err error, tries int) (time.Duration, error) {
	var gone *goneError
	var ban *bannedError
	var no *refusedError
	switch {
	case errors.Is(err, errAgain):
		return 0, nil
	case errors.Is(err, errRefused):
		return 0, errRefused
	case errors.As(err, &gone) && gone.ours:
		return 0, gone
	case errors.As(err, &gone):
		s.report(channels.Status{State: channels.Failed, Cause: gone.cause, Err: gone, Hint: "The link to this phone has ended. " + s.c.linkHint()})
		return 0, &channels.Error{Class: channels.Fatal, Err: gone}
	case errors.Is(err, errReplaced):
		s.report(channels.Status{State: channels.Failed, Cause: err.Error(), Err: err,
			Hint: "Stop the other program (is there a copy of this data directory?), then restart the gateway. Going on would destroy the device's keys."})
		return 0, &channels.Error{Class: channels.Fatal, Err: err}
	case errors.As(err, &ban):
		wait := time.Hour
		hint := "Stop whatever made WhatsApp think of spam; the phone says more. It is tried again each hour."
		if !ban.until.IsZero() {
			wait = max(ban.until.Sub(s.c.clock.Now()), time.Minute)
			hint = "Stop whatever made WhatsApp think of spam; the ban ends " + ban.until.UTC().Format("2006-01-02 15:04") + " UTC, and then it is connected."
		}
		s.report(channels.Status{State: channels.Needs, Cause: ban.Error(), Err: err, Hint: hint})
		return wait, nil
	case errors.As(err, &no) && !no.passes():
		s.c.askVersionAgain()
		s.report(channels.Status{State: channels.Needs, Cause: no.Error(), Err: no, Hint: no.hint()})
		return time.Hour, nil
	case errors.Is(err, errOutdated):
		s.c.askVersionAgain()
		hint := "Install a newer Parley. Until there is one, client_version: newest in this channel's section may help."
		if s.c.opt.Version != "" {
			hint = "Install a newer Parley: the version in client_version is refused, too."
		}
		s.report(channels.Status{State: channels.Needs, Cause: err.Error(), Err: err, Hint: hint})
		return time.Hour, nil
	}
	if errors.Is(err, errUnanswered) {
		s.doubt()
		return channels.Backoff(max(s.owed.doubted()-1, 0), s.c.pace.first, s.c.pace.longest), nil
	}
	status := channels.Status{State: channels.Connecting, Cause: mask(err.Error()), Err: errors.New(mask(err.Error()))}
	if errors.Is(err, errMute) || tries >= 5 {
		status.State = channels.Deaf
		status.Hint = "Check the network between this machine and web.whatsapp.com; it is tried on."
	}
	if no != nil {
		status.Hint = no.hint()
	}
	s.report(status)
	return channels.Backoff(tries, s.c.pace.first, s.c.pace.longest), nil
}

// plain is an address without agent and device, with the hosted twins of the two kinds of people folded into them.
func plain(j types.JID) types.JID {
	j = j.ToNonAD()
	switch j.Server {
	case types.HostedServer, types.LegacyUserServer:
		j.Server = types.DefaultUserServer
	case types.HostedLIDServer:
		j.Server = types.HiddenUserServer
	}
	return j
}
