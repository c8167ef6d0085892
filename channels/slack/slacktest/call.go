package slacktest

import (
	"encoding/json"
	"io"
	"maps"
	"math"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxBody is the largest body of a Web API call that is read, in bytes.
const maxBody = 2 << 20

// reply is the answer of a method without "ok".
type reply map[string]any

// failure is an answer with "ok": false.
type failure struct {
	code     string
	messages []string // response_metadata.messages
	extra    reply
	after    time.Duration // of ratelimited: answered as 429
}

func fail(code string, messages ...string) *failure { return &failure{code: code, messages: messages} }

// call is one request of the Web API. Its method runs under the server's lock.
type call struct {
	s    *Server
	name string
	team *Team // nil for the app-level token
	args map[string]string
	// sent holds what must be told to hooks after the lock is released.
	sent []func()
}

func (c *call) get(key string) string { return c.args[key] }

func (c *call) has(key string) bool { _, ok := c.args[key]; return ok }

func (c *call) bool(key string) bool {
	v := c.args[key]
	return v == "true" || v == "1"
}

func (c *call) int(key string, otherwise int) int {
	n, err := strconv.Atoi(c.args[key])
	if err != nil {
		return otherwise
	}
	return n
}

// serveMethod runs one call of the Web API.
func (s *Server) serveMethod(w http.ResponseWriter, r *http.Request, name string) {
	m := s.methods[name]
	if m == nil {
		writeFailure(w, fail("unknown_method"))
		return
	}
	hit := s.faults.Take(name)
	if !hit.Before(r, func(f Fault) { s.answerFault(w, f) }) {
		return
	}
	c := &call{s: s, name: name}
	token, bad := c.read(r)
	var out reply
	if bad == nil {
		out, bad = s.act(c, m, token, w.Header())
	}
	for _, tell := range c.sent {
		tell()
	}
	hit.After(w, []byte(someAnswer))
	if bad != nil {
		writeFailure(w, bad)
		return
	}
	if out == nil {
		out = reply{}
	}
	out["ok"] = true
	writeReply(w, http.StatusOK, out)
}

// act checks the token, its kind, its scopes and the pace, then runs the method.
func (s *Server) act(c *call, m *method, token string, h http.Header) (reply, *failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m.calls++
	if bad := s.authorize(c, m, token, h); bad != nil {
		return nil, bad
	}
	if c.team != nil {
		if wait := s.limits.method(c.team.ID, m); wait > 0 {
			return nil, limited(wait)
		}
	}
	return m.run(c)
}

// authorize follows https://docs.slack.dev/authentication/tokens: the order of the checks is Slack's.
func (s *Server) authorize(c *call, m *method, token string, h http.Header) *failure {
	if m.name == "api.test" {
		return nil
	}
	if token == "" {
		return fail("not_authed")
	}
	if token == s.app.Token {
		if s.app.refused != "" {
			return fail(s.app.refused)
		}
		if !m.app && m.name != "auth.test" {
			return fail("not_allowed_token_type")
		}
		h.Set("X-OAuth-Scopes", strings.Join(s.app.Scopes, ","))
		return needs(s.app.Scopes, neededOf(m))
	}
	for _, t := range s.teams {
		if t.Token != token {
			continue
		}
		if t.refused != "" {
			return fail(t.refused)
		}
		if m.app {
			return fail("not_allowed_token_type")
		}
		c.team = t
		if !t.NoScopesHeader {
			h.Set("X-OAuth-Scopes", strings.Join(t.Scopes, ","))
			h.Set("X-Accepted-OAuth-Scopes", strings.Join(m.scopes, ","))
		}
		return needs(t.Scopes, m.scopes)
	}
	return fail("invalid_auth")
}

func neededOf(m *method) []string {
	if m.app {
		return []string{"connections:write"}
	}
	return nil
}

// needs is missing_scope unless one of the wanted scopes is there.
func needs(have, want []string) *failure {
	if len(want) == 0 || slices.ContainsFunc(want, func(s string) bool { return slices.Contains(have, s) }) {
		return nil
	}
	return &failure{code: "missing_scope", extra: reply{"needed": strings.Join(want, ","), "provided": strings.Join(have, ",")}}
}

func limited(wait time.Duration) *failure { return &failure{code: "ratelimited", after: wait} }

// read takes the token and the arguments from the header, the query, a form, multipart or JSON body.
func (c *call) read(r *http.Request) (token string, bad *failure) {
	c.args = map[string]string{}
	c.form(r.URL.Query())
	if auth, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		token = strings.TrimSpace(auth)
	}
	if r.Method == http.MethodPost {
		if bad := c.body(r); bad != nil {
			return "", bad
		}
	}
	if token == "" {
		token = c.args["token"]
	}
	delete(c.args, "token")
	return token, nil
}

func (c *call) body(r *http.Request) *failure {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil && r.ContentLength != 0 {
		return fail("missing_post_type")
	}
	if kind == "multipart/form-data" {
		if err := r.ParseMultipartForm(maxBody); err != nil {
			return fail("invalid_form_data")
		}
		c.form(r.MultipartForm.Value)
		return nil
	}
	raw, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return fail("request_timeout")
	}
	switch kind {
	case "application/json":
		return c.json(raw)
	case "application/x-www-form-urlencoded", "":
		values, err := url.ParseQuery(string(raw))
		if err != nil {
			return fail("invalid_form_data")
		}
		c.form(values)
		return nil
	}
	return fail("invalid_post_type")
}

func (c *call) form(values map[string][]string) {
	for k, v := range values {
		if len(v) > 0 {
			c.args[k] = v[0]
		}
	}
}

// json keeps strings as they are and everything else as its JSON, so that both kinds of bodies read alike.
func (c *call) json(raw []byte) *failure {
	if len(raw) == 0 {
		return nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		if json.Valid(raw) {
			return fail("json_not_object")
		}
		return fail("invalid_json")
	}
	delete(fields, "token") // in a JSON body it does not count
	for k, v := range fields {
		var text string
		switch {
		case string(v) == "null":
		case json.Unmarshal(v, &text) == nil:
			c.args[k] = text
		default:
			c.args[k] = string(v)
		}
	}
	return nil
}

func writeFailure(w http.ResponseWriter, f *failure) {
	out := reply{"ok": false, "error": f.code}
	maps.Copy(out, f.extra)
	if len(f.messages) > 0 {
		out["errors"] = f.messages
		lines := make([]string, len(f.messages))
		for i, m := range f.messages {
			lines[i] = "[ERROR] " + m
		}
		out["response_metadata"] = reply{"messages": lines}
	}
	if f.after > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(f.after.Seconds()))))
		writeReply(w, http.StatusTooManyRequests, out)
		return
	}
	writeReply(w, http.StatusOK, out)
}

func writeReply(w http.ResponseWriter, status int, v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // our own maps
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(raw)))
	w.WriteHeader(status)
	_, _ = w.Write(raw) // the client may be gone
}
