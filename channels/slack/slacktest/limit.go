package slacktest

import (
	"time"

	"golang.org/x/time/rate"
)

// limits are those of https://docs.slack.dev/apis/web-api/rate-limits: a tier a method and workspace, and one message a
// second in a channel, "with short bursts". The length of a burst is not published; ours are what the public server lets
// pass. A nil *limits lets everything through. Guarded by the server's lock.
type limits struct {
	now     func() time.Time
	methods map[string]*rate.Limiter
	posts   map[string]*rate.Limiter
}

// postBurst is how many messages a channel takes at once.
const postBurst = 5

func newLimits(o Options) *limits {
	if o.NoLimits {
		return nil
	}
	return &limits{now: o.Now, methods: map[string]*rate.Limiter{}, posts: map[string]*rate.Limiter{}}
}

// method counts a call; what it returns is how long to wait, 0 when the call may go on.
func (l *limits) method(team string, m *method) time.Duration {
	if l == nil || m.tier == 0 {
		return 0
	}
	key := team + " " + m.name
	if l.methods[key] == nil {
		l.methods[key] = rate.NewLimiter(rate.Limit(float64(m.tier)/60), m.tier)
	}
	return l.take(l.methods[key])
}

// posted counts a message in a channel.
func (l *limits) posted(channel string) time.Duration {
	if l == nil {
		return 0
	}
	if l.posts[channel] == nil {
		l.posts[channel] = rate.NewLimiter(1, postBurst)
	}
	return l.take(l.posts[channel])
}

func (l *limits) take(lim *rate.Limiter) time.Duration {
	now := l.now()
	r := lim.ReserveN(now, 1)
	wait := r.DelayFrom(now)
	if wait > 0 {
		r.CancelAt(now)
	}
	return wait
}
