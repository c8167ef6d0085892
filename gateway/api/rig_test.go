package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"parley/channels"
	"parley/configs"
	"parley/configs/source"
	"parley/gateway"
	"parley/gateway/client"
	"parley/tools/sandbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a whole daemon with a model whose words a test doles out.
type rig struct {
	t     *testing.T
	g     *gateway.Gateway
	dir   string
	conf  string
	model *model
	log   *syncBuffer
	token string
	c     *client.Client
	nets  []channels.Factory
	yaml  string     // of the configuration, as it began
	net   *strangers // nil: there is none
	clock *fakeClock // nil: time passes
	// session is where the messages of a test go that has a part of a story.
	session string
}

// part is a test that shares a daemon with others. It says what it does in a session of its own.
type part struct {
	name string // with the ids of what it proves, as .ci/ids reads them
	test func(*testing.T, *rig)
}

// tell runs the parts of a story one after the other.
func (r *rig) tell(parts []part) {
	for i, p := range parts {
		r.t.Run(p.name, func(t *testing.T) { p.test(t, r.at(t, fmt.Sprint("part", i))) })
	}
}

// at is the same daemon for another test, in another session.
func (r *rig) at(t *testing.T, session string) *rig {
	r.model.again()
	one := *r
	one.t, one.session = t, session
	return &one
}

// key is that of the session.
func (r *rig) key() string { return "agent:assistant:local:" + r.session }

// events is where the session is followed.
func (r *rig) events() string { return "/v1/sessions/" + url.PathEscape(r.key()) + "/events" }

// post sends a message with these fields to the session.
func (r *rig) post(fields string, edit func(*http.Request)) answer {
	r.t.Helper()
	return r.ask("POST", "/v1/messages", fmt.Sprintf(`{"session":%q,%s}`, r.session, fields), edit)
}

type syncBuffer struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	grew chan struct{} // closed by the next line
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.grew != nil {
		close(b.grew)
		b.grew = nil
	}
	return b.buf.Write(p)
}

// wait blocks until the log holds the text n times.
func (b *syncBuffer) wait(t *testing.T, text string, n int) {
	t.Helper()
	late := time.NewTimer(20 * time.Second)
	defer late.Stop()
	for {
		b.mu.Lock()
		if strings.Count(b.buf.String(), text) >= n {
			b.mu.Unlock()
			return
		}
		if b.grew == nil {
			b.grew = make(chan struct{})
		}
		grew := b.grew
		b.mu.Unlock()
		select {
		case <-grew:
		case <-late.C:
			t.Fatalf("the log never says %q", text)
		}
	}
}

// fakeClock moves when a test says so.
type fakeClock struct {
	mu sync.Mutex
	at time.Time
}

func (c *fakeClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *fakeClock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// model answers "echo: …" at once, or calls a tool for "look inside", but a text with "hold" piece by piece as the test sends them.
type model struct {
	*httptest.Server
	asked chan string

	mu     sync.Mutex
	pieces chan string // closed by finish
}

// again is for the next test: nothing was asked yet, and what it holds is its own.
func (m *model) again() {
	for len(m.asked) > 0 {
		<-m.asked
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pieces = make(chan string)
}

func (m *model) held() chan string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pieces
}

func newModel(t *testing.T) *model {
	m := &model{asked: make(chan string, 100), pieces: make(chan string)}
	m.Server = httptest.NewServer(http.HandlerFunc(m.serve))
	t.Cleanup(m.Close)
	return m
}

func (m *model) serve(w http.ResponseWriter, r *http.Request) {
	var req struct {
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil || len(req.Messages) == 0 {
		http.Error(w, "no", http.StatusBadRequest)
		return
	}
	last := string(req.Messages[len(req.Messages)-1].Content)
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(delta string) {
		fmt.Fprintf(w, "data: %s\n\n", delta)
		w.(http.Flusher).Flush()
	}
	chunk := func(fields string) string {
		return `{"id":"c","object":"chat.completion.chunk","model":"test-1","choices":[{"index":0,` + fields + `}]}`
	}
	select {
	case m.asked <- last:
	default:
	}
	if strings.Contains(last, "hold") {
		pieces := m.held()
		for open := true; open; {
			select {
			case p, ok := <-pieces:
				if open = ok; ok && p == "(think)" {
					send(chunk(`"delta":{"reasoning_content":"SECRET-REASONING"}`))
				} else if ok {
					text, _ := json.Marshal(p)
					send(chunk(`"delta":{"content":` + string(text) + `}`))
				}
			case <-r.Context().Done():
				return
			}
		}
	} else if req.Messages[len(req.Messages)-1].Role == "user" && strings.Contains(last, "look inside") {
		send(chunk(`"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"list_dir","arguments":"{\"path\":\".\"}"}}]}`))
		send(chunk(`"delta":{},"finish_reason":"tool_calls"`))
		send("[DONE]")
		return
	} else {
		text, _ := json.Marshal("echo: " + strings.Trim(last, `"`))
		send(chunk(`"delta":{"content":` + string(text) + `}`))
	}
	send(chunk(`"delta":{},"finish_reason":"stop"`))
	send(`{"id":"c","object":"chat.completion.chunk","model":"test-1","choices":[],"usage":{"prompt_tokens":11,"completion_tokens":7,"total_tokens":18}}`)
	send("[DONE]")
}

// say hands one piece to the model that is asked.
func (m *model) say(t *testing.T, piece string) {
	t.Helper()
	select {
	case m.held() <- piece:
	case <-t.Context().Done():
		t.Fatal("nobody asks the model")
	}
}

// finish ends the answer.
func (m *model) finish() { close(m.held()) }

type setup struct {
	yaml string // beside data_dir, listen and models
	opt  func(*gateway.Options)
	nets []channels.Factory

	net   *strangers // the network, unless nets says otherwise
	clock *fakeClock // which moves when a test says so
}

func start(t *testing.T, s setup) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir(), model: newModel(t), log: &syncBuffer{}, nets: s.nets, yaml: s.yaml, net: s.net, clock: s.clock, session: "main"}
	if s.net != nil && s.nets == nil {
		r.nets = []channels.Factory{s.net.factory()}
	}
	r.conf = filepath.Join(r.dir, "parley.yaml")
	r.write(s.yaml)
	r.run(s.opt)
	t.Cleanup(func() {
		r.stop()
		if t.Failed() {
			t.Log(r.log.String())
		}
	})
	return r
}

// write replaces the configuration.
func (r *rig) write(extra string) {
	r.t.Helper()
	if !strings.Contains(extra, "gateway:") {
		extra = "gateway: {listen: \"127.0.0.1:0\"}\n" + extra
	}
	if !strings.Contains(extra, "models:") {
		extra += fmt.Sprintf("\nmodels: [{name: m, api: openai, base_url: \"%s\", api_key: sk-test-canary, model: test-1}]", r.model.URL)
	}
	yaml := fmt.Sprintf("data_dir: %s/data\n%s\n", r.dir, extra)
	if err := os.WriteFile(r.conf, []byte(yaml), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) run(change func(*gateway.Options)) {
	r.t.Helper()
	none := func(string) (string, bool) { return "", false }
	var sections []configs.Section
	for _, f := range r.nets {
		sections = append(sections, configs.Section{Type: string(f.Network), Options: f.Options})
	}
	src := source.New(configs.LoadOptions{Path: r.conf, Sections: sections, Env: none})
	c, err := src.Load()
	if err != nil {
		r.t.Fatal(err)
	}
	book := gateway.NewLogbook()
	opt := gateway.Options{Source: src, Sandbox: sandbox.New(sandbox.Config{Backend: "none"}, sandbox.Deps{}), Env: none, Channels: r.nets, Log: slog.New(book.Handler(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))), Book: book, MemoryLimit: 8 << 30}
	if change != nil {
		change(&opt)
	}
	if r.clock != nil {
		opt.Now = r.clock.now
	}
	r.g = gateway.New(opt)
	if err := r.g.Start(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	if r.token, err = gateway.Token(c); err != nil || r.token == "" {
		r.t.Fatalf("token %q: %v", r.token, err)
	}
	r.c = r.client(r.token)
}

// pairing is the id of a user's wish to be let in.
func (r *rig) pairing(user string) string {
	r.t.Helper()
	for _, one := range r.ask("GET", "/v1/pairings", "", nil).fields(r.t)["items"].([]any) {
		if p := one.(map[string]any); p["user"] == user {
			return p["id"].(string)
		}
	}
	r.t.Fatalf("%s has not asked", user)
	return ""
}

// lastAudit is the number of the newest row of the audit log.
func (r *rig) lastAudit() int {
	r.t.Helper()
	return int(r.ask("GET", "/v1/audit/verify", "", nil).fields(r.t)["rows"].(float64))
}

func (r *rig) client(token string) *client.Client {
	r.t.Helper()
	c, err := client.New(r.g.URL(), token)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(c.Close)
	return c
}

func (r *rig) stop() {
	if r.g == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.t.Context()), 10*time.Second)
	defer cancel()
	if err := r.g.Stop(ctx); err != nil {
		r.t.Error(err)
	}
	r.g = nil
}

// answer is a reply as it came.
type answer struct {
	*http.Response
	body string
}

// ask sends a request with the right token; edit may change it.
func (r *rig) ask(method, path, body string, edit func(*http.Request)) answer {
	r.t.Helper()
	var rd io.Reader
	if body != "" {
		rd = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.g.URL()+path, rd)
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+r.token)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if edit != nil {
		edit(req)
	}
	tr := &http.Transport{DisableKeepAlives: true}
	defer tr.CloseIdleConnections()
	res, err := (&http.Client{Transport: tr}).Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, 4<<20))
	if err != nil {
		r.t.Fatal(err)
	}
	a := answer{res, string(text)}
	keepsToDocument(r.t, method, path, req.Header.Get("Content-Type"), body, a)
	return a
}

// fields decodes a reply.
func (a answer) fields(t *testing.T) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(a.body), &v); err != nil {
		t.Fatalf("%v in %q", err, a.body)
	}
	return v
}

// wantProblem checks status and type of an RFC 9457 answer.
func (a answer) wantProblem(t *testing.T, status int, code string) {
	t.Helper()
	if a.StatusCode != status || !strings.HasPrefix(a.Header.Get("Content-Type"), "application/problem+json") {
		t.Fatalf("%d %s %s; want %d %s", a.StatusCode, a.Header.Get("Content-Type"), a.body, status, code)
	}
	if got := a.fields(t)["type"]; got != "urn:parley:error:"+code {
		t.Fatalf("type %v, want %s", got, code)
	}
}

// send posts a message and returns what came back.
func (r *rig) send(m client.Message) client.Answer {
	r.t.Helper()
	if m.Session == "" {
		m.Session = r.session
	}
	a, err := r.c.Send(r.t.Context(), m)
	if err != nil {
		r.t.Fatal(err)
	}
	return a
}

// reader follows a stream in the background and hands over its events.
type reader struct {
	t      *testing.T
	events chan client.Event
	ended  chan error
	cancel context.CancelFunc
}

func (r *rig) follow(path string, after int64) *reader {
	r.t.Helper()
	ctx, cancel := context.WithCancel(r.t.Context())
	rd := &reader{t: r.t, events: make(chan client.Event, 1000), ended: make(chan error, 1), cancel: cancel}
	c := r.client(r.token)
	go func() {
		rd.ended <- c.Events(ctx, path, after, func(e client.Event) error {
			select {
			case rd.events <- e:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		close(rd.events)
	}()
	r.t.Cleanup(cancel)
	return rd
}

// until reads to the event that the condition wants and returns all that came, with it.
func (rd *reader) until(what string, want func(client.Event) bool) []client.Event {
	rd.t.Helper()
	late := time.NewTimer(20 * time.Second)
	defer late.Stop()
	var all []client.Event
	for {
		select {
		case e, ok := <-rd.events:
			if !ok {
				rd.t.Fatalf("the stream ended before %s: %v", what, all)
			}
			all = append(all, e)
			if want(e) {
				return all
			}
		case <-late.C:
			rd.t.Fatalf("no %s among %d events: %v", what, len(all), kinds(all))
		}
	}
}

// rest reads to the end of the stream.
func (rd *reader) rest() []client.Event {
	rd.t.Helper()
	var all []client.Event
	for {
		select {
		case e, ok := <-rd.events:
			if !ok {
				return all
			}
			all = append(all, e)
		case <-time.After(20 * time.Second):
			rd.t.Fatalf("the stream does not end: %v", kinds(all))
		}
	}
}

func kinds(events []client.Event) []string {
	var out []string
	for _, e := range events {
		out = append(out, fmt.Sprintf("%d:%s", e.Sequence, e.Type))
	}
	return out
}

func typed(kind string) func(client.Event) bool {
	return func(e client.Event) bool { return e.Type == kind }
}

// grown puts the deltas of events together, by item.
func grown(t *testing.T, events []client.Event) map[string]string {
	t.Helper()
	text := map[string]string{}
	for _, e := range events {
		if e.Type != "item.delta" {
			continue
		}
		var d client.Delta
		if err := json.Unmarshal(e.Data, &d); err != nil {
			t.Fatal(err)
		}
		var err error
		if text[d.ItemID], err = d.Apply(text[d.ItemID]); err != nil {
			t.Fatalf("%v: %s over %q", err, e.Data, text[d.ItemID])
		}
	}
	return text
}

// completed are the texts of finished items, by id.
func completed(t *testing.T, events []client.Event) map[string]string {
	t.Helper()
	text := map[string]string{}
	for _, e := range events {
		if e.Type != "item.completed" {
			continue
		}
		var d struct {
			Item struct {
				ID    string
				Parts []struct{ Type, Text string }
			}
		}
		if err := json.Unmarshal(e.Data, &d); err != nil {
			t.Fatal(err)
		}
		for _, p := range d.Item.Parts {
			if p.Type == "text" {
				text[d.Item.ID] += p.Text
			}
		}
	}
	return text
}
