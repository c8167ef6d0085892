package discord

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"parley/channels"
)

const atOnce = 100 // events in one commit

// pace is how long things may take and how long is waited between them; tests make it shorter.
type pace struct {
	identify time.Duration // between two sessions; Discord takes one in 5 s
	refused  time.Duration // after the end of a session, up to five times as long; Discord asks for 1 to 5 s
	first    time.Duration // after the first failure, doubled with each further one
	longest  time.Duration
	hello    time.Duration // from the handshake to Hello
	ready    time.Duration // from Identify or Resume to READY or RESUMED
	guilds   time.Duration // after READY, until all servers have come
	greeted  time.Duration // at most so long is waited after a connection that was up
	settled  time.Duration // how long a connection holds before failures are counted from zero
	keep     time.Duration // between two writes of the session
	thinking time.Duration // how long a command shows "… is thinking" while nobody answers it
}

func usualPace() pace {
	return pace{identify: 5500 * time.Millisecond, refused: time.Second, first: 500 * time.Millisecond, longest: time.Minute,
		hello: 20 * time.Second, ready: 45 * time.Second, guilds: 5 * time.Second, greeted: 2 * time.Second, settled: 5 * time.Second, keep: keepEvery, thinking: 2 * time.Minute}
}

// Run listens until ctx ends. It returns a Fatal error when Discord refuses the token or an intent, and nil after ctx ended.
func (c *Channel) Run(ctx context.Context, in channels.Intake) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	r := &receiver{c: c, in: in, queue: newQueue(), session: &session{}}
	r.answers.SetLimit(64)
	var own sync.WaitGroup
	err := r.identify(ctx)
	if err == nil && ctx.Err() == nil {
		r.recall()
		own.Go(func() { r.takeAll(ctx) })
		own.Go(func() { r.keeper.run(ctx, c.pace.keep) })
		err = r.supervise(ctx)
	}
	ended := ctx.Err() != nil
	stop()
	own.Wait()
	r.keeper.flush()
	_ = r.answers.Wait() // they return nothing
	r.unheard.Wait()
	c.acks.clear()
	if ended {
		return nil
	}
	return err
}

// receiver is one Run.
type receiver struct {
	c       *Channel
	in      channels.Intake
	self    *identity
	session *session
	queue   *queue
	answers errgroup.Group
	unheard sync.WaitGroup // those that wait for the answer to a command

	states sync.Mutex
	last   channels.Status

	keeper *keeper // nil: nothing is kept

	// The taker's own.
	waiting map[string]bool                        // servers that READY named and that have not come
	newer   map[channels.PeerID]channels.MessageID // the journal's newest at READY, while some of them are waited for
	missed  bool                                   // what was missed has not been read back yet
	resumed bool                                   // the session goes on
	mark    kept                                   // up to where the journal has the session
}

// recall takes up the session that an earlier process left.
func (r *receiver) recall() {
	r.keeper = newKeeper(r.c.dir, r.c.name, r.c.ownerOf(r.self), r.c.log)
	if was, ok := r.keeper.load(r.self.intents()); ok {
		r.mark = was
		r.session.id, r.session.url = was.Session, was.URL
		r.session.seq.Store(was.Seq)
	}
}

// report tells the state when it changed.
func (r *receiver) report(s channels.Status) {
	r.states.Lock()
	defer r.states.Unlock()
	if s.State == r.last.State && s.Cause == r.last.Cause {
		return
	}
	r.last = s
	r.in.Report(s)
}

func (r *receiver) state() channels.State {
	r.states.Lock()
	defer r.states.Unlock()
	return r.last.State
}

// identify asks until Discord says who we are, or that the token is wrong.
func (r *receiver) identify(ctx context.Context) error {
	r.report(channels.Status{State: channels.Connecting})
	for try := 0; ; try++ {
		self, err := r.c.whoami(ctx)
		if err == nil {
			r.self = self
			return nil
		}
		if ctx.Err() != nil {
			return nil
		}
		var e *channels.Error
		if errors.As(err, &e) && e.Class == channels.Fatal {
			return r.fatal(err, "Discord refuses the token: make a new one in the developer portal (Bot, Reset Token) and set it in the configuration.")
		}
		r.report(channels.Status{State: channels.Connecting, Cause: channels.CauseOf(err), Err: err, Hint: "It is tried on."})
		wait := r.c.pace.backoff(try)
		if e != nil {
			wait = max(wait, e.After)
		}
		if !channels.Sleep(ctx, wait) {
			return nil
		}
	}
}

// supervise connects again and again, and decides by the reason of each end.
func (r *receiver) supervise(ctx context.Context) error {
	for failures := 0; ; failures++ {
		if since := r.c.clock.Now().Sub(r.session.identified); r.session.id == "" && since < r.c.pace.identify && !channels.Sleep(ctx, r.c.pace.identify-since) {
			return nil
		}
		e := r.connect(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if e.up >= r.c.pace.settled {
			failures = 0
		}
		wait := r.c.pace.pause(e, failures, r.session.tried(e))
		switch e.kind {
		case endClosed:
			if e.code == 4014 && r.self.guessed && r.self.content.CompareAndSwap(true, false) {
				break // now it is known
			}
			if hint := fatalCode(e.code); hint != "" {
				return r.fatal(e, hint)
			}
		case endUnreached:
			if channels.ClassOf(e.err) == channels.Fatal {
				return r.fatal(e.err, "Discord refuses the token: make a new one in the developer portal (Bot, Reset Token) and set it in the configuration.")
			}
		case endNoSessions:
			r.report(channels.Status{State: channels.Needs, Cause: e.Error(), Hint: r.noSessions(e)})
			channels.Sleep(ctx, wait)
			continue
		case endStopped, endNoHello, endNoReady, endZombie, endDropped, endInvalid, endReconnect:
		}
		r.c.log.Info("connection ended", "reason", string(e.kind), "code", e.code, "err", e.err)
		r.report(channels.Status{State: channels.Connecting, Cause: e.Error(), Err: e, Hint: "It is tried on."})
		channels.Sleep(ctx, wait)
	}
}

// noSessions says what is the matter when no session may be begun now.
func (r *receiver) noSessions(e end) string {
	if e.left == 0 {
		return fmt.Sprintf("Discord lets the bot start no more sessions for %s; it has been restarted too often, or another program uses its token.", e.after.Round(time.Minute))
	}
	return fmt.Sprintf("Discord lets the bot start only %d more sessions today, which must last; the next is started in %s. It has lost its connection too often, or another program uses its token.",
		e.left, e.after.Round(time.Minute))
}

// pause is how long is waited after a connection that ended, the failures-th in a row. gone says that its session ended with
// it: then Discord asks for 1 to 5 s, whatever failed before.
func (p pace) pause(e end, failures int, gone bool) time.Duration {
	wait := p.backoff(failures)
	switch {
	case gone, e.kind == endInvalid:
		wait = p.refused + rand.N(4*p.refused)
	case e.kind == endReconnect && failures == 0:
		wait = 0
	case e.up > 0:
		wait = min(wait, p.greeted)
	}
	return max(e.after, wait)
}

// fatalCode is the sentence for a close code after which trying again is no use
// (https://discord.com/developers/docs/topics/opcodes-and-status-codes#gateway-gateway-close-event-codes); "" for others.
func fatalCode(code int) string {
	switch code {
	case 4004:
		return "Discord refuses the token: make a new one in the developer portal (Bot, Reset Token) and set it in the configuration."
	case 4010, 4011:
		return "The bot is in more servers than one connection may serve (2,500): leave some, or use a bot of its own for them."
	case 4012:
		return "Discord has retired the version of its gateway that this version of Parley speaks: update Parley."
	case 4013, 4014:
		return "Discord does not grant the bot what it asks for: in the developer portal, Bot, Privileged Gateway Intents, switch on Message Content Intent, then restart."
	}
	return ""
}

func (r *receiver) fatal(err error, hint string) error {
	r.report(channels.Status{State: channels.Failed, Cause: channels.CauseOf(err), Err: err, Hint: hint})
	return &channels.Error{Class: channels.Fatal, Err: err}
}

// backoff is the pause after the try-th failure in a row.
func (p pace) backoff(try int) time.Duration { return channels.Backoff(try, p.first, p.longest) }

// takeAll takes events out of the queue, in order, until ctx ends.
func (r *receiver) takeAll(ctx context.Context) {
	for ctx.Err() == nil {
		events := r.queue.take(atOnce)
		if len(events) > 0 {
			r.takeSome(ctx, events)
			continue
		}
		var late <-chan time.Time
		var t *time.Timer
		if r.missed { // a server that does not come holds nobody up for long
			t = time.NewTimer(r.c.pace.guilds)
			late = t.C
		}
		select {
		case <-ctx.Done():
		case <-r.queue.woken:
		case <-late:
			r.readBack(ctx)
			r.keepUp(ctx)
		}
		if t != nil {
			t.Stop()
		}
	}
}

// takeSome journals the messages among the events in as few commits as may be.
func (r *receiver) takeSome(ctx context.Context, events []payload) {
	var b batch
	for _, p := range events {
		switch p.Type {
		case "READY", "RESUMED":
			r.deliver(ctx, &b)
			r.begin(ctx, p)
			continue
		case "GUILD_CREATE", "GUILD_DELETE":
			r.c.learn(r.self, p.Type, p.Data)
			r.arrived(ctx, p)
			continue
		case "MESSAGE_CREATE", "MESSAGE_UPDATE", "MESSAGE_DELETE", "MESSAGE_DELETE_BULK", "MESSAGE_REACTION_ADD", "MESSAGE_REACTION_REMOVE", "INTERACTION_CREATE":
			if r.missed { // what was missed came before it
				r.deliver(ctx, &b)
				r.readBack(ctx)
			}
			r.convert(ctx, p, &b)
		default:
			r.c.learn(r.self, p.Type, p.Data)
		}
	}
	r.deliver(ctx, &b)
	if ctx.Err() == nil {
		r.mark.pass(events, r.self.intents())
		r.keepUp(ctx)
	}
}

// keepUp writes down up to where the journal has the session. While what was missed before it is not read back, the
// session of before stays written: it is the one that can still bring it.
func (r *receiver) keepUp(ctx context.Context) {
	if !r.missed && ctx.Err() == nil && r.mark.Session != "" && r.mark.Seq > 0 {
		r.keeper.put(r.mark)
	}
}

// batch is what one commit takes, and what may be done after it.
type batch struct {
	in    []channels.Inbound
	after []func()
}

// deliver hands a batch over, until it is taken or ctx ends.
func (r *receiver) deliver(ctx context.Context, b *batch) {
	defer func() { *b = batch{} }()
	if len(b.in) == 0 {
		return
	}
	for try := 0; ctx.Err() == nil; try++ {
		err := channels.Offer(ctx, r.in, r.c.log, b.in...)
		if err == nil {
			for _, f := range b.after {
				f()
			}
			if try > 0 && r.state() == channels.Deaf {
				r.ready()
			}
			return
		}
		if ctx.Err() != nil {
			return
		}
		r.report(channels.Status{
			State: channels.Deaf, Cause: "messages wait: " + err.Error(), Err: err,
			Hint: "Nothing is lost; messages are taken as soon as the gateway can write and has room again.",
		})
		channels.Sleep(ctx, min(50*time.Millisecond<<min(try, 7), 5*time.Second))
	}
}

// ready tells that all is well, and what the bot was not granted.
func (r *receiver) ready() {
	s := channels.Status{State: channels.Ready}
	if !r.self.content.Load() {
		s.Cause = "in servers the bot reads only messages that mention it: Discord hides the others (MESSAGE_CONTENT)"
		s.Hint = contentHint
	}
	r.report(s)
}

const contentHint = "In the developer portal, Bot, Privileged Gateway Intents, switch on Message Content Intent, then restart the gateway."
