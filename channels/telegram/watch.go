package telegram

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"parley/channels"
)

const (
	deafAfter   = 90 * time.Second // of failing polls
	listenEvery = 6                // empty polls in a row before the server is asked what it holds: five minutes
	earlyPause  = 100 * time.Millisecond
)

// errDeaf is a poll that did not come back in its time.
var errDeaf = errors.New("telegram getUpdates: no answer within its time")

// errSuspect is a poll that was ended since another call was refused.
var errSuspect = errors.New("telegram getUpdates: ended, since another call was refused")

// watch is what one Run knows of its connection. It belongs to the loop's goroutine.
type watch struct {
	c    *Channel
	in   channels.Intake
	last channels.Status // reported

	answered bool      // the last poll was
	failures int       // in a row
	since    time.Time // of the first of them
	refusals int       // by the journal, in a row
	empty    int       // empty polls in a row
	early    int       // of them, those that came back long before their time
	held     int       // times in a row that the server held updates which we were not given
}

func newWatch(c *Channel, in channels.Intake) *watch { return &watch{c: c, in: in} }

// report tells the state when it changed.
func (w *watch) report(s channels.Status) {
	if s.State == w.last.State && s.Cause == w.last.Cause {
		return
	}
	w.last = s
	w.in.Report(s)
}

// heard notes a poll that was answered with n updates, and whether it was early. A server that does not hold empty
// polls would be asked thousands of times a second: it is given pauses, up to a tenth of a second.
func (w *watch) heard(ctx context.Context, n int, early bool) {
	w.failures, w.answered = 0, true
	switch {
	case n > 0:
		w.empty, w.held, w.early = 0, 0, 0
		return
	case early:
		w.early++
		channels.Sleep(ctx, min(time.Duration(w.early)*5*time.Millisecond, earlyPause))
		return
	}
	w.early = 0
	if w.empty++; w.empty >= listenEvery {
		w.empty = 0
		w.listen(ctx)
	}
}

// well notes that what was heard was also taken.
func (w *watch) well() {
	w.refusals = 0
	if w.held < 2 {
		w.report(channels.Status{State: channels.Ready})
	}
}

// listen asks whether the server holds updates while our polls come back empty: connected, but deaf.
func (w *watch) listen(ctx context.Context) {
	info, err := w.c.webhook(ctx)
	switch {
	case err != nil:
		return // the next poll tells more
	case info.URL != "":
		_ = w.c.dropWebhook(ctx) // the next poll tells
	case info.Pending == 0:
		w.held = 0
		return
	}
	w.empty = listenEvery - 1 // look again after the next poll
	if w.held++; w.held >= 2 {
		w.report(channels.Status{
			State: channels.Deaf,
			Cause: fmt.Sprintf("Telegram holds %d updates and our polls come back empty", info.Pending),
			Hint:  "Check that no other program uses this token, then restart the channel.",
		})
	}
}

// failed notes a failed call, reports it, and says how long to wait.
func (w *watch) failed(ctx context.Context, err error) time.Duration {
	var away *refused
	if errors.As(err, &away) {
		return w.turnedAway(err)
	}
	now := w.c.clock.Now()
	if w.failures == 0 {
		w.since = now
	}
	w.failures++
	w.answered = false
	wait := channels.Backoff(w.failures-1, 500*time.Millisecond, 30*time.Second)
	var e *channels.Error
	if errors.As(err, &e) {
		wait = max(wait, e.After)
	}
	s := channels.Status{State: channels.Connecting, Cause: channels.CauseOf(err), Err: err}
	switch {
	case codeOf(err) == http.StatusConflict && says(err, "webhook"):
		s.Hint = "A webhook is set for this bot; it is being removed."
		if w.failures > 3 {
			s.State = channels.Needs
			s.Hint = "Another program sets a webhook with this token: stop it, or make a new token with @BotFather."
		}
		_ = w.c.dropWebhook(ctx) // the next poll tells
	case codeOf(err) == http.StatusConflict:
		s.State = channels.Needs
		s.Hint = "Another program uses this token: stop it, or make a new token with @BotFather."
		wait = channels.Backoff(w.failures, time.Second, 30*time.Second)
	case errors.Is(err, errDeaf), now.Sub(w.since) >= deafAfter:
		s.State = channels.Deaf
		s.Hint = "Check the network between this machine and the Bot API server; it is tried on."
	}
	w.report(s)
	return wait
}

func (w *watch) fatal(err error) {
	w.report(channels.Status{
		State: channels.Failed, Cause: channels.CauseOf(err), Err: err,
		Hint: "Telegram refuses the token: get a valid one from @BotFather and set it in the configuration.",
	})
}

// turnedAway notes that the journal did not take a batch, and says how long to wait.
func (w *watch) turnedAway(err error) time.Duration {
	w.refusals++
	w.report(channels.Status{
		State: channels.Deaf, Cause: channels.CauseOf(err), Err: err,
		Hint: "Nothing is lost; messages are taken as soon as the gateway can write and has room again.",
	})
	return channels.Backoff(w.refusals-1, 50*time.Millisecond, 5*time.Second)
}

// webhookInfo is a part of https://core.telegram.org/bots/api#webhookinfo.
type webhookInfo struct {
	URL     string `json:"url"`
	Pending int    `json:"pending_update_count"`
}

func (c *Channel) webhook(ctx context.Context) (webhookInfo, error) {
	var info webhookInfo
	err := c.api.request(ctx, "getWebhookInfo", nil, &info)
	return info, err
}

// dropWebhook lets polling in; what waits for the webhook is kept for us.
func (c *Channel) dropWebhook(ctx context.Context) error {
	return c.api.request(ctx, "deleteWebhook", map[string]string{"drop_pending_updates": "false"}, nil)
}
