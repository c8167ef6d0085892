package api_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"parley/gateway/api"
)

// T07: a token that the configuration changes stops working on the next request, and so does one in the file.
func changedTokenCountsFromTheNextRequest(t *testing.T, r *rig) {
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
	r.write(strings.Replace(r.yaml, "gateway: {", "gateway: {token: a-third-token-of-the-configuration, ", 1))
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
	r.write(r.yaml)
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
func tokenIsInNoAnswerAndNoLog(t *testing.T, r *rig) {
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

func bodiesAreReadStrictly(t *testing.T, r *rig) {
	sessions := func() int { return strings.Count(r.ask("GET", "/v1/sessions?limit=500", "", nil).body, `"key"`) }
	before := sessions()
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
		"two agents":     {`{"text":"a","agent":"third","session":"assistant/main"}`, "application/json", 400, "invalid"},
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
	if after := sessions(); after != before {
		t.Errorf("%d sessions were made", after-before)
	}
}

func listsSayTheirLimits(t *testing.T, r *rig) {
	for _, q := range []string{"limit=0", "limit=501", "limit=x", "limit=-1"} {
		r.ask("GET", "/v1/sessions?"+q, "", nil).wantProblem(t, 400, "invalid")
	}
	for i := range 3 {
		r.ask("POST", "/v1/messages", fmt.Sprintf(`{"agent":"third","text":"hello","session":"s%d","wait":20}`, i), nil)
	}
	first := r.ask("GET", "/v1/sessions?agent=third&limit=2", "", nil).fields(t)
	if n := len(first["items"].([]any)); n != 2 || first["next"] == nil {
		t.Fatalf("%d items, next %v", n, first["next"])
	}
	rest := r.ask("GET", "/v1/sessions?agent=third&limit=2&after="+first["next"].(string), "", nil).fields(t)
	if n := len(rest["items"].([]any)); n != 1 || rest["next"] != nil {
		t.Fatalf("%d items, next %v", n, rest["next"])
	}
}

// T05: a channel's own calls come to it without our token, since it checks the network's signature; where no channel
// takes calls, a stranger hears the same as everywhere.
func aNetworksCallsReachItsChannelAlone(t *testing.T, r *rig) {
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

// T04: the token has 128 bits and is kept in a file for its owner only.
func tokenIsLongAndItsOwners(t *testing.T, r *rig) {
	if !regexp.MustCompile(`^[A-Z2-7]{26}$`).MatchString(r.token) {
		t.Errorf("the token is %d characters", len(r.token))
	}
	info, err := os.Stat(filepath.Join(r.dir, "data", "token"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
}

// T02, T20: the names that the configuration lists are the gateway's: for requests, for sign-ins behind a proxy that speaks TLS, and for
// the live line, whose WebSocket looks at the origin once more.
func configuredNamesAreTaken(t *testing.T, r *rig) {
	for host, want := range map[string]int{"parley.example.org": 200, "PARLEY.example.org": 200, "evil.example": 421, "xparley.example.org": 421,
		"talk.example.org": 200, "TALK.example.org": 200, "talk.example.org:8420": 421, "a.talk.example.org": 421, "talk.example.org.": 421} {
		if a := r.ask("GET", "/v1/me", "", func(q *http.Request) { q.Host = host }); a.StatusCode != want {
			t.Errorf("Host %q: %d %s", host, a.StatusCode, a.body)
		}
	}
	a := r.ask("POST", "/v1/sign-in", `{"code":"`+r.code()+`"}`, func(q *http.Request) {
		q.Header.Del("Authorization")
		q.Host = "parley.example.org"
		q.Header.Set("Origin", "https://parley.example.org")
	})
	if a.StatusCode != 204 || !strings.Contains(a.Header.Get("Set-Cookie"), "Secure") {
		t.Errorf("a sign-in over TLS: %d, %q", a.StatusCode, a.Header.Get("Set-Cookie"))
	}
	// The public address is one exact origin, and its cookie never travels in the open, whatever the proxy says of the origin.
	for origin, want := range map[string]int{"https://talk.example.org": 204, "": 204, "http://talk.example.org": 403,
		"https://talk.example.org:8443": 403, "https://evil.talk.example.org": 403, "null": 403} {
		a := r.ask("POST", "/v1/sign-in", `{"code":"`+r.code()+`"}`, func(q *http.Request) {
			q.Header.Del("Authorization")
			q.Host = "talk.example.org"
			if origin != "" {
				q.Header.Set("Origin", origin)
			}
		})
		if a.StatusCode != want || want == 204 && !strings.Contains(a.Header.Get("Set-Cookie"), "Secure") {
			t.Errorf("a sign-in at the public address from %q: %d, %q", origin, a.StatusCode, a.Header.Get("Set-Cookie"))
		}
	}
	here, elsewhere := r.g.SignInURL()
	if _, code, _ := strings.Cut(here, "#"); elsewhere != "https://talk.example.org/#"+code {
		t.Errorf("the links are %q and %q", here, elsewhere)
	}
	if url, _ := r.ask("POST", "/v1/sign-in/codes", "", nil).fields(t)["public_url"].(string); !strings.HasPrefix(url, "https://talk.example.org/#code=") {
		t.Errorf("the link of a new code: %q", url)
	}
	c := r.signIn()
	cookie, port := c.Name+"="+c.Value, r.g.URL()[strings.LastIndex(r.g.URL(), ":"):]
	for name, try := range map[string]struct {
		h    http.Header
		want int
	}{
		"a page":                    {http.Header{"Cookie": {cookie}, "Origin": {r.g.URL()}}, 101},
		"a page under another name": {http.Header{"Cookie": {cookie}, "Host": {"localhost" + port}, "Origin": {"http://localhost" + port}}, 101},
		"a page behind a proxy":     {http.Header{"Cookie": {cookie}, "Host": {"parley.example.org"}, "Origin": {"https://parley.example.org"}}, 101},
		"a page at the public one":  {http.Header{"Cookie": {cookie}, "Host": {"talk.example.org"}, "Origin": {"https://talk.example.org"}}, 101},
		"its plain twin":            {http.Header{"Cookie": {cookie}, "Host": {"talk.example.org"}, "Origin": {"http://talk.example.org"}}, 403},
		"a program":                 {http.Header{"Authorization": {"Bearer " + r.token}}, 101},
		"another site":              {http.Header{"Cookie": {cookie}, "Origin": {"https://evil.test"}}, 403},
		"a rebound name":            {http.Header{"Cookie": {cookie}, "Host": {"evil.test" + port}, "Origin": {"http://evil.test" + port}}, 421},
	} {
		_, res, err := r.dial(try.h)
		if res == nil || res.StatusCode != try.want {
			t.Errorf("%s: %+v, %v; want %d", name, res, err, try.want)
		}
	}
}

// The pace that the configuration sets holds after a reload.
func configuredPaceCountsFromTheNextRequest(t *testing.T, r *rig) {
	r.write(strings.Replace(r.yaml, "gateway: {", "gateway: {writes_per_second: 1, ", 1))
	r.reloaded()
	if err := os.WriteFile(filepath.Join(r.dir, "data", "token"), []byte(r.token+"\n"), 0o600); err != nil { // the part before has removed it
		t.Fatal(err)
	}
	refused := 0
	for range 25 {
		if a := r.ask("POST", "/v1/nothing", "{}", nil); a.StatusCode == http.StatusTooManyRequests {
			refused++
		}
	}
	if refused == 0 {
		t.Error("25 writes at once are taken at one a second")
	}
}
