package api_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/channels"
	"parley/gateway"
	"parley/gateway/api"
)

// concrete fills the placeholders of a route.
func concrete(pattern string) (method, path string) {
	method, path, _ = strings.Cut(pattern, " ")
	return method, strings.NewReplacer("{id}", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "{key}", "agent:assistant:local:main").Replace(path)
}

// T01: nothing but liveness answers without the token, on loopback too; nor with a wrong, empty, doubled or misplaced one.
func TestT01_NothingButLivenessAnswersWithoutToken(t *testing.T) {
	t.Parallel()
	clock := &fakeClock{at: time.Now()}
	r := start(t, setup{opt: func(o *gateway.Options) { o.Now = clock.now }})
	tries := map[string]func(*http.Request){
		"no token":     func(q *http.Request) { q.Header.Del("Authorization") },
		"empty":        func(q *http.Request) { q.Header.Set("Authorization", "Bearer ") },
		"no scheme":    func(q *http.Request) { q.Header.Set("Authorization", r.token) },
		"other scheme": func(q *http.Request) { q.Header.Set("Authorization", "Basic "+r.token) },
		"a part of it": func(q *http.Request) { q.Header.Set("Authorization", "Bearer "+r.token[:len(r.token)-1]) },
		"more than it": func(q *http.Request) { q.Header.Set("Authorization", "Bearer "+r.token+"x") },
		"in the query": func(q *http.Request) {
			q.Header.Del("Authorization")
			q.URL.RawQuery = "token=" + r.token + "&access_token=" + r.token
		},
		"in a cookie": func(q *http.Request) {
			q.Header.Del("Authorization")
			q.AddCookie(&http.Cookie{Name: "token", Value: r.token})
		},
		"as basic login": func(q *http.Request) { q.SetBasicAuth("owner", r.token) },
		"sent twice":     func(q *http.Request) { q.Header["Authorization"] = []string{"Bearer " + r.token, "Bearer " + r.token} },
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
	r := start(t, setup{})
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

// T04: tokens have 128 bits, lie in a file for their owner only, and wrong ones are limited for an address however it
// is written, loopback included; there the right one passes all the same, since whoever shares the address must not lock it out.
func TestT04_WrongTokensAreLimitedOnLoopbackToo(t *testing.T) {
	t.Parallel()
	clock := &fakeClock{at: time.Now()}
	r := start(t, setup{opt: func(o *gateway.Options) { o.Now = clock.now }})
	wrong := func(q *http.Request) { q.Header.Set("Authorization", "Bearer wrong") }
	for i := range 10 {
		if a := r.ask("GET", "/v1/agents", "", wrong); a.StatusCode != http.StatusUnauthorized {
			t.Fatalf("try %d: %d", i, a.StatusCode)
		}
	}
	a := r.ask("GET", "/v1/agents", "", wrong)
	a.wantProblem(t, http.StatusTooManyRequests, "rate_limited")
	if a.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	if a := r.ask("GET", "/v1/agents", "", nil); a.StatusCode != http.StatusOK {
		t.Errorf("the right one: %d", a.StatusCode)
	}
	if a := r.ask("GET", "/v1/agents", "", func(q *http.Request) { q.Header.Del("Authorization") }); a.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a token: %d, since it is not a guess", a.StatusCode)
	}
	if a := r.ask("GET", "/healthz", "", nil); a.StatusCode != http.StatusOK {
		t.Errorf("liveness: %d", a.StatusCode)
	}
	clock.add(7 * time.Second)
	if a := r.ask("GET", "/v1/agents", "", wrong); a.StatusCode != http.StatusUnauthorized {
		t.Errorf("after the wait: %d", a.StatusCode)
	}
	if !regexp.MustCompile(`^[A-Z2-7]{26}$`).MatchString(r.token) {
		t.Errorf("the token is %d characters", len(r.token))
	}
	info, err := os.Stat(filepath.Join(r.dir, "data", "token"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
}

// T20: only loopback literals with our port and configured names are answered, so that a rebound name gets nothing.
func TestT20_HostMustBeOursExactly(t *testing.T) {
	t.Parallel()
	r := start(t, setup{yaml: "gateway: {listen: \"127.0.0.1:0\", allowed_hosts: [parley.example.org]}"})
	_, port, err := net.SplitHostPort(r.g.Addr())
	if err != nil {
		t.Fatal(err)
	}
	hosts := map[string]bool{
		"127.0.0.1:" + port: true, "localhost:" + port: true, "LOCALHOST:" + port: true, "[::1]:" + port: true,
		"parley.example.org": true, "parley.example.org:" + port: true, "Parley.Example.ORG": true,
		"127.0.0.1": false, "localhost": false, "127.0.0.1:1": false, "127.0.0.2:" + port: false, "[::]:" + port: false, "0.0.0.0:" + port: false,
		"evil.example:" + port: false, "127.0.0.1.nip.io:" + port: false, "localhost.evil.example:" + port: false, "parley.example.org.evil.example": false,
		"xparley.example.org": false, "parley.example.org.": false, "parley.example.org:1": false, "127.1:" + port: false, "2130706433:" + port: false,
		"127.0.0.1:" + port + "0": false, "user@127.0.0.1:" + port: false,
	}
	for host, ok := range hosts {
		for _, path := range []string{"/v1/agents", "/healthz", "/nothing"} {
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
	r := start(t, setup{})
	base := r.g.URL()
	origins := map[string]bool{base: true, "null": false, "http://evil.example": false, base + "0": false, base + ".evil.example": false, "https://127.0.0.1": false,
		"file://": false, "chrome-extension://abc": false, base + "/path": false, "": false}
	for origin, ok := range origins {
		a := r.ask("POST", "/v1/routes/explain", `{}`, func(q *http.Request) { q.Header.Set("Origin", origin) })
		if refused := a.StatusCode == http.StatusForbidden; refused == ok {
			t.Errorf("Origin %q: %d %s", origin, a.StatusCode, a.body)
		}
	}
}

// T07: a token that the configuration changes stops working on the next request, and so does one in the file.
func TestT07_ChangedTokenCountsFromTheNextRequest(t *testing.T) {
	t.Parallel()
	r := start(t, setup{})
	was := r.token
	status := func(token string) int {
		return r.ask("GET", "/v1/agents", "", func(q *http.Request) { q.Header.Set("Authorization", "Bearer "+token) }).StatusCode
	}
	if got := status(was); got != http.StatusOK {
		t.Fatal(got)
	}
	file := filepath.Join(r.dir, "data", "token")
	if err := os.WriteFile(file, []byte("a-second-token-of-the-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := status(was); got != http.StatusUnauthorized {
		t.Errorf("the old token of the file: %d", got)
	}
	if got := status("a-second-token-of-the-file"); got != http.StatusOK {
		t.Errorf("the new token of the file: %d", got)
	}
	r.write("gateway: {listen: \"127.0.0.1:0\", token: a-third-token-of-the-configuration}")
	r.reloaded()
	if got := status("a-second-token-of-the-file"); got != http.StatusUnauthorized {
		t.Errorf("the token of the file beside a configured one: %d", got)
	}
	if got := status("a-third-token-of-the-configuration"); got != http.StatusOK {
		t.Errorf("the configured token: %d", got)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	r.write("")
	r.reloaded()
	if got := status(""); got != http.StatusUnauthorized {
		t.Errorf("no token at all: %d", got)
	}
}

// reloaded blocks until the gateway has taken the changed configuration.
func (r *rig) reloaded() {
	r.t.Helper()
	before := strings.Count(r.log.String(), "configuration reloaded")
	r.g.Reload()
	r.log.wait(r.t, "configuration reloaded", before+1)
}

// T03: the token is nowhere in what the gateway says or logs.
func TestT03_TokenIsInNoAnswerAndNoLog(t *testing.T) {
	t.Parallel()
	r := start(t, setup{})
	for _, rt := range api.Routes() {
		method, path := concrete(rt.Pattern)
		if strings.HasSuffix(path, "/events") {
			continue // its end is the reader's
		}
		a := r.ask(method, path, "", nil)
		var head bytes.Buffer
		if err := a.Header.Write(&head); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(a.body, r.token) || strings.Contains(head.String(), r.token) || strings.Contains(a.body, "sk-test-canary") {
			t.Errorf("%s shows a credential", rt.Pattern)
		}
	}
	if log := r.log.String(); strings.Contains(log, r.token) || strings.Contains(log, "sk-test-canary") {
		t.Error("the log shows a credential")
	}
}

func TestBodiesAreReadStrictly(t *testing.T) {
	t.Parallel()
	r := start(t, setup{})
	for name, c := range map[string]struct {
		body, kind string
		status     int
		code       string
	}{
		"unknown field":  {`{"text":"a","txet":"b"}`, "application/json", 400, "invalid"},
		"two values":     {`{"text":"a"}{"text":"b"}`, "application/json", 400, "invalid"},
		"no JSON":        {`text=a`, "application/json", 400, "invalid"},
		"cut":            {`{"text":"a`, "application/json", 400, "invalid"},
		"a list":         {`[]`, "application/json", 400, "invalid"},
		"wrong type":     {`{"text":5}`, "application/json", 400, "invalid"},
		"a form":         {`text=a`, "application/x-www-form-urlencoded", 415, "media_type"},
		"plain text":     {`{"text":"a"}`, "text/plain", 415, "media_type"},
		"no text":        {`{"text":"  "}`, "application/json", 400, "invalid"},
		"no agent":       {`{"text":"a","agent":"nobody"}`, "application/json", 404, "not_found"},
		"negative wait":  {`{"text":"a","wait":-1}`, "application/json", 400, "invalid"},
		"too long wait":  {`{"text":"a","wait":601}`, "application/json", 400, "invalid"},
		"too long":       {`{"text":"` + strings.Repeat("a", 1<<20) + `"}`, "application/json", 413, "too_large"},
		"too long text":  {`{"text":"` + strings.Repeat("a", 300<<10) + `"}`, "application/json", 413, "too_large"},
		"other letters":  {`{"Text":"a"}`, "application/json", 400, "invalid"},
		"a name twice":   {`{"text":"a","text":"b"}`, "application/json", 400, "invalid"},
		"nested deeply":  {`{"text":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}`, "application/json", 400, "invalid"},
		"broken session": {`{"text":"a","session":"agent:x"}`, "application/json", 400, "invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			a := r.ask("POST", "/v1/messages", c.body, func(q *http.Request) { q.Header.Set("Content-Type", c.kind) })
			a.wantProblem(t, c.status, c.code)
			if strings.Contains(a.body, "json:") || strings.Contains(a.body, "Go ") {
				t.Errorf("it speaks of Go: %s", a.body)
			}
		})
	}
	if n := strings.Count(r.ask("GET", "/v1/sessions", "", nil).body, `"key"`); n != 0 {
		t.Errorf("%d sessions were made", n)
	}
}

func TestListsSayTheirLimits(t *testing.T) {
	t.Parallel()
	r := start(t, setup{})
	for _, q := range []string{"limit=0", "limit=501", "limit=x", "limit=-1"} {
		r.ask("GET", "/v1/sessions?"+q, "", nil).wantProblem(t, 400, "invalid")
	}
	for i := range 3 {
		r.ask("POST", "/v1/messages", fmt.Sprintf(`{"text":"hello","session":"s%d","wait":20}`, i), nil)
	}
	first := r.ask("GET", "/v1/sessions?limit=2", "", nil).fields(t)
	if n := len(first["items"].([]any)); n != 2 || first["next"] == nil {
		t.Fatalf("%d items, next %v", n, first["next"])
	}
	rest := r.ask("GET", "/v1/sessions?limit=2&after="+first["next"].(string), "", nil).fields(t)
	if n := len(rest["items"].([]any)); n != 1 || rest["next"] != nil {
		t.Fatalf("%d items, next %v", n, rest["next"])
	}
}

// T05: a channel's own calls come to it without our token, since it checks the network's signature; where no channel
// takes calls, a stranger hears the same as everywhere.
func TestT05_ANetworksCallsReachItsChannelAlone(t *testing.T) {
	t.Parallel()
	strange := newStrangers()
	r := start(t, setup{yaml: strangerYAML, nets: []channels.Factory{{Network: "strangers", Options: func() any { return &struct{}{} },
		New: func(string, any, channels.Deps) (channels.Channel, error) { return mounted{strange}, nil }}}})
	bare := func(q *http.Request) { q.Header.Del("Authorization") }
	if a := r.ask("POST", "/channels/net/events", "signed", bare); a.StatusCode != 200 || a.body != "/events signed" {
		t.Errorf("the channel's own: %d %s", a.StatusCode, a.body)
	}
	for _, path := range []string{"/channels/webchat/events", "/channels/none/events", "/channels/net%2Fevents/"} {
		if a := r.ask("POST", path, "signed", bare); a.StatusCode != 401 {
			t.Errorf("%s: %d", path, a.StatusCode)
		}
	}
	if a := r.ask("POST", "/channels/net/events", "signed", func(q *http.Request) { q.Host = "evil.example" }); a.StatusCode != 421 {
		t.Errorf("by another name: %d", a.StatusCode)
	}
}

// mounted is a channel that takes HTTP calls.
type mounted struct{ *strangers }

func (mounted) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s", r.URL.Path, body)
	})
}
