package signin

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"parley/gateway/api/wire"
)

// asks is one request to a guard: from where, with which token, at which host, of which origin.
func asks(g *Guard, from, token, host, origin string) int {
	r := httptest.NewRequest(http.MethodGet, "/v1/agents", nil)
	r.RemoteAddr, r.Host = from, host
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if origin != "" {
		r.Header.Set("Origin", origin)
	}
	err := g.CheckOrigin(r)
	if err == nil {
		err = g.Authenticate(r)
	}
	var p *wire.Problem
	if errors.As(err, &p) {
		return p.Status
	}
	return http.StatusOK
}

func guardOf(token string, tls bool, hosts ...string) *Guard {
	at := time.Now()
	return New(Options{Token: func() string { return token }, Hosts: func() []string { return hosts }, Addr: here, TLS: tls,
		Now: func() time.Time { return at }, Log: slog.New(slog.DiscardHandler)})
}

const here = "127.0.0.1:8420"

// T04: whoever shares the loopback address cannot lock the right token out of it; elsewhere, and for a token that could be
// guessed, the eleventh try learns nothing.
func TestT04_RightTokenIsNotLockedOutOfLoopback(t *testing.T) {
	t.Parallel()
	const long, short = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "hunter2"
	for name, c := range map[string]struct {
		token, from string
		want        int
	}{
		"loopback":             {long, "127.0.0.1:40001", http.StatusOK},
		"loopback, mapped":     {long, "[::ffff:127.0.0.1]:40001", http.StatusOK},
		"loopback of IPv6":     {long, "[::1]:40001", http.StatusOK},
		"another of 127/8":     {long, "127.9.9.9:40001", http.StatusOK},
		"a network":            {long, "192.0.2.7:40001", http.StatusTooManyRequests},
		"a network of IPv6":    {long, "[2001:db8::7]:40001", http.StatusTooManyRequests},
		"a token that is weak": {short, "127.0.0.1:40001", http.StatusTooManyRequests},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := guardOf(c.token, false)
			for i := range 30 {
				want := http.StatusUnauthorized
				if i >= tokensAtOnce {
					want = http.StatusTooManyRequests
				}
				if got := asks(g, c.from, "wrong", here, ""); got != want {
					t.Fatalf("wrong token %d: %d, want %d", i, got, want)
				}
			}
			if got := asks(g, c.from, c.token, here, ""); got != c.want {
				t.Errorf("the right one: %d, want %d", got, c.want)
			}
			if got := asks(g, c.from, "wrong", here, ""); got == http.StatusOK {
				t.Error("a wrong one passes")
			}
		})
	}
}

// T02, T20: an origin is compared exactly: scheme, host, port and nothing else.
func TestT02_T20_OriginIsComparedExactly(t *testing.T) {
	t.Parallel()
	const token = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	for _, c := range []struct {
		origin, host string
		tls, ok      bool
	}{
		{"http://127.0.0.1:8420", here, false, true},
		{"HTTP://127.0.0.1:8420", here, false, true},
		{"https://127.0.0.1:8420", here, false, false},
		{"https://127.0.0.1:8420", here, true, true},
		{"http://127.0.0.1:8420", here, true, false},
		{"http://localhost:8420", "localhost:8420", false, true},
		{"https://localhost:8420", "localhost:8420", false, false},
		{"http://localhost:8420", here, false, false},
		{"http://u@127.0.0.1:8420", here, false, false},
		{"http://u:p@127.0.0.1:8420", here, false, false},
		{"http://@127.0.0.1:8420", here, false, false},
		{"http://127.0.0.1:8420/", here, false, false},
		{"http://127.0.0.1:8420?", here, false, false},
		{"http://127.0.0.1:8420#", here, false, false},
		{"http://127.0.0.1:08420", here, false, false},
		{" http://127.0.0.1:8420", here, false, false},
		{"http:127.0.0.1:8420", here, false, false},
		{"//127.0.0.1:8420", here, false, false},
		{"null", here, false, false},
		{"https://chat.example.org", "chat.example.org", false, true}, // a proxy that speaks TLS stands before it
		{"http://chat.example.org", "chat.example.org", false, true},
		{"http://chat.example.org", "chat.example.org", true, false},
		{"https://chat.example.org:444", "chat.example.org", false, false},
		{"wss://chat.example.org", "chat.example.org", false, false},
	} {
		g := guardOf(token, c.tls, "chat.example.org")
		if got := asks(g, "127.0.0.1:40001", token, c.host, c.origin); (got == http.StatusOK) != c.ok {
			t.Errorf("Origin %q at %s (tls %t): %d", c.origin, c.host, c.tls, got)
		}
	}
}

// T04: a right code is not used up by who may not guess: over a network it works again after the pause.
func TestT04_RightCodeIsNotUsedUpByGuessers(t *testing.T) {
	t.Parallel()
	g := guardOf("ABCDEFGHIJKLMNOPQRSTUVWXYZ", false)
	code, _ := g.Invite(nil)
	redeem := func(text string) int {
		r := httptest.NewRequest(http.MethodPost, "/v1/sign-in", nil)
		r.RemoteAddr = "192.0.2.7:40001"
		_, err := g.Redeem(r, text)
		var p *wire.Problem
		if errors.As(err, &p) {
			return p.Status
		}
		return http.StatusOK
	}
	for range tokensAtOnce {
		if got := redeem("AAAA"); got != http.StatusUnauthorized {
			t.Fatal(got)
		}
	}
	if got := redeem(code); got != http.StatusTooManyRequests {
		t.Errorf("a right code of who guessed too often: %d", got)
	}
	if _, ok := g.codes.use(code, g.signIns.key(), g.opt.Now()); !ok {
		t.Error("the code was used up")
	}
}

// clock moves when a test says so.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

// browser redeems codes as a browser on loopback does.
func browser(t *testing.T, origin string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/sign-in", nil)
	r.RemoteAddr = "127.0.0.1:40001"
	r.Header.Set("Origin", origin)
	return r
}

// statusOf is the status of an answer.
func statusOf(err error) int {
	var p *wire.Problem
	if errors.As(err, &p) {
		return p.Status
	}
	return http.StatusOK
}

// T04: wrong codes are limited like wrong tokens, and like the right token a right one passes on loopback all the same; it
// works once, for ten minutes.
func TestT04_CodesAreLimitedAndWorkOnce(t *testing.T) {
	t.Parallel()
	c := &clock{at: time.Now()}
	g := New(Options{Token: func() string { return "ABCDEFGHIJKLMNOPQRSTUVWXYZ" }, Hosts: func() []string { return nil }, Addr: here, Now: c.now,
		Log: slog.New(slog.DiscardHandler)})
	invite := func() string { code, _ := g.Invite(nil); return code }
	redeem := func(code string) int {
		cookie, err := g.Redeem(browser(t, "http://"+here), code)
		if (err == nil) != (cookie != nil) {
			t.Errorf("%v with %v", cookie, err)
		}
		return statusOf(err)
	}
	want := func(what string, got, want int) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %d, want %d", what, got, want)
		}
	}
	old, kept := invite(), invite()
	want("a right one", redeem(kept), 200)
	want("a used one", redeem(kept), 401)
	c.at = c.at.Add(10*time.Minute + time.Second)
	want("an old one", redeem(old), 401)
	c.at = c.at.Add(2 * time.Minute)
	good := invite()
	for range tokensAtOnce {
		want("a wrong one", redeem(strings.Repeat("A", 26)), 401)
	}
	_, err := g.Redeem(browser(t, "http://"+here), strings.Repeat("A", 26))
	want("one more", statusOf(err), 429)
	var p *wire.Problem
	if !errors.As(err, &p) || p.After == 0 {
		t.Errorf("%v says not when to try again", err)
	}
	want("a wrong token", asks(g, "127.0.0.1:40001", "wrong", here, ""), 429)
	want("the right code", redeem(good), 200)
	want("the same again", redeem(good), 429)
	for _, code := range []string{"", strings.Repeat("x", 1000)} {
		c.at = c.at.Add(time.Minute)
		want(fmt.Sprintf("%.10q", code), redeem(code), 401)
	}
}

// T03: the cookie is kept from scripts and from other sites, and from plain HTTP where TLS is spoken.
func TestT03_CookieIsKeptFromScriptsAndOtherSites(t *testing.T) {
	t.Parallel()
	for origin, secure := range map[string]bool{"http://" + here: false, "https://parley.example.org": true} { // a proxy ends TLS
		g := guardOf("ABCDEFGHIJKLMNOPQRSTUVWXYZ", false, "parley.example.org")
		code, _ := g.Invite(nil)
		c, err := g.Redeem(browser(t, origin), code)
		if err != nil {
			t.Fatal(err)
		}
		if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" || c.MaxAge != 2592000 || c.Secure != secure {
			t.Errorf("%s: %s", origin, c)
		}
	}
}

// ended keeps what a guard gives it.
type ended struct{ text string }

func (e *ended) Load() (string, error) { return e.text, nil }

func (e *ended) Save(list string) error {
	e.text = list
	return nil
}

// A sign-in outlives a restart and ends after thirty days; one that was ended stays so, wherever a copy of its cookie is.
func TestSignInLivesThirtyDaysOrUntilItIsEnded(t *testing.T) {
	t.Parallel()
	c, kept := &clock{at: time.Now()}, &ended{}
	begin := func() *Guard {
		return New(Options{Token: func() string { return "ABCDEFGHIJKLMNOPQRSTUVWXYZ" }, Hosts: func() []string { return nil }, Addr: here, Ended: kept,
			Now: c.now, Log: slog.New(slog.DiscardHandler)})
	}
	g := begin()
	signIn := func() *http.Cookie {
		code, _ := g.Invite(nil)
		cookie, err := g.Redeem(browser(t, "http://"+here), code)
		if err != nil {
			t.Fatal(err)
		}
		return cookie
	}
	with := func(cookie *http.Cookie) *http.Request {
		r := browser(t, "http://"+here)
		r.AddCookie(cookie)
		return r
	}
	want := func(what string, cookie *http.Cookie, want int) {
		t.Helper()
		if got := statusOf(g.Authenticate(with(cookie))); got != want {
			t.Errorf("%s: %d, want %d", what, got, want)
		}
	}
	stays, goes := signIn(), signIn()
	if gone, err := g.End(with(goes)); err != nil || gone.MaxAge >= 0 || g.Recheck(with(goes)) == nil {
		t.Fatalf("%v, %v", gone, err)
	}
	g = begin()
	want("after a restart", stays, 200)
	want("one that was ended, after a restart", goes, 401)
	c.at = c.at.Add(30*24*time.Hour - time.Minute)
	want("after thirty days but a minute", stays, 200)
	c.at = c.at.Add(2 * time.Minute)
	want("after thirty days", stays, 401)
}
