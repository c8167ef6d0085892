package api_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

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

// Cookie and token are two ways to the same person: what one may, the other may, verb by verb.
func cookieHasTheRightsOfTheToken(t *testing.T, r *rig) {
	as := r.as(r.signIn())
	r.ask("DELETE", "/v1/sessions/agent:assistant:local:main", "", nil) // what is asked twice below finds the same
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

// T03: the code is in no answer but the one that made it, in no log and no address that is asked for; the cookie is kept
// from scripts and from other sites.
func signInLeaksNothing(t *testing.T, r *rig) {
	link, _ := r.g.SignInURL()
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
	p.send(map[string]any{"type": "follow", "key": r.key()})
	p.send(map[string]any{"type": "message", "id": "leaks one", "session": r.session, "text": "/status"})
	p.send(map[string]any{"type": "message", "id": "leaks two", "session": r.session, "text": "hello"})
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
	seen += r.log.String()
	for what, text := range secret {
		if strings.Contains(seen, text) {
			t.Errorf("the %s is told", what)
		}
	}
}

// again is the cookie after a restart on another port: browsers keep it by host, its name holds the port.
func (r *rig) again(c *http.Cookie) *http.Cookie {
	return &http.Cookie{Name: "parley" + strings.Replace(r.g.URL()[strings.LastIndex(r.g.URL(), ":"):], ":", "_", 1), Value: c.Value}
}

// A sign-in outlives a restart; one that was ended stays so, wherever a copy of its cookie is, and its live line ends.
func signInsOutliveARestart(t *testing.T, r *rig) (after func(*testing.T, *rig)) {
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
	return func(t *testing.T, r *rig) {
		if a := r.ask("GET", "/v1/me", "", r.as(r.again(stays))); a.StatusCode != 200 {
			t.Errorf("who stays: %d", a.StatusCode)
		}
		r.ask("GET", "/v1/me", "", r.as(r.again(goes))).wantProblem(t, 401, "unauthorized")
	}
}

// T07: a changed token signs everybody out at once, on open lines too, and voids the codes that were made.
func changedTokenSignsEverybodyOut(t *testing.T, r *rig) {
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
	if err := os.WriteFile(file, []byte(r.token+"\n"), 0o600); err != nil {
		t.Fatal(err)
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
