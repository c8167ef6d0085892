package api

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
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
	maxAddresses    = 4096
	minSecret       = 22 // characters of 128 bits in base64: a shorter one could be guessed without a limit
)

// guard checks Host, Origin and token before anything else looks at a request. A cookie of a sign-in is the other way
// to the same person.
type guard struct {
	token func() string
	hosts func() []string
	addr  string // where it listens: host:port
	tls   bool   // it speaks TLS itself
	now   func() time.Time
	door  *door

	mu    sync.Mutex
	wrong map[string]*guesses
	all   *rate.Limiter
}

type guesses struct {
	*rate.Limiter
	right time.Time // when the right token came last
}

func newGuard(o Options) *guard {
	return &guard{token: o.Token, hosts: o.Hosts, addr: o.Addr, tls: o.TLS, now: o.Now, door: newDoor(o), wrong: map[string]*guesses{},
		all: rate.NewLimiter(rate.Every(allTokensEvery), allTokensAtOnce)}
}

// place refuses a request that was sent to another name, or by a page of another origin (T20).
func (g *guard) place(r *http.Request) error {
	if !g.ours(r.Host) {
		return fault(http.StatusMisdirectedRequest, "host", "This gateway does not go by that name. gateway.allowed_hosts lists those it goes by.")
	}
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return nil
	}
	if len(origins) > 1 || !g.ownOrigin(origins[0], r.Host) {
		return fault(http.StatusForbidden, "origin", "Pages of another origin may not ask.")
	}
	return nil
}

// ownOrigin compares an Origin, which is nothing but scheme, host and port (RFC 6454 §6.2), with the place that was asked. At the
// listener's own address the scheme is the listener's. A configured name may stand for a proxy that speaks TLS before it.
func (g *guard) ownOrigin(origin, host string) bool {
	own := "http"
	if g.tls {
		own = "https"
	}
	switch {
	case strings.EqualFold(origin, own+"://"+host):
		return true
	case !g.tls && strings.EqualFold(origin, "https://"+host):
		return !g.listensAt(strings.ToLower(host))
	}
	return false
}

// ours says whether a Host header is a loopback literal, or the address that is listened on, with our port, or exactly
// a configured name, without a port or with ours.
func (g *guard) ours(host string) bool {
	_, port, err := net.SplitHostPort(g.addr)
	if err != nil || host == "" {
		return false
	}
	host = strings.ToLower(host)
	return g.listensAt(host) || slices.ContainsFunc(g.hosts(), func(name string) bool {
		name = strings.ToLower(name)
		return name != "" && (host == name || host == net.JoinHostPort(name, port))
	})
}

// listensAt says whether a host in lower case is the listener itself: a loopback literal or its own address, with its port.
func (g *guard) listensAt(host string) bool {
	own, port, err := net.SplitHostPort(g.addr)
	if err != nil {
		return false
	}
	literals := []string{"127.0.0.1", "localhost", "::1"}
	if ip, err := netip.ParseAddr(own); err == nil && !ip.IsUnspecified() {
		literals = append(literals, own)
	}
	return slices.ContainsFunc(literals, func(name string) bool { return host == net.JoinHostPort(name, port) })
}

// allow checks the bearer token, or the cookie where there is no token. Wrong tokens are counted by address and in all;
// a request without any is not a guess, and a cookie cannot be guessed.
func (g *guard) allow(r *http.Request) error {
	values := r.Header.Values("Authorization")
	if len(values) == 0 {
		return g.cookie(r)
	}
	return g.guess(r, len(values) == 1 && g.bearer(values[0]), len(g.token()) >= minSecret, errUnauthorized())
}

func errUnauthorized() error {
	return fault(http.StatusUnauthorized, "unauthorized", "Send the gateway's token as Authorization: Bearer <token>. It stands in the configuration, or in the file token of the data directory.")
}

func (g *guard) bearer(header string) bool {
	scheme, token, _ := strings.Cut(header, " ")
	return strings.EqualFold(scheme, "Bearer") && same(strings.TrimSpace(token), g.token())
}

// cookie takes a request of a page: whoever is signed in, by a page of this gateway and no other. A page of another port
// of this machine counts as the same site, so that the cookie alone says nothing of who asks.
func (g *guard) cookie(r *http.Request) error {
	if !g.door.signedIn(r) {
		return errUnauthorized()
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
	default:
		return fault(http.StatusForbidden, "origin", "Pages of another origin may not ask.")
	}
	safe := (r.Method == http.MethodGet || r.Method == http.MethodHead) && r.Header.Get("Upgrade") == ""
	if !safe && r.Header.Get("Origin") == "" { // place has looked at what it says
		return fault(http.StatusForbidden, "origin", "A signed-in page says its Origin.")
	}
	return nil
}

// still says whether what let a request in would do so now: the token may have changed, the person signed out.
func (g *guard) still(r *http.Request) error {
	if header := r.Header.Get("Authorization"); header != "" && g.bearer(header) || header == "" && g.door.signedIn(r) {
		return nil
	}
	return errUnauthorized()
}

// guess lets a right secret through and counts a wrong one. Who has guessed too often is not even told of a right one, but on
// loopback and where the secret is long.
func (g *guard) guess(r *http.Request, right, long bool, wrong error) error {
	from := normalised(r.RemoteAddr)
	if g.limited(from) && !(right && long && loopback(from)) {
		p := fault(http.StatusTooManyRequests, "rate_limited", "Too many wrong tokens came from there. Wait a little.")
		p.after = int(tokensEvery / time.Second)
		return p
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

// normalised is the address behind which one guesser sits: an IPv4 address however it is written, or a /64 of IPv6.
func normalised(remote string) string {
	ap, err := netip.ParseAddrPort(remote)
	if err != nil {
		return remote
	}
	ip := ap.Addr().Unmap().WithZone("")
	if ip.Is6() {
		return netip.PrefixFrom(ip, 64).Masked().String()
	}
	return ip.String()
}

// loopback says whether a normalised address is one of this machine's own.
func loopback(from string) bool {
	if p, err := netip.ParsePrefix(from); err == nil {
		return p.Contains(netip.IPv6Loopback()) // nobody else is in that /64
	}
	ip, err := netip.ParseAddr(from)
	return err == nil && ip.IsLoopback()
}

func (g *guard) limited(from string) bool {
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

func (g *guard) count(from string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	g.all.AllowN(now, 1)
	g.of(from, now).AllowN(now, 1)
}

func (g *guard) remember(from string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	g.of(from, now).right = now
}

// of finds an address's count. When too many are kept those that have nothing to say are forgotten.
func (g *guard) of(from string, now time.Time) *guesses {
	one := g.wrong[from]
	if one != nil {
		return one
	}
	if len(g.wrong) >= maxAddresses {
		for addr, old := range g.wrong {
			if old.TokensAt(now) >= tokensAtOnce && now.Sub(old.right) >= trusted {
				delete(g.wrong, addr)
			}
		}
	}
	one = &guesses{Limiter: rate.NewLimiter(rate.Every(tokensEvery), tokensAtOnce)}
	if len(g.wrong) < maxAddresses {
		g.wrong[from] = one
	}
	return one
}
