// Package signin says who may speak to the gateway over HTTP at all: by Host and Origin, by the token, or by the cookie of a
// browser's sign-in. Each rule stands here once, and every request passes it. What somebody may do is control's business.
//
// It starts no goroutine.
package signin

import (
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"parley/configs/origin"
	"parley/gateway/api/wire"
)

// Options of a guard. All are needed but Public and Ended.
type Options struct {
	Token func() string   // in force now; empty: nobody gets in
	Hosts func() []string // names beside loopback by which it may be reached
	// Public is the address by which others reach it; empty: none.
	Public func() string
	Addr   string // where it listens, host:port
	TLS    bool   // it speaks TLS itself
	Ended  Ended  // keeps sign-ins that were ended over a restart; nil: nothing does
	Now    func() time.Time
	Log    *slog.Logger
}

// Guard checks Host, Origin and token before anything else looks at a request. A cookie of a sign-in is the other way
// to the same person. Safe for concurrent use.
type Guard struct {
	opt     Options
	guesses *guesses
	signIns *signIns
	codes   codes
}

// New makes a guard.
func New(o Options) *Guard {
	public := o.Public
	o.Public = func() string {
		if public == nil {
			return ""
		}
		return origin.Of(public())
	}
	return &Guard{opt: o, guesses: newGuesses(o.Now), signIns: newSignIns(o)}
}

// CheckOrigin refuses a request that was sent to another name, or by a page of another origin (T20).
func (g *Guard) CheckOrigin(r *http.Request) error {
	if !g.ownName(r.Host) {
		return wire.Fault(http.StatusMisdirectedRequest, "host",
			"This gateway does not go by that name. gateway.public_url and gateway.allowed_hosts say which it goes by.")
	}
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return nil
	}
	if len(origins) > 1 || !g.ownOrigin(origins[0], r.Host) {
		return wire.Fault(http.StatusForbidden, "origin", "Pages of another origin may not ask.")
	}
	return nil
}

// ownOrigin compares an Origin, which is nothing but scheme, host and port (RFC 6454 §6.2), with the place that was asked. At the
// listener's own address the scheme is the listener's. A configured name may stand for a proxy that speaks TLS before it.
func (g *Guard) ownOrigin(origin, host string) bool {
	if g.atPublic(host) {
		return strings.EqualFold(origin, g.opt.Public())
	}
	own := "http"
	if g.opt.TLS {
		own = "https"
	}
	switch {
	case strings.EqualFold(origin, own+"://"+host):
		return true
	case !g.opt.TLS && strings.EqualFold(origin, "https://"+host):
		return !g.listensAt(strings.ToLower(host))
	}
	return false
}

// ownName says whether a Host header is a loopback literal, or the address that is listened on, with our port, or exactly
// a configured name, without a port or with ours.
func (g *Guard) ownName(host string) bool {
	_, port, err := net.SplitHostPort(g.opt.Addr)
	if err != nil || host == "" {
		return false
	}
	host = strings.ToLower(host)
	return g.listensAt(host) || g.atPublic(host) || slices.ContainsFunc(g.opt.Hosts(), func(name string) bool {
		name = strings.ToLower(name)
		return name != "" && (host == name || host == net.JoinHostPort(name, port))
	})
}

// atPublic says whether a Host header is exactly that of the public origin.
func (g *Guard) atPublic(host string) bool {
	_, public, ok := strings.Cut(g.opt.Public(), "://")
	return ok && public != "" && strings.EqualFold(host, public)
}

// secure says whether a browser reaches the gateway by TLS, so that its cookie may be kept to that.
func (g *Guard) secure(r *http.Request) bool {
	return g.opt.TLS || strings.HasPrefix(r.Header.Get("Origin"), "https://") ||
		g.atPublic(r.Host) && strings.HasPrefix(g.opt.Public(), "https://")
}

// listensAt says whether a host in lower case is the listener itself: a loopback literal or its own address, with its port.
func (g *Guard) listensAt(host string) bool {
	own, port, err := net.SplitHostPort(g.opt.Addr)
	if err != nil {
		return false
	}
	literals := []string{"127.0.0.1", "localhost", "::1"}
	if ip, err := netip.ParseAddr(own); err == nil && !ip.IsUnspecified() {
		literals = append(literals, own)
	}
	return slices.ContainsFunc(literals, func(name string) bool { return host == net.JoinHostPort(name, port) })
}

// Authenticate checks the bearer token, or the cookie where there is no token. Wrong tokens are counted by address and in all;
// a request without any is not a guess, and a cookie cannot be guessed.
func (g *Guard) Authenticate(r *http.Request) error {
	values := r.Header.Values("Authorization")
	if len(values) == 0 {
		return g.cookie(r)
	}
	return g.guesses.attempt(r, len(values) == 1 && g.bearer(values[0]), len(g.opt.Token()) >= minSecret, wire.Unauthorized())
}

func (g *Guard) bearer(header string) bool {
	scheme, token, _ := strings.Cut(header, " ")
	return strings.EqualFold(scheme, "Bearer") && same(strings.TrimSpace(token), g.opt.Token())
}

// cookie takes a request of a page: whoever is signed in, by a page of this gateway and no other. A page of another port
// of this machine counts as the same site, so that the cookie alone says nothing of who asks.
func (g *Guard) cookie(r *http.Request) error {
	if !g.signIns.valid(r) {
		return wire.Unauthorized()
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
	default:
		return wire.Fault(http.StatusForbidden, "origin", "Pages of another origin may not ask.")
	}
	safe := (r.Method == http.MethodGet || r.Method == http.MethodHead) && r.Header.Get("Upgrade") == ""
	if !safe && r.Header.Get("Origin") == "" { // CheckOrigin has looked at what it says
		return wire.Fault(http.StatusForbidden, "origin", "A signed-in page says its Origin.")
	}
	return nil
}

// Recheck says whether what let a request in would do so now: the token may have changed, the person signed out.
func (g *Guard) Recheck(r *http.Request) error {
	if header := r.Header.Get("Authorization"); header != "" && g.bearer(header) || header == "" && g.signIns.valid(r) {
		return nil
	}
	return wire.Unauthorized()
}
