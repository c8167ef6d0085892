package api_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"strings"
	"testing"
	"time"
)

// lastingActs are requests that would outlive the sign-in that makes them.
func lastingActs(pairing string) map[string][3]string {
	return map[string][3]string{
		"a backup":           {"POST", "/v1/backup", "{}"},
		"another code":       {"POST", "/v1/sign-in/codes", "{}"},
		"a program's orders": {"POST", "/v1/folders/proj/accept", `{"path":".git"}`},
		"a wider host list":  {"POST", "/v1/config/change", `{"changes":[{"path":"gateway.allowed_hosts","value":["evil.example"]}]}`},
		"an owner by file":   {"POST", "/v1/config/change", `{"changes":[{"path":"people[eve]","value":{"id":"eve","role":"owner"}}]}`},
		"a file's content":   {"POST", "/v1/config/change", `{"changes":[{"path":"models[m].model","value":"${file:data/token}"}]}`},
		"a look at a file":   {"POST", "/v1/config/check", `{"text":"models: [{name: m, api: offline, model: \"${file:data/token}\"}]"}`},
		"another owner":      {"POST", "/v1/pairings/" + pairing + "/approve", `{"as":"owner"}`},
	}
}

// T28: a sign-in can do what would outlive it, or is stronger than it, while it is fresh only; one that another sign-in asked for
// never is, and ends with it.
func aSignInCannotMakeItselfPermanent(t *testing.T, r *rig) {
	r.net.write(t, "7", "hello")
	id := r.ask("GET", "/v1/pairings", "", nil).fields(t)["items"].([]any)[0].(map[string]any)["id"].(string)
	refused := func(who string, c *http.Cookie) {
		t.Helper()
		for what, q := range lastingActs(id) {
			a := r.ask(q[0], q[1], q[2], r.as(c))
			if a.StatusCode != http.StatusForbidden || !strings.Contains(a.body, "urn:parley:error:fresh_sign_in") || !strings.Contains(a.body, "parley webchat") {
				t.Errorf("%s by %s: %d %.200s", what, who, a.StatusCode, a.body)
			}
		}
		if a := r.ask("GET", "/v1/me", "", r.as(c)); a.StatusCode != http.StatusOK {
			t.Errorf("%s is out: %d", who, a.StatusCode)
		}
	}
	fresh := r.signIn()
	if a := r.ask("POST", "/v1/backup", "{}", r.as(fresh)); a.StatusCode != http.StatusOK {
		t.Errorf("a backup by a fresh sign-in: %d %.200s", a.StatusCode, a.body)
	}
	made := func(c *http.Cookie) *http.Cookie {
		t.Helper()
		a := r.redeem(r.ask("POST", "/v1/sign-in/codes", "{}", r.as(c)).fields(t)["code"].(string))
		if a.StatusCode != http.StatusNoContent {
			t.Fatalf("%d %s", a.StatusCode, a.body)
		}
		return a.Cookies()[0]
	}
	second := made(fresh)
	refused("a sign-in that a sign-in asked for", second)
	late := r.ask("POST", "/v1/sign-in/codes", "{}", r.as(fresh)).fields(t)["code"].(string)
	r.clock.add(10 * time.Minute)
	refused("a sign-in of ten minutes ago", fresh)
	refused("a sign-in of before there was a freshness", oldCookie(fresh.Name, r.token, r.clock.now()))
	if a := r.ask("POST", "/v1/backup", "{}", func(q *http.Request) { q.AddCookie(fresh) }); a.StatusCode != http.StatusOK {
		t.Errorf("a backup by the token, with a cookie beside it: %d", a.StatusCode)
	}
	if a := r.ask("POST", "/v1/pairings/"+id+"/approve", `{"as":"member"}`, r.as(fresh)); a.StatusCode != http.StatusOK {
		t.Errorf("another member: %d %s", a.StatusCode, a.body)
	}
	if a := r.ask("POST", "/v1/sign-out", "{}", r.as(second)); a.StatusCode != http.StatusNoContent {
		t.Errorf("sign-out: %d %s", a.StatusCode, a.body)
	}
	r.ask("GET", "/v1/me", "", r.as(fresh)).wantProblem(t, 401, "unauthorized") // it is the same sign-in
	aCodeMakesASignInFreshAgain(t, r)
	if a := r.redeem(late); a.StatusCode != http.StatusUnauthorized {
		t.Errorf("a code of a sign-in that was ended: %d", a.StatusCode)
	}
}

// A code of the token, given by a browser that is signed in, makes that sign-in fresh; when it ends all its copies do.
func aCodeMakesASignInFreshAgain(t *testing.T, r *rig) {
	first := r.signIn()
	code := func() string { return r.ask("POST", "/v1/sign-in/codes", "{}", nil).fields(t)["code"].(string) }
	again := func(c *http.Cookie) *http.Cookie {
		t.Helper()
		a := r.ask("POST", "/v1/sign-in", `{"code":"`+code()+`"}`, r.as(c))
		if a.StatusCode != http.StatusNoContent {
			t.Fatalf("%d %s", a.StatusCode, a.body)
		}
		return a.Cookies()[0]
	}
	r.clock.add(20 * time.Minute)
	second := again(first)
	if a := r.ask("POST", "/v1/sign-in/codes", "{}", r.as(second)); a.StatusCode != http.StatusCreated {
		t.Errorf("a fresh code: %d %s", a.StatusCode, a.body)
	}
	r.ask("POST", "/v1/sign-in/codes", "{}", r.as(first)).wantProblem(t, 403, "fresh_sign_in")
	r.clock.add(20 * 24 * time.Hour)
	third := again(second)
	if a := r.ask("POST", "/v1/sign-out", "{}", r.as(first)); a.StatusCode != http.StatusNoContent {
		t.Fatalf("sign-out: %d %s", a.StatusCode, a.body)
	}
	r.clock.add(15 * 24 * time.Hour) // the first copy would have ended by itself
	other := r.signIn()
	if a := r.ask("POST", "/v1/sign-out", "{}", r.as(other)); a.StatusCode != http.StatusNoContent { // what is over is forgotten
		t.Fatalf("sign-out: %d %s", a.StatusCode, a.body)
	}
	r.ask("GET", "/v1/me", "", r.as(third)).wantProblem(t, 401, "unauthorized")
}

// oldCookie is one of the first version, which held no freshness.
func oldCookie(name, token string, now time.Time) *http.Cookie {
	sign := func(key, body []byte) []byte {
		m := hmac.New(sha256.New, key)
		m.Write(body)
		return m.Sum(nil)
	}
	body := append(binary.BigEndian.AppendUint64(nil, uint64(now.Add(time.Hour).Unix())), make([]byte, 16)...)
	enc := base64.RawURLEncoding.EncodeToString
	return &http.Cookie{Name: name, Value: "1." + enc(body) + "." + enc(sign(sign([]byte(token), []byte("parley sign-in 1")), body))}
}

// T28: what a page may not do by a route it may not do by a command either.
func aBrowserLinksNoAccounts(t *testing.T, r *rig) {
	c := r.signIn()
	say := func(edit func(*http.Request)) string {
		t.Helper()
		return r.post(`"text":"/link","wait":20`, edit).fields(t)["text"].(string)
	}
	if text := say(r.as(c)); strings.Contains(text, "not linked from a browser") {
		t.Errorf("fresh: %s", text)
	}
	r.clock.add(10 * time.Minute)
	if text := say(r.as(c)); !strings.Contains(text, "not linked from a browser") {
		t.Errorf("ten minutes later: %s", text)
	}
	if text := say(nil); strings.Contains(text, "not linked from a browser") {
		t.Errorf("by token: %s", text)
	}
}
