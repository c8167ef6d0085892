package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"parley/channels"
)

const (
	pollTimeout = 50 * time.Second // how long Telegram holds an empty poll
	pollSlack   = 15 * time.Second // beyond it the line counts as dead
	pollLimit   = 100              // updates in one answer, the most there is
)

// Run polls until ctx ends. It returns a Fatal error when Telegram refuses the token, and nil after ctx ended.
func (c *Channel) Run(ctx context.Context, in channels.Intake) error {
	var calls errgroup.Group
	calls.SetLimit(16)
	defer func() { _ = calls.Wait() }() // they return nothing
	r := &receiver{c: c, in: in, watch: newWatch(c, in)}
	r.answer = func(callback string) {
		calls.TryGo(func() error { // when too many are on their way, a spinner more or less is not a loss
			c.answerCallback(ctx, callback)
			return nil
		})
	}
	err := r.run(ctx)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// receiver is one Run.
type receiver struct {
	c      *Channel
	in     channels.Intake
	watch  *watch
	self   *identity
	offset int64 // of the next poll: confirms all below it. 0: not known, Telegram begins with the oldest
	stale  int   // batches in a row that did not move the offset forward
	answer func(callback string)
}

func (r *receiver) run(ctx context.Context) error {
	if err := r.identify(ctx); err != nil {
		return err
	}
	for ctx.Err() == nil {
		// After trouble, and at the start, ask without waiting, so that success is known at once.
		wait := pollTimeout
		if r.c.api.suspected.Swap(false) || !r.watch.answered {
			wait = 0
		}
		asked := r.c.clock.Now()
		raws, err := r.poll(ctx, wait)
		if err == nil {
			r.watch.heard(ctx, len(raws), wait > 0 && r.c.clock.Now().Sub(asked) < time.Second)
			err = r.take(ctx, raws)
		}
		if err == nil {
			r.watch.well()
			continue
		}
		if ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, errSuspect) {
			r.watch.answered = false // ask at once
			continue
		}
		if channels.ClassOf(err) == channels.Fatal {
			r.watch.fatal(err)
			return err
		}
		channels.Sleep(ctx, r.watch.failed(ctx, err))
	}
	return nil
}

// identify asks until the network says who we are, or that the token is wrong.
func (r *receiver) identify(ctx context.Context) error {
	r.watch.report(channels.Status{State: channels.Connecting})
	for {
		self, err := r.c.whoami(ctx)
		if err == nil {
			r.self = self
			return nil
		}
		if ctx.Err() != nil {
			return nil
		}
		if channels.ClassOf(err) == channels.Fatal {
			r.watch.fatal(err)
			return err
		}
		if !channels.Sleep(ctx, r.watch.failed(ctx, err)) {
			return nil
		}
	}
}

// poll asks for updates. The call itself confirms everything below the offset.
func (r *receiver) poll(ctx context.Context, wait time.Duration) ([]json.RawMessage, error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	r.c.api.poll.Store(&end)
	defer r.c.api.poll.Store(nil)
	if wait > 0 && r.c.api.suspected.Load() {
		return nil, errSuspect // between two polls
	}
	ctx, cancel := context.WithTimeoutCause(ctx, wait+pollSlack, errDeaf)
	defer cancel()
	var body form
	if r.offset != 0 {
		body = body.add("offset", decimal(r.offset))
	}
	body = body.add("timeout", decimal(int64(wait/time.Second))).
		add("limit", decimal(pollLimit)).
		add("allowed_updates", allowedUpdates)
	raws, err := post[[]json.RawMessage](ctx, r.c.api, "getUpdates", body)
	for _, cause := range []error{errDeaf, errSuspect} {
		if err != nil && errors.Is(context.Cause(ctx), cause) {
			err = cause
		}
	}
	return raws, err
}

// take journals a batch and only then moves the offset. A batch that the journal refuses is polled again, with
// whatever has come since.
func (r *receiver) take(ctx context.Context, raws []json.RawMessage) error {
	if len(raws) == 0 {
		return nil
	}
	batch := make([]channels.Inbound, 0, len(raws))
	var pressed []string
	next := int64(0)
	for _, raw := range raws {
		got := r.self.read(raw)
		if got.id != 0 {
			next = max(next, got.id+1)
		}
		if got.callback != "" {
			pressed = append(pressed, got.callback)
		}
		if !got.keep {
			continue
		}
		if got.post.chat != 0 && r.c.own.made(ctx, got.post) {
			continue
		}
		batch = append(batch, got.in)
	}
	if len(batch) > 0 {
		if err := channels.Offer(ctx, r.in, r.c.log, batch...); err != nil {
			return &refused{err}
		}
	}
	if err := r.confirm(next); err != nil {
		return err
	}
	for _, callback := range pressed {
		r.answer(callback)
	}
	return nil
}

// confirm moves the offset behind a batch whose ids end before next; 0: it had none. A batch that is below the offset
// is an update given out once more, or numbers that begin again, as they may after a week without any (getUpdates,
// Update.update_id): the offset follows it down, or it would never be confirmed.
func (r *receiver) confirm(next int64) error {
	switch {
	case next == 0:
		return errNoID // it would come again at once, for ever
	case next > r.offset:
		r.stale = 0
	default:
		r.stale++
	}
	r.offset = next
	if r.stale > maxStale {
		return errStale
	}
	return nil
}

const maxStale = 3 // batches given out again before polling slows down

var (
	errNoID  = errors.New("telegram getUpdates: no update of the batch has an id")
	errStale = errors.New("telegram getUpdates: what was confirmed comes again and again")
)

// refused says that the journal did not take a batch.
type refused struct{ err error }

func (r *refused) Error() string { return "messages wait at Telegram: " + r.err.Error() }
func (r *refused) Unwrap() error { return r.err }

// answerCallback stops the spinner on the pressed button. "query is too old" is harmless.
func (c *Channel) answerCallback(ctx context.Context, callback string) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if _, err := post[json.RawMessage](ctx, c.api, "answerCallbackQuery", form(nil).add("callback_query_id", callback)); err != nil {
		c.log.Debug("answer a button press", "err", err)
	}
}
