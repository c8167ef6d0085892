package signin

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"parley/gateway/api/limit"
	"parley/gateway/api/wire"
)

// How many wrong tokens are looked at: ten at once and ten a minute from one address, a hundred at once and sixty a
// minute in all. Whoever brought the right one within the hour is not locked out by the noise of others. A right secret from
// loopback is never locked out: every user and proxy of the machine shares that address, and whoever guesses 128 bits needs no limit.
const (
	tokensAtOnce    = 10
	tokensEvery     = 6 * time.Second
	allTokensAtOnce = 100
	allTokensEvery  = time.Second
	trusted         = time.Hour
	minSecret       = 22 // characters of 128 bits in base64: a shorter one could be guessed without a limit
)

// guesses counts wrong secrets, by address and in all. Safe for concurrent use.
type guesses struct {
	now func() time.Time

	mu    sync.Mutex
	wrong map[string]*guesser
	all   *rate.Limiter
}

// guesser is one address.
type guesser struct {
	*rate.Limiter
	right time.Time // when the right token came last
}

func newGuesses(now func() time.Time) *guesses {
	return &guesses{now: now, wrong: map[string]*guesser{}, all: rate.NewLimiter(rate.Every(allTokensEvery), allTokensAtOnce)}
}

// attempt lets a right secret through and counts a wrong one. Who has guessed too often is not even told of a right one, but on
// loopback and where the secret is long.
func (g *guesses) attempt(r *http.Request, right, long bool, wrong error) error {
	from := limit.Address(r.RemoteAddr)
	if g.limited(from) && !(right && long && limit.Loopback(from)) {
		return wire.RetryAfter(http.StatusTooManyRequests, "rate_limited", "Too many wrong tokens came from there. Wait a little.",
			int(tokensEvery/time.Second))
	}
	if right {
		g.remember(from)
		return nil
	}
	g.count(from)
	return wrong
}

// same compares in a time that depends on neither; the empty token is never right.
func same(token, want string) bool {
	a, b := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(want))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1 && want != ""
}

func (g *guesses) limited(from string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	one := g.wrong[from]
	if one != nil && one.TokensAt(now) < 1 {
		return true
	}
	known := one != nil && now.Sub(one.right) < trusted
	return !known && g.all.TokensAt(now) < 1
}

func (g *guesses) count(from string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	g.all.AllowN(now, 1)
	g.of(from, now).AllowN(now, 1)
}

func (g *guesses) remember(from string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	g.of(from, now).right = now
}

// of finds an address's count. When too many are kept those that have nothing to say are forgotten.
func (g *guesses) of(from string, now time.Time) *guesser {
	one := g.wrong[from]
	if one != nil {
		return one
	}
	if len(g.wrong) >= limit.MaxAddresses {
		for addr, old := range g.wrong {
			if old.TokensAt(now) >= tokensAtOnce && now.Sub(old.right) >= trusted {
				delete(g.wrong, addr)
			}
		}
	}
	one = &guesser{Limiter: rate.NewLimiter(rate.Every(tokensEvery), tokensAtOnce)}
	if len(g.wrong) < limit.MaxAddresses {
		g.wrong[from] = one
	}
	return one
}
