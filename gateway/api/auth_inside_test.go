package api

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// asks is one request to a guard: from where, with which token, at which host, of which origin.
func asks(g *guard, from, token, host, origin string) int {
	r := httptest.NewRequest(http.MethodGet, "/v1/agents", nil)
	r.RemoteAddr, r.Host = from, host
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if origin != "" {
		r.Header.Set("Origin", origin)
	}
	err := g.place(r)
	if err == nil {
		err = g.allow(r)
	}
	var p *problem
	if errors.As(err, &p) {
		return p.Status
	}
	return http.StatusOK
}

func guardOf(token string, tls bool, hosts ...string) *guard {
	at := time.Now()
	return newGuard(Options{Token: func() string { return token }, Hosts: func() []string { return hosts }, Addr: "127.0.0.1:8420", TLS: tls, Now: func() time.Time { return at }})
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
	at := time.Now()
	s := New(Options{Token: func() string { return "ABCDEFGHIJKLMNOPQRSTUVWXYZ" }, Hosts: func() []string { return nil }, Addr: here, Now: func() time.Time { return at }}).s
	code, _ := s.guard.door.invite(nil)
	redeem := func(text string) int {
		r := httptest.NewRequest(http.MethodPost, "/v1/sign-in", strings.NewReader(`{"code":"`+text+`"}`))
		r.RemoteAddr = "192.0.2.7:40001"
		var p *problem
		if errors.As(s.signIn(httptest.NewRecorder(), r), &p) {
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
	if _, ok := s.guard.door.redeem(code); !ok {
		t.Error("the code was used up")
	}
}
