package signin

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"sync"
	"time"

	"parley/gateway/api/limit"
	"parley/gateway/api/wire"
)

// A code is 130 bits, works once and lives ten minutes.
const (
	codeLives = 10 * time.Minute
	maxCodes  = 16 // outstanding; a further one ends the oldest
)

// codes are the ways in for browsers that were made and not yet used. Safe for concurrent use; its zero value is ready.
type codes struct {
	mu  sync.Mutex
	all []code
}

// code is one that was made and not yet used; only its hash is kept.
type code struct {
	sum, key [sha256.Size]byte
	ends     time.Time
	by       *signIn // the sign-in that asked for it; nil: the token, or the gateway itself
}

// Invite makes a code, and says until when it works. One that a sign-in asked for opens another browser for that sign-in: it ends
// with it, and is never fresh. Without a request the gateway itself asks.
func (g *Guard) Invite(r *http.Request) (text string, ends time.Time) {
	var by *signIn
	if r != nil && r.Header.Get("Authorization") == "" {
		if p, ok := g.signIns.read(r); ok {
			by = &p
		}
	}
	text, ends = rand.Text(), g.opt.Now().Add(codeLives)
	g.codes.add(code{sha256.Sum256([]byte(text)), sha256.Sum256(g.signIns.key()), ends, by})
	return text, ends
}

func (c *codes) add(one code) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.all) >= maxCodes {
		c.all = c.all[1:]
	}
	c.all = append(c.all, one)
}

// Redeem uses a code up and returns the cookie that it is exchanged for. A browser that is signed in stays the same sign-in, fresh
// again: its end is the end of all its copies. Wrong codes count as wrong tokens do.
func (g *Guard) Redeem(r *http.Request, text string) (*http.Cookie, error) {
	if len(text) > maxCookie {
		text = ""
	}
	wrong := wire.Fault(http.StatusUnauthorized, "sign_in_code", "This code is not right, was used, or is older than ten minutes. "+
		"On the machine that Parley runs on, `parley webchat` prints another link.")
	from := limit.Address(r.RemoteAddr)
	if g.guesses.limited(from) && !limit.Loopback(from) { // a right code is not used up by who may not guess
		return nil, g.guesses.attempt(r, false, true, wrong)
	}
	by, ok := g.codes.use(text, g.signIns.key(), g.opt.Now())
	if ok && by != nil && g.signIns.ended(by.id) { // whoever asked for it has signed out since
		ok = false
	}
	if err := g.guesses.attempt(r, ok, true, wrong); err != nil {
		return nil, err
	}
	id := ""
	if was, in := g.signIns.read(r); in && by == nil {
		id = was.id
	}
	return g.signIns.cookie(by, id, g.secure(r)), nil
}

// use takes a code out. All that are kept are compared, each in a time that depends on nothing; one of another key, or of none, is
// none.
func (c *codes) use(text string, key []byte, now time.Time) (by *signIn, ok bool) {
	sum := sha256.Sum256([]byte(text))
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := c.all[:0]
	for _, one := range c.all {
		hit := subtle.ConstantTimeCompare(one.sum[:], sum[:]) == 1
		if now.After(one.ends) || one.key != sha256.Sum256(key) {
			continue
		}
		if hit && key != nil {
			by, ok = one.by, true
			continue
		}
		kept = append(kept, one)
	}
	c.all = kept
	return by, ok
}

// Fresh says whether a request carries a sign-in that is fresh.
func (g *Guard) Fresh(r *http.Request) bool { return g.signIns.fresh(r) }

// End signs a request's sign-in out and returns the cookie that takes its own away.
func (g *Guard) End(r *http.Request) (*http.Cookie, error) {
	if err := g.signIns.end(r); err != nil {
		return nil, err
	}
	return &http.Cookie{Name: g.signIns.name, Path: "/", MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteStrictMode}, nil
}

// Elsewhere is the link of a code at the public origin; empty: there is none.
func (g *Guard) Elsewhere(code string) string {
	if public := g.opt.Public(); public != "" {
		return public + PathOf(code)
	}
	return ""
}

// PathOf is the link of a code behind the gateway's address: it carries the code where no server and no log sees it.
func PathOf(code string) string { return "/#code=" + code }
