package limit

import (
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"parley/gateway/api/wire"
)

// Pace is how often one may write: so often a second, and for a while twenty times that.
type Pace struct {
	now func() time.Time

	mu  sync.Mutex
	all map[string]*rate.Limiter
}

const paceBurst = 20

// Take refuses a write that comes too soon; perSecond 0: none does.
func (p *Pace) Take(who string, perSecond int) error {
	if perSecond <= 0 {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	one := p.all[who]
	if one == nil {
		for old, l := range p.all {
			if len(p.all) < MaxAddresses {
				break
			}
			if l.TokensAt(now) >= float64(l.Burst()) {
				delete(p.all, old)
			}
		}
		one = rate.NewLimiter(rate.Limit(perSecond), perSecond*paceBurst)
		if len(p.all) < MaxAddresses {
			p.all[who] = one
		}
	}
	if one.Limit() != rate.Limit(perSecond) { // a reload
		one.SetLimitAt(now, rate.Limit(perSecond))
		one.SetBurstAt(now, perSecond*paceBurst)
	}
	if one.AllowN(now, 1) {
		return nil
	}
	return wire.RetryAfter(http.StatusTooManyRequests, "rate_limited", "That is too much at once. Wait a second.", 1)
}
