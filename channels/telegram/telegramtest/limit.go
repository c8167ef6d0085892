package telegramtest

import (
	"math"
	"time"

	"golang.org/x/time/rate"
)

// Limits are the flood limits of https://core.telegram.org/bots/faq#my-bot-is-hitting-limits-how-do-i-avoid-this.
// Zero fields take the published value; bursts are not published, ours are what the public server lets pass.
type Limits struct {
	PerSecond   float64 // messages per second in one chat; 0: 1
	Burst       int     // messages at once in one chat; 0: 5
	PerMinute   int     // messages per minute in one group; 0: 20
	Overall     float64 // messages per second to all chats; 0: 30
	EditsPerSec float64 // edits of one message per second; 0: 1
	EditBurst   int     // edits of one message at once; 0: 5
}

// flood counts what the bot sends. A nil *flood lets everything through.
type flood struct {
	lim     Limits
	now     func() time.Time
	overall *rate.Limiter
}

// chatFlood is the share of one chat, guarded by the chat's mutex.
type chatFlood struct {
	second, minute *rate.Limiter
	edits          map[int64]*rate.Limiter
}

func newFlood(o Options) *flood {
	if o.NoLimits {
		return nil
	}
	l := o.Limits
	or := func(v *float64, def float64) {
		if *v == 0 {
			*v = def
		}
	}
	orInt := func(v *int, def int) {
		if *v == 0 {
			*v = def
		}
	}
	or(&l.PerSecond, 1)
	or(&l.Overall, 30)
	or(&l.EditsPerSec, 1)
	orInt(&l.Burst, 5)
	orInt(&l.PerMinute, 20)
	orInt(&l.EditBurst, 5)
	return &flood{lim: l, now: o.Now, overall: rate.NewLimiter(rate.Limit(l.Overall), int(math.Max(1, l.Overall)))}
}

func (f *flood) of(ch *chat) *chatFlood {
	if ch.lim == nil {
		ch.lim = &chatFlood{second: rate.NewLimiter(rate.Limit(f.lim.PerSecond), f.lim.Burst), edits: map[int64]*rate.Limiter{}}
		if ch.info.Kind != Private {
			ch.lim.minute = rate.NewLimiter(rate.Limit(float64(f.lim.PerMinute)/60), f.lim.PerMinute)
		}
	}
	return ch.lim
}

// send counts n messages to ch, whose mutex the caller holds.
func (f *flood) send(ch *chat, n int) *apiError {
	if f == nil {
		return nil
	}
	own := f.of(ch)
	return f.take(n, own.second, own.minute, f.overall)
}

// edit counts an edit of message id. In groups edits count as messages too.
func (f *flood) edit(ch *chat, id int64) *apiError {
	if f == nil {
		return nil
	}
	own := f.of(ch)
	l := own.edits[id]
	if l == nil {
		l = rate.NewLimiter(rate.Limit(f.lim.EditsPerSec), f.lim.EditBurst)
		own.edits[id] = l
	}
	return f.take(1, l, own.minute, f.overall)
}

// take reserves n in all limiters or in none.
func (f *flood) take(n int, all ...*rate.Limiter) *apiError {
	now := f.now()
	var wait time.Duration
	var held []*rate.Reservation
	for _, l := range all {
		if l == nil {
			continue
		}
		r := l.ReserveN(now, n)
		if !r.OK() {
			wait = max(wait, time.Minute)
			continue
		}
		held = append(held, r)
		wait = max(wait, r.DelayFrom(now))
	}
	if wait == 0 {
		return nil
	}
	for _, r := range held {
		r.CancelAt(now)
	}
	return tooMany(int(math.Ceil(wait.Seconds())))
}
