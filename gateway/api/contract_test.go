package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"parley/channels"
	"parley/gateway/api"
	"parley/gateway/client"
)

// contract is openapi.json, ready to judge requests and answers.
type contract struct {
	mu       sync.Mutex // the compiler is not safe for concurrent use
	doc      map[string]any
	compiler *jsonschema.Compiler
	mux      *http.ServeMux // to find the path of a request
}

var theContract = sync.OnceValues(func() (*contract, error) {
	text, err := os.ReadFile("openapi.json")
	if err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	c := &contract{doc: doc.(map[string]any), compiler: jsonschema.NewCompiler(), mux: http.NewServeMux()}
	c.compiler.AssertFormat()
	for _, rt := range api.Routes() {
		c.mux.Handle(rt.Pattern, http.NotFoundHandler())
	}
	return c, c.compiler.AddResource("urn:openapi", doc)
})

// at is what stands at a place of the document; nil: nothing.
func (c *contract) at(path ...string) any {
	var v any = c.doc
	for _, p := range path {
		m, _ := v.(map[string]any)
		v = m[p]
	}
	return v
}

// fits holds a JSON text against the schema at a place of the document.
func (c *contract) fits(text string, path ...string) error {
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return err
	}
	ref := "urn:openapi#"
	for _, p := range path {
		ref += "/" + url.PathEscape(strings.NewReplacer("~", "~0", "/", "~1").Replace(p))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s, err := c.compiler.Compile(ref)
	if err != nil {
		return err
	}
	return s.Validate(value)
}

// place is the path of the document that a request belongs to; empty: none.
func (c *contract) place(method, target string) string {
	u, err := url.Parse("http://x" + target)
	if err != nil {
		return ""
	}
	_, pattern := c.mux.Handler(&http.Request{Method: method, URL: u, Host: "x"})
	_, path, _ := strings.Cut(pattern, " ")
	return path
}

// keepsToDocument fails a test whose real request or answer is not what openapi.json says.
func keepsToDocument(t *testing.T, method, target, kind, body string, a answer) {
	t.Helper()
	c, err := theContract()
	if err != nil {
		t.Fatal(err)
	}
	path, verb := c.place(method, target), strings.ToLower(method)
	if path == "" || path == "/v1/live" || method == http.MethodHead { // the WebSocket library answers in its own words
		return
	}
	good := a.StatusCode < 300
	if good && body != "" && kind == "application/json" && c.at("paths", path, verb, "requestBody", "content", "application/json") != nil {
		if err := c.fits(body, "paths", path, verb, "requestBody", "content", "application/json", "schema"); err != nil {
			t.Errorf("%s %s was taken, but openapi.json has its body otherwise: %v\n%.500s", method, target, err, body)
		}
	}
	status := fmt.Sprint(a.StatusCode)
	if c.at("paths", path, verb, "responses", status) == nil {
		status = "default"
		if good {
			t.Errorf("%s %s: openapi.json knows no answer %d", method, target, a.StatusCode)
		}
	}
	content, _ := c.at("paths", path, verb, "responses", status, "content").(map[string]any)
	media, _, _ := strings.Cut(a.Header.Get("Content-Type"), ";")
	switch {
	case len(content) == 0 && a.body != "":
		t.Errorf("%s %s: openapi.json knows no body of %d", method, target, a.StatusCode)
	case content["*/*"] != nil:
	case len(content) > 0 && content[media] == nil:
		t.Errorf("%s %s: openapi.json has no %q of %d", method, target, media, a.StatusCode)
	case strings.HasSuffix(media, "json") && len(content) > 0:
		if err := c.fits(a.body, "paths", path, verb, "responses", status, "content", media, "schema"); err != nil {
			t.Errorf("%s %s: %v\n%.2000s", method, target, err, a.body)
		}
	}
}

// strangers is a network on which people unknown to the gateway write.
type strangers struct {
	in   channels.Intake
	up   chan struct{}
	sent chan channels.Post
}

func newStrangers() *strangers {
	return &strangers{up: make(chan struct{}), sent: make(chan channels.Post, 100)}
}

func (s *strangers) Account() channels.AccountID { return "bot" }

func (s *strangers) Run(ctx context.Context, in channels.Intake) error {
	s.in = in
	in.Report(channels.Status{State: channels.Ready})
	close(s.up)
	<-ctx.Done()
	return nil
}

func (s *strangers) Send(_ context.Context, p channels.Post) (channels.MessageID, error) {
	s.sent <- p
	if strings.HasPrefix(string(p.To.Peer), "gone") {
		return "", &channels.Error{Class: channels.PeerGone, Err: errors.New("they left")}
	}
	return "1", nil
}

func (s *strangers) Login(ctx context.Context, _ channels.LoginHow, show func(channels.LoginStep)) error {
	show(channels.LoginStep{QR: "2@scan-me", Expires: time.Now().Add(time.Minute)})
	<-ctx.Done()
	return ctx.Err()
}

func (s *strangers) Logout(context.Context) error { return nil }

func (s *strangers) factory() channels.Factory {
	return channels.Factory{Network: "strangers", Options: func() any { return &struct{}{} },
		New: func(string, any, channels.Deps) (channels.Channel, error) { return s, nil }}
}

// write sends a private message of a user.
func (s *strangers) write(t *testing.T, user, text string) {
	t.Helper()
	<-s.up
	err := s.in.Receive(t.Context(), channels.Inbound{Key: "m:" + user + ":" + text, Kind: channels.KindMessage, ID: channels.MessageID(text), Time: time.Now(), Text: text,
		From: channels.Sender{User: channels.UserID(user), Name: "Stranger " + user},
		To:   channels.Address{Network: "strangers", Account: "bot", Kind: channels.DM, Peer: channels.PeerID(user)}})
	if err != nil {
		t.Fatal(err)
	}
}

const strangerYAML = "channels: [{name: net, type: strangers}]\nroutes: [{channel: net, peer: \"7\", agent: assistant}]\n" +
	"domains: [{name: files, match: {tools: [list_dir]}, requester_may_approve: true}]\nagents: [{id: assistant, name: Assistant}]\n"

// Every endpoint of the document is asked, and answers as it says; keepsToDocument judges each exchange.
func TestEveryEndpointKeepsToOpenAPI(t *testing.T) {
	t.Parallel()
	net := newStrangers()
	yaml, opt := heldYAML(t)
	r := start(t, setup{yaml: strings.Replace(strangerYAML, "agents: [{id: assistant, name: Assistant}]", yaml, 1), opt: opt, nets: []channels.Factory{net.factory()}})
	seen := map[string]bool{}
	do := func(status int, method, path, body string, edit ...func(*http.Request)) map[string]any {
		t.Helper()
		a := r.ask(method, path, body, func(q *http.Request) {
			for _, e := range edit {
				e(q)
			}
		})
		if a.StatusCode != status {
			t.Fatalf("%s %s: %d %s, want %d", method, path, a.StatusCode, a.body, status)
		}
		c, err := theContract()
		if err != nil {
			t.Fatal(err)
		}
		seen[method+" "+c.place(method, path)+" "+fmt.Sprint(status)] = true
		if !strings.HasPrefix(a.Header.Get("Content-Type"), "application/json") {
			return nil
		}
		return a.fields(t)
	}
	net.write(t, "7", "let me in")
	net.write(t, "8", "and me")
	run := do(200, "POST", "/v1/messages", `{"text":"good day","wait":20}`)["run_id"].(string)
	held := do(202, "POST", "/v1/messages", `{"text":"hold on","session":"other"}`)["input_id"].(string)
	key := "/v1/sessions/" + url.PathEscape(r.key())
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/openapi.json", "/v1/status", "/v1/agents", "/v1/commands", "/v1/providers", "/v1/channels/kinds", "/v1/channels", "/v1/channels/net", "/v1/routes", "/v1/config", "/v1/logs?level=debug&limit=5",
		"/v1/audit", "/v1/audit?after=0&limit=1", "/v1/audit?before=3&limit=1", "/v1/audit?kind=config", "/v1/audit/verify", "/v1/usage", "/v1/usage?by=agent", "/v1/usage?by=person&agent=assistant", "/v1/usage?by=model&from=2020-01-01&to=2020-02-01", "/v1/people", "/v1/people/local", "/v1/runs", "/v1/runs?limit=1",
		"/v1/runs?agent=assistant&state=running", "/v1/runs?session=" + url.QueryEscape(r.key()), "/v1/runs?state=completed&requester=local", "/v1/runs/" + run, "/v1/runs/" + held,
		"/v1/runs/" + run + "/log?offset=1&limit=2", "/v1/sessions", "/v1/sessions?q=good&agent=assistant&limit=1", key, key + "/entries?limit=2", key + "/entries?before=3", key + "/generations", key + "/models", "/v1/agents/assistant/models", "/v1/pairings", "/v1/failing", "/v1/me"} {
		do(200, "GET", path, "")
	}
	if a := r.ask("GET", "/v1/runs/"+run, "", nil).fields(t); len(a["steps"].([]any)) != 1 || len(a["timeline"].([]any)) < 4 || a["delivery"] != "not_requested" {
		t.Errorf("detail: %v", a)
	}
	do(200, "POST", "/v1/runs/"+held+"/pause", "")
	do(200, "POST", "/v1/runs/"+held+"/resume", "")
	do(200, "POST", "/v1/runs/"+held+"/stop", "")
	do(200, "POST", "/v1/runs/"+held+"/retry", "")
	do(202, "POST", "/v1/messages", `{"text":"look inside","session":"files"}`)
	asked := waitFor(t, 1, func() []any { return do(200, "GET", "/v1/approvals?state=pending", "")["items"].([]any) })
	do(200, "GET", "/v1/grants", "")
	approval := "/v1/approvals/" + asked[0].(map[string]any)["id"].(string)
	do(200, "GET", approval, "")
	do(200, "POST", approval, `{"decision":"once"}`)
	do(409, "POST", approval, `{"decision":"deny"}`)
	do(200, "GET", approval, "")
	do(200, "POST", "/v1/stop", "")
	do(200, "POST", "/v1/routes/explain", `{"channel":"net","peer":"9","text":"hello"}`)
	do(200, "POST", "/v1/agents/assistant/policy/explain", `{"role":"guest","channel":"net"}`)
	do(200, "POST", "/v1/agents/assistant/policy/explain", `{"tool":"exec","args":{"command":"ls"}}`)
	do(200, "POST", "/v1/channels/net/test", "")
	do(200, "GET", "/v1/folders", "")
	do(200, "POST", "/v1/folders/proj/accept", `{"path":"x/.git"}`)
	do(404, "POST", "/v1/folders/proj/accept", `{"path":"x/.git"}`)
	r.put("files/a.txt", "text")
	do(200, "GET", key+"/files?path=files", "")
	do(400, "DELETE", key+"/files?path=files", "")
	do(200, "DELETE", key+"/files?path=files&folder=true", "")
	linking(t, do)
	do(200, "POST", "/v1/models/try", `{"provider":"ollama","base_url":"http://127.0.0.1:9/v1","model":"m"}`)
	do(202, "POST", "/v1/config/reload", "{}")
	setUp(do)
	do(200, "POST", "/v1/backup", "")
	made := do(201, "POST", "/v1/sessions", `{"agent":"assistant","name":"Trip"}`)["key"].(string)
	made = "/v1/sessions/" + url.PathEscape(made)
	do(200, "PATCH", made, `{"name":"Journey"}`)
	newest := r.ask("GET", key, "", nil).fields(t)
	do(204, "PUT", key+"/read", fmt.Sprintf(`{"session_id":%q,"sequence":%v}`, newest["session_id"], newest["sequence"]))
	if a := do(200, "PATCH", made+"/models", `{"model":"m"}`); a["chosen"] != nil || a["may_change"] != true {
		t.Errorf("models: %v", a)
	}
	do(204, "DELETE", made, "")
	do(201, "POST", key+"/fork", `{"before":3}`)
	pairings := do(200, "GET", "/v1/pairings", "")["items"].([]any)
	if len(pairings) != 2 {
		t.Fatalf("pairings: %v", pairings)
	}
	do(200, "POST", "/v1/pairings/"+pairings[0].(map[string]any)["id"].(string)+"/approve", `{"as":"member"}`)
	do(200, "POST", "/v1/pairings/"+pairings[1].(map[string]any)["id"].(string)+"/deny", "")
	net.write(t, "gone1", "hello")
	net.write(t, "gone2", "hello")
	dead := waitFor(t, 2, func() []any { return do(200, "GET", "/v1/outbound?state=dead", "")["items"].([]any) })
	do(200, "POST", "/v1/outbound/"+dead[0].(map[string]any)["id"].(string)+"/drop", "")
	do(200, "POST", "/v1/outbound/"+dead[1].(map[string]any)["id"].(string)+"/retry", "")
	ref := do(201, "POST", "/v1/files?name=note.txt", "plain text", func(q *http.Request) { q.Header.Set("Content-Type", "text/plain") })["ref"].(string)
	do(200, "GET", "/v1/files/"+ref, "")
	do(206, "GET", "/v1/files/"+ref, "", func(q *http.Request) { q.Header.Set("Range", "bytes=0-3") })
	code := do(201, "POST", "/v1/sign-in/codes", "")["code"].(string)
	noToken := func(q *http.Request) { q.Header.Del("Authorization") }
	do(204, "POST", "/v1/sign-in", `{"code":"`+code+`"}`, noToken)
	do(204, "POST", "/v1/sign-out", "")

	streams(t, r, run, seen)
	seen["GET /v1/live 101"] = true                 // a WebSocket; its frames have tests of their own
	for _, status := range []string{"200", "206"} { // needs a sandbox: the walk with tools reads it (channels/webchat/ui/e2e)
		seen["GET /v1/runs/{id}/steps/{call}/output "+status] = true
	}
	seen["DELETE /v1/grants/{id} 200"] = true // the same: the walk of an approval revokes one
	c, err := theContract()
	if err != nil {
		t.Fatal(err)
	}
	for path, verbs := range c.at("paths").(map[string]any) {
		for verb, op := range verbs.(map[string]any) {
			for status := range op.(map[string]any)["responses"].(map[string]any) {
				if way := strings.ToUpper(verb) + " " + path + " " + status; status != "default" && !seen[way] {
					t.Errorf("nobody asked for %s", way)
				}
			}
		}
	}
}

// setUp reads, checks, writes and changes the configuration's file.
func setUp(do func(int, string, string, string, ...func(*http.Request)) map[string]any) {
	file := do(200, "GET", "/v1/config/file", "")
	text, _ := json.Marshal(file["text"].(string) + "# By hand.\n")
	do(200, "POST", "/v1/config/check", fmt.Sprintf(`{"text":%s}`, text))
	do(200, "PUT", "/v1/config/file", fmt.Sprintf(`{"text":%s,"revision":%q}`, text, file["revision"]))
	do(409, "PUT", "/v1/config/file", fmt.Sprintf(`{"text":%s,"revision":%q}`, text, file["revision"]))
	do(200, "POST", "/v1/config/change", `{"changes":[{"path":"replies.first_sign","value":"6s"}]}`)
	do(422, "POST", "/v1/config/change", `{"changes":[{"path":"replies.first_sign","value":"6 apples"}]}`)
}

// linking is the life of a login.
func linking(t *testing.T, do func(int, string, string, string, ...func(*http.Request)) map[string]any) {
	t.Helper()
	if a := do(202, "POST", "/v1/channels/net/login", `{}`); a["qr"] != "2@scan-me" || !strings.HasPrefix(fmt.Sprint(a["image"]), "data:image/png;base64,") {
		t.Errorf("a login shows %v", a)
	}
	do(200, "GET", "/v1/channels/net/login", "")
	do(204, "DELETE", "/v1/channels/net/login", "")
	given := do(200, "GET", "/v1/channels/net/login", "")
	if given["state"] != "failed" {
		t.Errorf("a login that was given up is %v", given)
	}
	if a := do(202, "POST", "/v1/channels/net/login", `{}`); a["state"] != "waiting" || a["step"].(float64) <= given["step"].(float64) {
		t.Errorf("a login right behind one that was given up is %v", a)
	}
	do(204, "DELETE", "/v1/channels/net/login", "")
	if a := do(200, "GET", "/v1/channels/net/login?after=2", ""); a["state"] != "failed" {
		t.Errorf("a login that was given up is %v", a)
	}
	do(200, "POST", "/v1/channels/net/logout", "")
}

// waitFor asks until a list holds so many.
func waitFor(t *testing.T, n int, ask func() []any) []any {
	t.Helper()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for range 1000 {
		if list := ask(); len(list) == n {
			return list
		}
		<-again.C
	}
	t.Fatalf("there are never %d", n)
	return nil
}

// streams reads one event of each stream and holds it against the document.
func streams(t *testing.T, r *rig, run string, seen map[string]bool) {
	t.Helper()
	c, err := theContract()
	if err != nil {
		t.Fatal(err)
	}
	for path, schema := range map[string]string{"/v1/runs/" + run + "/events": "Event", "/v1/sessions/" + url.PathEscape(r.key()) + "/events": "Event", "/v1/logs/events?level=info": "LogItem"} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		body, err := r.c.Stream(ctx, http.MethodGet, path, nil)
		if err != nil {
			t.Fatal(err)
		}
		frame, err := client.NewFrames(body).Next()
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if err := c.fits(frame.Data, "components", "schemas", schema); err != nil {
			t.Errorf("%s: %v\n%s", path, err, frame.Data)
		}
		cancel()
		_ = body.Close() // it was cut
		seen["GET "+c.place("GET", path)+" 200"] = true
	}
}

// A drift must bite: an answer that the document does not know is found.
func TestTheContractBites(t *testing.T) {
	t.Parallel()
	c, err := theContract()
	if err != nil {
		t.Fatal(err)
	}
	for text, good := range map[string]bool{
		`{"id":"a","name":"A","models":["m"],"default":true}`:         true,
		`{"id":"a","name":"A","models":null,"default":true}`:          false,
		`{"id":"a","name":"A","models":["m"],"default":"yes"}`:        false,
		`{"id":"a","name":"A","models":["m"]}`:                        false,
		`{"id":"a","name":"A","models":["m"],"default":true,"new":1}`: false,
	} {
		if err := c.fits(text, "components", "schemas", "Agent"); (err == nil) != good {
			t.Errorf("%s: %v", text, err)
		}
	}
	if c.at("openapi") != "3.1.0" {
		t.Errorf("it is OpenAPI %v", c.at("openapi"))
	}
}
