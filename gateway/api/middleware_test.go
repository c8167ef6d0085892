package api_test

import (
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/gateway/api"
)

// here is where a front without a listener is asked.
const here = "127.0.0.1:8420"

// concrete fills the placeholders of a route.
func concrete(pattern string) (method, path string) {
	method, path, _ = strings.Cut(pattern, " ")
	return method, strings.NewReplacer("{id}", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "{key}", "agent:assistant:local:main").Replace(path)
}

// T01: nothing but liveness answers without the token, on loopback too; nor with a wrong, empty, doubled or misplaced one.
func TestT01_NothingButLivenessAnswersWithoutToken(t *testing.T) {
	t.Parallel()
	clock := &fakeClock{at: time.Now()}
	r := newFront(t, here, func(o *api.Options) { o.Now = clock.now })
	tries := map[string]func(*http.Request){
		"no token":     func(q *http.Request) { q.Header.Del("Authorization") },
		"empty":        func(q *http.Request) { q.Header.Set("Authorization", "Bearer ") },
		"no scheme":    func(q *http.Request) { q.Header.Set("Authorization", frontToken) },
		"other scheme": func(q *http.Request) { q.Header.Set("Authorization", "Basic "+frontToken) },
		"a part of it": func(q *http.Request) { q.Header.Set("Authorization", "Bearer "+frontToken[:len(frontToken)-1]) },
		"more than it": func(q *http.Request) { q.Header.Set("Authorization", "Bearer "+frontToken+"x") },
		"in the query": func(q *http.Request) {
			q.Header.Del("Authorization")
			q.URL.RawQuery = "token=" + frontToken + "&access_token=" + frontToken
		},
		"in a cookie": func(q *http.Request) {
			q.Header.Del("Authorization")
			q.AddCookie(&http.Cookie{Name: "token", Value: frontToken})
		},
		"as basic login": func(q *http.Request) { q.SetBasicAuth("owner", frontToken) },
		"sent twice": func(q *http.Request) {
			q.Header["Authorization"] = []string{"Bearer " + frontToken, "Bearer " + frontToken}
		},
	}
	n := 0
	for _, rt := range api.Routes() {
		method, path := concrete(rt.Pattern)
		for name, edit := range tries {
			clock.add(time.Minute) // the limit of wrong tokens is another test's
			a := r.ask(method, path, "", edit)
			switch {
			case rt.Pattern == "POST /v1/sign-in": // open, and worth nothing without its code
				a.wantProblem(t, http.StatusUnauthorized, "sign_in_code")
			case rt.Open && a.StatusCode != http.StatusOK:
				t.Errorf("%s with %s: %d", rt.Pattern, name, a.StatusCode)
			case !rt.Open:
				a.wantProblem(t, http.StatusUnauthorized, "unauthorized")
			}
			n++
		}
	}
	if n < 190 {
		t.Errorf("only %d tries", n)
	}
	var open []string
	for _, rt := range api.Routes() {
		if rt.Open {
			open = append(open, rt.Pattern)
		}
	}
	if !slices.Equal(open, []string{"GET /healthz", "POST /v1/sign-in"}) {
		t.Errorf("open routes: %q", open)
	}
	for _, path := range []string{"/v1", "/v1/teams", "/mcp", "/v1/chat/completions", "/debug/pprof/", "/v1/../metrics", "//v1/sessions"} {
		clock.add(time.Minute)
		a := r.ask("GET", path, "", func(q *http.Request) { q.Header.Del("Authorization") })
		if a.StatusCode != http.StatusUnauthorized {
			t.Errorf("GET %s without a token: %d %s", path, a.StatusCode, a.body)
		}
	}
}

// What is not there yet is a plain 404 for who has the token, and a wrong method says which is right.
func TestUnknownPathsAndMethodsAreProblems(t *testing.T) {
	t.Parallel()
	r := newFront(t, here, nil)
	for _, path := range []string{"/v1/teams", "/v1/chat/completions", "/v1/tasks", "/mcp", "/nothing"} {
		r.ask("GET", path, "", nil).wantProblem(t, http.StatusNotFound, "not_found")
		r.ask("POST", path, "{}", nil).wantProblem(t, http.StatusNotFound, "not_found")
	}
	a := r.ask("DELETE", "/v1/messages", "", nil)
	a.wantProblem(t, http.StatusMethodNotAllowed, "method")
	if got := a.Header.Get("Allow"); got != "POST" {
		t.Errorf("Allow: %q", got)
	}
}

// T04: wrong tokens are limited for an address however it
// is written, loopback included; there the right one passes all the same, since whoever shares the address must not lock it out.
func TestT04_WrongTokensAreLimitedOnLoopbackToo(t *testing.T) {
	t.Parallel()
	clock := &fakeClock{at: time.Now()}
	r := newFront(t, here, func(o *api.Options) { o.Now = clock.now })
	wrong := func(q *http.Request) { q.Header.Set("Authorization", "Bearer wrong") }
	for i := range 10 {
		if a := r.ask("GET", "/readyz", "", wrong); a.StatusCode != http.StatusUnauthorized {
			t.Fatalf("try %d: %d", i, a.StatusCode)
		}
	}
	a := r.ask("GET", "/readyz", "", wrong)
	a.wantProblem(t, http.StatusTooManyRequests, "rate_limited")
	if a.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	if a := r.ask("GET", "/readyz", "", nil); a.StatusCode != http.StatusOK {
		t.Errorf("the right one: %d", a.StatusCode)
	}
	if a := r.ask("GET", "/readyz", "", func(q *http.Request) { q.Header.Del("Authorization") }); a.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a token: %d, since it is not a guess", a.StatusCode)
	}
	if a := r.ask("GET", "/healthz", "", nil); a.StatusCode != http.StatusOK {
		t.Errorf("liveness: %d", a.StatusCode)
	}
	clock.add(7 * time.Second)
	if a := r.ask("GET", "/readyz", "", wrong); a.StatusCode != http.StatusUnauthorized {
		t.Errorf("after the wait: %d", a.StatusCode)
	}
}

// T20: only loopback literals with our port and configured names are answered, so that a rebound name gets nothing.
func TestT20_HostMustBeOursExactly(t *testing.T) {
	t.Parallel()
	_, port, err := net.SplitHostPort(here)
	if err != nil {
		t.Fatal(err)
	}
	r := newFront(t, here, func(o *api.Options) { o.SignIn.Hosts = func() []string { return []string{"parley.example.org"} } })
	hosts := map[string]bool{
		"127.0.0.1:" + port: true, "localhost:" + port: true, "LOCALHOST:" + port: true, "[::1]:" + port: true,
		"parley.example.org": true, "parley.example.org:" + port: true, "Parley.Example.ORG": true,
		"127.0.0.1": false, "localhost": false, "127.0.0.1:1": false, "127.0.0.2:" + port: false, "[::]:" + port: false, "0.0.0.0:" + port: false,
		"evil.example:" + port: false, "127.0.0.1.nip.io:" + port: false, "localhost.evil.example:" + port: false, "parley.example.org.evil.example": false,
		"xparley.example.org": false, "parley.example.org.": false, "parley.example.org:1": false, "127.1:" + port: false, "2130706433:" + port: false,
		"127.0.0.1:" + port + "0": false, "user@127.0.0.1:" + port: false,
	}
	for host, ok := range hosts {
		for _, path := range []string{"/readyz", "/healthz", "/nothing"} {
			a := r.ask("GET", path, "", func(q *http.Request) { q.Host = host })
			if refused := a.StatusCode == http.StatusMisdirectedRequest || a.StatusCode == http.StatusBadRequest; refused == ok {
				t.Errorf("Host %q %s: %d %s", host, path, a.StatusCode, a.body)
			}
		}
	}
}

// T20: a page of another origin may not ask, whatever it knows.
func TestT20_OriginMustBeOurs(t *testing.T) {
	t.Parallel()
	r := newFront(t, here, nil)
	base := r.origin()
	origins := map[string]bool{base: true, "null": false, "http://evil.example": false, base + "0": false, base + ".evil.example": false, "https://127.0.0.1": false,
		"file://": false, "chrome-extension://abc": false, base + "/path": false, "": false}
	for origin, ok := range origins {
		a := r.ask("POST", "/v1/sign-out", `{}`, func(q *http.Request) { q.Header.Set("Origin", origin) })
		if refused := a.StatusCode == http.StatusForbidden; refused == ok {
			t.Errorf("Origin %q: %d %s", origin, a.StatusCode, a.body)
		}
	}
}

func TestWritesArePacedAndReadsAreNot(t *testing.T) {
	t.Parallel()
	clock := &fakeClock{at: time.Now()}
	r := newFront(t, here, func(o *api.Options) { o.Now, o.Writes = clock.now, func() int { return 1 } })
	write := func() answer { return r.ask("POST", "/v1/nothing", "{}", nil) }
	for range 20 {
		write().wantProblem(t, 404, "not_found")
	}
	late := write()
	late.wantProblem(t, 429, "rate_limited")
	if late.Header.Get("Retry-After") != "1" {
		t.Errorf("Retry-After %q", late.Header.Get("Retry-After"))
	}
	if a := r.ask("GET", "/readyz", "", nil); a.StatusCode != 200 {
		t.Errorf("a read: %d", a.StatusCode)
	}
	clock.add(time.Second)
	write().wantProblem(t, 404, "not_found")
	write().wantProblem(t, 429, "rate_limited")
}

// Every address of the page can be reloaded, also the one that begins as webhooks do; nothing of the API is the page.
func TestAddressesOfThePageCanBeReloaded(t *testing.T) {
	t.Parallel()
	r := newFront(t, here, nil)
	browser := func(q *http.Request) {
		q.Header.Set("Accept", "text/html,application/xhtml+xml")
		q.Header.Del("Authorization")
	}
	for _, path := range []string{"/", "/sessions", "/agents", "/agents/assistant", "/channels", "/runs?state=failed", "/runs/01J", "/usage", "/logs", "/config", "/needs", "/chat/agent:assistant:local:main"} {
		if a := r.ask("GET", path, "", browser); a.StatusCode != 200 || !strings.HasPrefix(a.Header.Get("Content-Type"), "text/html") {
			t.Errorf("%s: %d %s", path, a.StatusCode, a.Header.Get("Content-Type"))
		}
	}
	for _, path := range []string{"/channels/tg/hook", "/v1/agents", "/metrics"} {
		if a := r.ask("GET", path, "", browser); strings.HasPrefix(a.Header.Get("Content-Type"), "text/html") {
			t.Errorf("%s is the page", path)
		}
	}
}

// T03: neither the page nor a redirect holds a credential, and the page may load and do nothing that is not its own.
func TestT03_PageHasAStrictPolicy(t *testing.T) {
	t.Parallel()
	r := newFront(t, here, nil)
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

// T01: what wants a token wants one of a page too, or the cookie; a cookie that is not ours, or was changed, is none.
func TestT01_NothingAnswersWithoutCookieOrToken(t *testing.T) {
	t.Parallel()
	r := newFront(t, here, nil)
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
	r.ask("GET", "/readyz", "", r.as(&http.Cookie{Name: "parley", Value: good.Value})).wantProblem(t, 401, "unauthorized")
	if a := r.ask("GET", "/readyz", "", r.as(good)); a.StatusCode != 200 {
		t.Errorf("the good one: %d %s", a.StatusCode, a.body)
	}
}

// A cookie goes where the browser thinks; so a page of another place must not be able to act with it, even one of another
// port of this machine, which counts as the same site.
func TestT02_CookieAloneChangesNothing(t *testing.T) {
	t.Parallel()
	r := newFront(t, here, nil)
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
	ours := r.origin()
	for _, try := range []struct {
		method string
		set    map[string]string
		want   int
	}{
		{"POST", map[string]string{"Origin": ours, "Sec-Fetch-Site": "same-origin"}, 404},
		{"POST", map[string]string{"Origin": ours}, 404},
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
		path, body := "/v1/nothing", "{}"
		if try.method == "GET" {
			path, body = "/readyz", ""
		}
		if a := r.ask(try.method, path, body, with(try.set)); a.StatusCode != try.want {
			t.Errorf("%s with %v: %d %s, want %d", try.method, try.set, a.StatusCode, a.body, try.want)
		}
	}
	wrong := with(map[string]string{"Origin": ours, "Authorization": "Bearer wrong"})
	if a := r.ask("GET", "/readyz", "", wrong); a.StatusCode != 401 {
		t.Errorf("a wrong token beside a cookie: %d", a.StatusCode)
	}
}

// T02: the upgrade to the live line asks for Host and Origin exactly, by cookie and by token.
func TestT02_LiveLineWantsOurHostAndOrigin(t *testing.T) {
	t.Parallel()
	r := newFront(t, here, nil)
	c := r.signIn()
	cookie, bearer := c.Name+"="+c.Value, "Bearer "+frontToken
	port := here[strings.LastIndex(here, ":"):]
	for name, try := range map[string]struct {
		h    http.Header
		want int
	}{
		"a page":                       {http.Header{"Cookie": {cookie}, "Origin": {r.origin()}}, 101},
		"a page under another name":    {http.Header{"Cookie": {cookie}, "Host": {"localhost" + port}, "Origin": {"http://localhost" + port}}, 101},
		"a program":                    {http.Header{"Authorization": {bearer}}, 101},
		"nobody":                       {http.Header{"Origin": {r.origin()}}, 401},
		"a cookie without an origin":   {http.Header{"Cookie": {cookie}}, 403},
		"another site":                 {http.Header{"Cookie": {cookie}, "Origin": {"https://evil.test"}}, 403},
		"another site with a token":    {http.Header{"Authorization": {bearer}, "Origin": {"https://evil.test"}}, 403},
		"another port":                 {http.Header{"Cookie": {cookie}, "Origin": {"http://127.0.0.1:1"}}, 403},
		"no origin of a page":          {http.Header{"Cookie": {cookie}, "Origin": {"null"}}, 403},
		"a longer origin":              {http.Header{"Cookie": {cookie}, "Origin": {r.origin() + ".evil.test"}}, 403},
		"two origins":                  {http.Header{"Cookie": {cookie}, "Origin": {r.origin(), "https://evil.test"}}, 403},
		"same site, not origin":        {http.Header{"Cookie": {cookie}, "Origin": {r.origin()}, "Sec-Fetch-Site": {"same-site"}}, 403},
		"a rebound name":               {http.Header{"Cookie": {cookie}, "Host": {"evil.test" + port}, "Origin": {"http://evil.test" + port}}, 421},
		"a rebound name with a token":  {http.Header{"Authorization": {bearer}, "Host": {"evil.test" + port}}, 421},
		"our name with another's port": {http.Header{"Cookie": {cookie}, "Host": {"127.0.0.1:1"}, "Origin": {"http://127.0.0.1:1"}}, 421},
		"another address of Parley's":  {http.Header{"Cookie": {cookie}, "Host": {"127.0.0.2" + port}, "Origin": {"http://127.0.0.2" + port}}, 421},
	} {
		a := r.ask("GET", "/v1/live", "", func(q *http.Request) {
			q.Header = try.h
			q.Header.Set("Connection", "Upgrade")
			q.Header.Set("Upgrade", "websocket")
			if host := q.Header.Get("Host"); host != "" {
				q.Host = host
			}
		})
		if a.StatusCode != try.want {
			t.Errorf("%s: %d %s; want %d", name, a.StatusCode, a.body, try.want)
		}
	}
}

// T20: the page, the sign-in and the API answer under our names only.
func TestT20_PageAndSignInAnswerUnderOurNamesOnly(t *testing.T) {
	t.Parallel()
	clock := &fakeClock{at: time.Now()}
	r := newFront(t, here, func(o *api.Options) {
		o.Now, o.SignIn.Hosts = clock.now, func() []string { return []string{"chat.example.org"} }
	})
	port := here[strings.LastIndex(here, ":"):]
	for host, want := range map[string]bool{
		"127.0.0.1" + port: true, "localhost" + port: true, "LOCALHOST" + port: true, "[::1]" + port: true, "chat.example.org": true, "chat.example.org" + port: true,
		"127.0.0.1": false, "localhost": false, "evil.test": false, "evil.test" + port: false, "chat.example.org.evil.test": false, "xchat.example.org": false,
		"127.0.0.1.evil.test" + port: false, "0.0.0.0" + port: false, "chat.example.org:1": false, "localhost.evil.test" + port: false, "": false,
	} {
		for _, path := range []string{"/", "/sessions/x", "/assets/x.js", "/readyz"} {
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
		clock.add(time.Minute) // the limit of wrong codes is another test's
		a := r.ask("POST", "/v1/sign-in", `{"code":"AAAA"}`, func(q *http.Request) {
			q.Header.Del("Authorization")
			if q.Host = host; host == "" {
				q.Host = "none"
			}
		})
		if (a.StatusCode == http.StatusUnauthorized) != want {
			t.Errorf("sign-in of %q: %d", host, a.StatusCode)
		}
	}
}
