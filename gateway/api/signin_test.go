package api_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"parley/gateway"
	"parley/gateway/api"
)

// code is a fresh way in.
func (r *rig) code() string {
	r.t.Helper()
	return r.ask("POST", "/v1/sign-in/codes", "{}", nil).fields(r.t)["code"].(string)
}

// redeem tries a code as a browser does.
func (r *rig) redeem(code string) answer {
	r.t.Helper()
	return r.ask("POST", "/v1/sign-in", `{"code":"`+code+`"}`, func(q *http.Request) {
		q.Header.Del("Authorization")
		q.Header.Set("Origin", r.g.URL())
	})
}

// T01: what wants a token wants one of a page too, or the cookie; a cookie that is not ours, or was changed, is none.
func TestT01_NothingAnswersWithoutCookieOrToken(t *testing.T) {
	t.Parallel()
	r := start(t, setup{})
	good := r.signIn()
	bad := map[string]string{"nothing": "", "made up": "1.AAAA.BBBB", "another version": "1" + good.Value[1:], "a version to come": "3" + good.Value[1:], "cut": good.Value[:len(good.Value)-1], "longer": good.Value + "A"}
	for i, c := range good.Value { // each place of it matters
		if c != '.' && i > 1 && i%5 == 0 {
			flip := "A"
			if c == 'A' {
				flip = "B"
			}
			bad[fmt.Sprint("changed at ", i)] = good.Value[:i] + flip + good.Value[i+1:]
		}
	}
	body := good.Value[2:strings.LastIndex(good.Value, ".")]
	raw, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil {
		t.Fatal(err)
	}
	raw[0] |= 0x7f // for ever
	bad["with a later end"] = "2." + base64.RawURLEncoding.EncodeToString(raw) + good.Value[strings.LastIndex(good.Value, "."):]
	for _, rt := range api.Routes() {
		if rt.Open {
			continue
		}
		method, path := concrete(rt.Pattern)
		for name, value := range bad {
			a := r.ask(method, path, "", r.as(&http.Cookie{Name: good.Name, Value: value}))
			if a.StatusCode != http.StatusUnauthorized {
				t.Errorf("%s with a cookie that is %s: %d", rt.Pattern, name, a.StatusCode)
			}
		}
	}
	r.ask("GET", "/v1/me", "", r.as(&http.Cookie{Name: "parley", Value: good.Value})).wantProblem(t, 401, "unauthorized")
	if a := r.ask("GET", "/v1/me", "", r.as(good)); a.StatusCode != 200 {
		t.Errorf("the good one: %d %s", a.StatusCode, a.body)
	}
}

// Cookie and token are two ways to the same person: what one may, the other may, verb by verb.
func TestCookieHasTheRightsOfTheToken(t *testing.T) {
	t.Parallel()
	r := start(t, setup{})
	as := r.as(r.signIn())
	for _, rt := range api.Routes() {
		method, path := concrete(rt.Pattern)
		if rt.Open || strings.HasSuffix(path, "/events") || path == "/v1/live" || path == "/v1/sign-out" || path == "/v1/backup" {
			continue
		}
		body := ""
		if method == http.MethodPost || method == http.MethodPatch {
			body = "{}"
		}
		token, cookie := r.ask(method, path, body, nil), r.ask(method, path, body, as)
		if token.StatusCode != cookie.StatusCode || token.StatusCode == 401 || token.StatusCode == 403 {
			t.Errorf("%s: %d by token, %d by cookie: %s", rt.Pattern, token.StatusCode, cookie.StatusCode, cookie.body)
		}
	}
}

// A cookie goes where the browser thinks; so a page of another place must not be able to act with it, even one of another
// port of this machine, which counts as the same site.
func TestT02_CookieAloneChangesNothing(t *testing.T) {
	t.Parallel()
	r := start(t, setup{})
	c := r.signIn()
	with := func(set map[string]string) func(*http.Request) {
		return func(q *http.Request) {
			q.Header.Del("Authorization")
			q.AddCookie(c)
			for k, v := range set {
				q.Header.Set(k, v)
			}
		}
	}
	ours := r.g.URL()
	for _, try := range []struct {
		method string
		set    map[string]string
		want   int
	}{
		{"POST", map[string]string{"Origin": ours, "Sec-Fetch-Site": "same-origin"}, 202},
		{"POST", map[string]string{"Origin": ours}, 202},
		{"POST", nil, 403},
		{"POST", map[string]string{"Sec-Fetch-Site": "same-origin"}, 403},
		{"POST", map[string]string{"Origin": "null"}, 403},
		{"POST", map[string]string{"Origin": "http://127.0.0.1:1"}, 403},
		{"POST", map[string]string{"Origin": ours + ".evil.test"}, 403},
		{"POST", map[string]string{"Origin": ours, "Sec-Fetch-Site": "same-site"}, 403},
		{"POST", map[string]string{"Origin": ours, "Sec-Fetch-Site": "cross-site"}, 403},
		{"GET", map[string]string{"Sec-Fetch-Site": "none"}, 200},
		{"GET", map[string]string{"Sec-Fetch-Site": "same-site"}, 403},
		{"GET", map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		{"GET", nil, 200},
	} {
		path, body := "/v1/messages", `{"text":"hello"}`
		if try.method == "GET" {
			path, body = "/v1/sessions", ""
		}
		if a := r.ask(try.method, path, body, with(try.set)); a.StatusCode != try.want {
			t.Errorf("%s with %v: %d %s, want %d", try.method, try.set, a.StatusCode, a.body, try.want)
		}
	}
	wrong := with(map[string]string{"Origin": ours, "Authorization": "Bearer wrong"})
	if a := r.ask("GET", "/v1/me", "", wrong); a.StatusCode != 401 {
		t.Errorf("a wrong token beside a cookie: %d", a.StatusCode)
	}
}

// T02: the upgrade to the live line asks for Host and Origin exactly, by cookie and by token.
func TestT02_LiveLineWantsOurHostAndOrigin(t *testing.T) {
	t.Parallel()
	r := start(t, setup{})
	c := r.signIn()
	cookie, bearer := c.Name+"="+c.Value, "Bearer "+r.token
	host := strings.TrimPrefix(r.g.URL(), "http://")
	port := host[strings.LastIndex(host, ":"):]
	for name, try := range map[string]struct {
		h    http.Header
		want int
	}{
		"a page":                       {http.Header{"Cookie": {cookie}, "Origin": {r.g.URL()}}, 101},
		"a page under another name":    {http.Header{"Cookie": {cookie}, "Host": {"localhost" + port}, "Origin": {"http://localhost" + port}}, 101},
		"a program":                    {http.Header{"Authorization": {bearer}}, 101},
		"nobody":                       {http.Header{"Origin": {r.g.URL()}}, 401},
		"a cookie without an origin":   {http.Header{"Cookie": {cookie}}, 403},
		"another site":                 {http.Header{"Cookie": {cookie}, "Origin": {"https://evil.test"}}, 403},
		"another site with a token":    {http.Header{"Authorization": {bearer}, "Origin": {"https://evil.test"}}, 403},
		"another port":                 {http.Header{"Cookie": {cookie}, "Origin": {"http://127.0.0.1:1"}}, 403},
		"no origin of a page":          {http.Header{"Cookie": {cookie}, "Origin": {"null"}}, 403},
		"a longer origin":              {http.Header{"Cookie": {cookie}, "Origin": {r.g.URL() + ".evil.test"}}, 403},
		"two origins":                  {http.Header{"Cookie": {cookie}, "Origin": {r.g.URL(), "https://evil.test"}}, 403},
		"same site, not origin":        {http.Header{"Cookie": {cookie}, "Origin": {r.g.URL()}, "Sec-Fetch-Site": {"same-site"}}, 403},
		"a rebound name":               {http.Header{"Cookie": {cookie}, "Host": {"evil.test" + port}, "Origin": {"http://evil.test" + port}}, 421},
		"a rebound name with a token":  {http.Header{"Authorization": {bearer}, "Host": {"evil.test" + port}}, 421},
		"our name with another's port": {http.Header{"Cookie": {cookie}, "Host": {"127.0.0.1:1"}, "Origin": {"http://127.0.0.1:1"}}, 421},
		"another address of Parley's":  {http.Header{"Cookie": {cookie}, "Host": {"127.0.0.2" + port}, "Origin": {"http://127.0.0.2" + port}}, 421},
	} {
		_, res, err := r.dial(try.h)
		got := 0
		if res != nil {
			got = res.StatusCode
		}
		if got != try.want {
			t.Errorf("%s: %d, %v; want %d", name, got, err, try.want)
		}
	}
}

// T20: the page, the sign-in and the API answer under our names only.
func TestT20_PageAndSignInAnswerUnderOurNamesOnly(t *testing.T) {
	t.Parallel()
	r := start(t, setup{yaml: "gateway: {listen: \"127.0.0.1:0\", allowed_hosts: [\"chat.example.org\"]}"})
	port := r.g.URL()[strings.LastIndex(r.g.URL(), ":"):]
	for host, want := range map[string]bool{
		"127.0.0.1" + port: true, "localhost" + port: true, "LOCALHOST" + port: true, "[::1]" + port: true, "chat.example.org": true, "chat.example.org" + port: true,
		"127.0.0.1": false, "localhost": false, "evil.test": false, "evil.test" + port: false, "chat.example.org.evil.test": false, "xchat.example.org": false,
		"127.0.0.1.evil.test" + port: false, "0.0.0.0" + port: false, "chat.example.org:1": false, "localhost.evil.test" + port: false, "": false,
	} {
		for _, path := range []string{"/", "/sessions/x", "/assets/x.js", "/v1/me"} {
			a := r.ask("GET", path, "", func(q *http.Request) {
				q.Host = host
				q.Header.Set("Accept", "text/html")
				if host == "" {
					q.Host = "none"
				}
			})
			if (a.StatusCode == http.StatusMisdirectedRequest) == want {
				t.Errorf("GET %s of %q: %d", path, host, a.StatusCode)
			}
		}
		a := r.ask("POST", "/v1/sign-in", `{"code":"`+r.code()+`"}`, func(q *http.Request) {
			q.Header.Del("Authorization")
			if q.Host = host; host == "" {
				q.Host = "none"
			}
		})
		if (a.StatusCode == http.StatusNoContent) != want || len(a.Cookies()) > 0 != want {
			t.Errorf("sign-in of %q: %d, cookies %v", host, a.StatusCode, a.Cookies())
		}
	}
}

// T03: the code is in no answer but the one that made it, in no log and no address that is asked for; the cookie is kept
// from scripts and from other sites.
func TestT03_SignInLeaksNothing(t *testing.T) {
	t.Parallel()
	r := start(t, setup{})
	link := r.g.SignInURL()
	address, code, ok := strings.Cut(link, "/#code=")
	if !ok || address != r.g.URL() || len(code) < 26 || strings.ContainsAny(address, "?@") {
		t.Fatalf("the link is %q", link)
	}
	a := r.redeem(code)
	if a.StatusCode != 204 || a.body != "" {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	set := a.Header.Get("Set-Cookie")
	for _, want := range []string{"HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=2592000"} {
		if !strings.Contains(set, want) {
			t.Errorf("Set-Cookie without %s: %s", want, set)
		}
	}
	if strings.Contains(set, "Secure") || strings.Contains(set, "Domain") {
		t.Errorf("Set-Cookie on plain HTTP: %s", set)
	}
	c := a.Cookies()[0]
	secret := map[string]string{"code": code, "token": r.token, "cookie": c.Value, "its end": c.Value[len(c.Value)-20:]}
	p := r.page(c)
	p.send(map[string]any{"type": "follow", "key": mainKey})
	p.send(map[string]any{"type": "message", "id": "one", "text": "/status"})
	p.send(map[string]any{"type": "message", "id": "two", "text": "hello"})
	seen := ""
	p.until("the end", func(f map[string]any) bool {
		seen += strings.Join(strings.Fields(string(mustJSON(t, f))), " ")
		return event("turn.ended")(f)
	})
	for _, path := range []string{"/", "/chat/x", "/v1/me", "/v1/status", "/v1/sessions", "/v1/config", "/v1/logs?level=debug", "/metrics", "/v1/channels", "/openapi.json"} {
		b := r.ask("GET", path, "", r.as(c))
		seen += b.body
		for k, v := range b.Header {
			seen += k + strings.Join(v, " ")
		}
	}
	r.redeem(code) // used: the refusal says it not again either
	r.stop()
	seen += r.log.String()
	for what, text := range secret {
		if strings.Contains(seen, text) {
			t.Errorf("the %s is told", what)
		}
	}
	https := start(t, setup{yaml: "gateway: {listen: \"127.0.0.1:0\", allowed_hosts: [parley.example.org]}"})
	b := https.ask("POST", "/v1/sign-in", `{"code":"`+https.code()+`"}`, func(q *http.Request) {
		q.Host = "parley.example.org"
		q.Header.Set("Origin", "https://parley.example.org") // a proxy ends TLS
	})
	if !strings.Contains(b.Header.Get("Set-Cookie"), "Secure") {
		t.Errorf("Set-Cookie over TLS: %q", b.Header.Get("Set-Cookie"))
	}
}

// T03: neither the page nor a redirect holds a credential, and the page may load and do nothing that is not its own.
func TestT03_PageHasAStrictPolicy(t *testing.T) {
	t.Parallel()
	r := start(t, setup{})
	for _, path := range []string{"/", "/chat/agent:assistant:local:main", "/runs/x", "/channels", "/assets/nothing.js", "/../etc/passwd", "/?token=x"} {
		a := r.ask("GET", path, "", func(q *http.Request) {
			q.Header.Del("Authorization")
			q.Header.Set("Accept", "text/html,*/*")
		})
		csp := a.Header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self';", "style-src 'self';", "connect-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"} {
			if !strings.Contains(csp, want) {
				t.Errorf("%s: no %s in %q", path, want, csp)
			}
		}
		if strings.Contains(csp, "unsafe") || strings.Contains(csp, "http") || strings.Contains(csp, "*") {
			t.Errorf("%s: %q", path, csp)
		}
		for name, want := range map[string]string{"Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff", "Cross-Origin-Opener-Policy": "same-origin"} {
			if got := a.Header.Get(name); got != want {
				t.Errorf("%s: %s %q", path, name, got)
			}
		}
		if a.StatusCode >= 300 && a.StatusCode < 400 || strings.Contains(a.body, "<script>") || strings.Contains(a.body, " style=") || strings.Contains(a.body, "root:") {
			t.Errorf("%s: %d %s", path, a.StatusCode, a.body)
		}
	}
	for _, path := range []string{"/v1/nothing", "/v1", "/channels/tg/hook", "/healthz/x", "/metrics/x", "/openapi.json/x"} {
		a := r.ask("GET", path, "", func(q *http.Request) {
			q.Header.Del("Authorization")
			q.Header.Set("Accept", "text/html")
		})
		if a.StatusCode != 401 {
			t.Errorf("%s: %d: the page stands where the API is", path, a.StatusCode)
		}
	}
}

// T04: wrong codes are limited like wrong tokens, and like the right token a right one passes on loopback all the same; it
// works once, for ten minutes.
func TestT04_CodesAreLimitedAndWorkOnce(t *testing.T) {
	t.Parallel()
	clock := &fakeClock{at: time.Now()}
	r := start(t, setup{opt: func(o *gateway.Options) { o.Now = clock.now }})
	old, kept := r.code(), r.code()
	if a := r.redeem(kept); a.StatusCode != 204 {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	r.redeem(kept).wantProblem(t, 401, "sign_in_code")
	clock.add(10*time.Minute + time.Second)
	r.redeem(old).wantProblem(t, 401, "sign_in_code")
	clock.add(2 * time.Minute)
	good := r.code()
	for i := range 10 {
		if a := r.redeem(strings.Repeat("A", 26)); a.StatusCode != 401 {
			t.Fatalf("try %d: %d", i, a.StatusCode)
		}
	}
	a := r.redeem(strings.Repeat("A", 26))
	a.wantProblem(t, 429, "rate_limited")
	if a.Header.Get("Retry-After") == "" || len(a.Cookies()) != 0 {
		t.Error("429 without Retry-After, or with a cookie")
	}
	wrong := func(q *http.Request) { q.Header.Set("Authorization", "Bearer wrong") }
	if a := r.ask("GET", "/v1/me", "", wrong); a.StatusCode != 429 {
		t.Errorf("wrong codes do not count as wrong tokens: %d", a.StatusCode)
	}
	if a := r.redeem(good); a.StatusCode != 204 {
		t.Errorf("the right code: %d %s", a.StatusCode, a.body)
	}
	r.redeem(good).wantProblem(t, 429, "rate_limited")
	for _, body := range []string{`{}`, `{"code":""}`, `{"code":null}`, `{"code":"` + strings.Repeat("x", 1000) + `"}`} {
		clock.add(time.Minute)
		b := r.ask("POST", "/v1/sign-in", body, nil)
		if b.StatusCode != 401 && b.StatusCode != 400 || len(b.Cookies()) != 0 {
			t.Errorf("%.40s: %d", body, b.StatusCode)
		}
	}
}

// again is the cookie after a restart on another port: browsers keep it by host, its name holds the port.
func (r *rig) again(c *http.Cookie) *http.Cookie {
	return &http.Cookie{Name: "parley" + strings.Replace(r.g.URL()[strings.LastIndex(r.g.URL(), ":"):], ":", "_", 1), Value: c.Value}
}

// A sign-in outlives a restart and ends after thirty days; one that was ended stays so, wherever a copy of its cookie is.
func TestSignInLivesThirtyDaysOrUntilItIsEnded(t *testing.T) {
	t.Parallel()
	clock := &fakeClock{at: time.Now()}
	opt := func(o *gateway.Options) { o.Now = clock.now }
	r := start(t, setup{opt: opt})
	stays, goes := r.signIn(), r.signIn()
	p := r.page(goes)
	p.until("hello", kind("hello"))
	if a := r.ask("POST", "/v1/sign-out", "", r.as(goes)); a.StatusCode != 204 || a.Cookies()[0].MaxAge >= 0 {
		t.Fatalf("%d %v", a.StatusCode, a.Cookies())
	}
	p.send(map[string]any{"type": "message", "id": "x", "text": "too late"})
	if code := p.closed(); code != 4401 {
		t.Errorf("the line of who signed out ends with %d", code)
	}
	r.stop()
	r.run(opt)
	if a := r.ask("GET", "/v1/me", "", r.as(r.again(stays))); a.StatusCode != 200 {
		t.Errorf("after a restart: %d", a.StatusCode)
	}
	r.ask("GET", "/v1/me", "", r.as(r.again(goes))).wantProblem(t, 401, "unauthorized")
	clock.add(30*24*time.Hour - time.Minute)
	if a := r.ask("GET", "/v1/me", "", r.as(r.again(stays))); a.StatusCode != 200 {
		t.Errorf("after thirty days but a minute: %d", a.StatusCode)
	}
	clock.add(2 * time.Minute)
	r.ask("GET", "/v1/me", "", r.as(r.again(stays))).wantProblem(t, 401, "unauthorized")
}

// T07: a changed token signs everybody out at once, on open lines too, and voids the codes that were made.
func TestT07_ChangedTokenSignsEverybodyOut(t *testing.T) {
	t.Parallel()
	r := start(t, setup{})
	c, code := r.signIn(), r.code()
	p := r.page(c)
	p.until("hello", kind("hello"))
	file := filepath.Join(r.dir, "data", "token")
	if err := os.WriteFile(file, []byte("another-token-of-26-letters\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.ask("GET", "/v1/me", "", r.as(c)).wantProblem(t, 401, "unauthorized")
	r.redeem(code).wantProblem(t, 401, "sign_in_code")
	p.send(map[string]any{"type": "message", "id": "x", "text": "still here?"})
	if status := p.closed(); status != 4401 {
		t.Errorf("the line ends with %d", status)
	}
	if n := len(r.model.asked); n != 0 {
		t.Errorf("the model was asked %d times", n)
	}
}

// closed reads to the end of the line and returns the close code.
func (p *page) closed() websocket.StatusCode {
	p.t.Helper()
	select {
	case err := <-p.ended:
		var ce websocket.CloseError
		if !errors.As(err, &ce) {
			p.t.Fatalf("the line ended with %v", err)
		}
		return ce.Code
	case <-time.After(20 * time.Second):
		p.t.Fatal("the line does not end")
		return 0
	}
}
