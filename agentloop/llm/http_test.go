package llm_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/agentloop/llm"
	"parley/agentloop/llm/anthropic"
	"parley/agentloop/llm/llmtest"
	"parley/agentloop/llm/openai"
	"parley/workspace"
)

func model(t *testing.T, c *http.Client, name string, s llmtest.Script) llm.Model {
	t.Helper()
	srv := llmtest.Start(t, s)
	m, err := openai.New(openai.Options{Name: name, Model: "test-model", BaseURL: srv.URL, APIKey: "sk-test-0123", HTTP: c})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// The whole way over HTTP: 200 turns at once against a primary that limits, cuts and fails, with a fallback.
func TestR11_TurnsGetTheirAnswersFromABadServer(t *testing.T) {
	t.Parallel()
	tr := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(tr.CloseIdleConnections)
	c := &http.Client{Transport: tr}
	bad := func(r *llmtest.Request) llmtest.Reply {
		switch r.N % 7 {
		case 1:
			return llmtest.TooMany("0.05")
		case 2:
			return llmtest.Failing(503)
		case 3:
			return llmtest.Cut("half " + r.LastUser())
		}
		return llmtest.Echo(r)
	}
	reg, err := llm.NewRegistry(llm.RegistryOptions{PerModel: 16}, model(t, c, "bad", bad), model(t, c, "good", llmtest.Echo))
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			m, err := reg.Chain([]string{"bad", "good"}, nil)
			if err != nil {
				t.Error(err)
				return
			}
			text, want := "", fmt.Sprintf("echo: question %d", i)
			r, err := m.Stream(t.Context(), llm.Request{Messages: []llm.Message{{Role: llm.User,
				Content: []workspace.Content{{Kind: workspace.Text, Text: fmt.Sprintf("question %d", i)}}}}}, func(d llm.Delta) {
				if d.Discard {
					text = ""
				}
				text += d.Text
			})
			if err != nil || text != want || len(r.Content) != 1 || r.Content[0].Text != want {
				t.Errorf("shown %q, answer %+v, %v", text, r, err)
			}
		})
	}
	wg.Wait()
	for _, h := range reg.Health() {
		if h.Busy != 0 || strings.Contains(h.LastError, "sk-test") {
			t.Errorf("%+v", h)
		}
	}
}

// One conversation over a chain of two providers: the first thinks, calls tools and falls away for a while; the other
// goes on with its calls, under ids that the first would refuse; and the first gets on with both. Each server refuses
// what the real one would.
func TestR11_ConversationMovesBetweenProviders(t *testing.T) {
	t.Parallel()
	tr := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(tr.CloseIdleConnections)
	c := &http.Client{Transport: tr}
	away := func(round int) bool { return round == 1 || round == 3 }
	first := llmtest.Start(t, func(r *llmtest.Request) llmtest.Reply {
		if away(r.Round()) {
			return llmtest.Reply{Status: 401}
		}
		if r.Round() == 5 {
			return llmtest.Reply{Text: "done by the first"}
		}
		return llmtest.Reply{Reasoning: "private thought", Text: "Looking.", Calls: []llmtest.Call{{Name: "look", Args: `{"a":1}`}, {Name: "look", Args: `{"a":2}`}}}
	})
	claude, err := anthropic.New(anthropic.Options{Name: "claude", Model: "test-model", BaseURL: first.URL, APIKey: "sk-ant-0123", HTTP: c})
	if err != nil {
		t.Fatal(err)
	}
	second := llmtest.Start(t, func(r *llmtest.Request) llmtest.Reply {
		return llmtest.Reply{Reasoning: "another thought", Calls: []llmtest.Call{{ID: fmt.Sprintf("functions.look:%d", r.N), Name: "look", Args: `{}`}}}
	})
	other, err := openai.New(openai.Options{Name: "other", Model: "test-model", BaseURL: second.URL, APIKey: "sk-test-0123", HTTP: c})
	if err != nil {
		t.Fatal(err)
	}
	reg, err := llm.NewRegistry(llm.RegistryOptions{}, claude, other)
	if err != nil {
		t.Fatal(err)
	}
	m, err := reg.Chain([]string{"claude", "other"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	req := llm.Request{System: "Sys", Volatile: "Monday", Tools: []llm.Tool{{Name: "look"}},
		Messages: []llm.Message{{Role: llm.User, Content: []workspace.Content{{Kind: workspace.Text, Text: "what is it?"}}}}}
	for round := range 6 {
		r, err := m.Stream(t.Context(), req, nil)
		want := "claude"
		if away(round) {
			want = "other"
		}
		if err != nil || r.Model != want {
			t.Fatalf("round %d: %+v, %v", round, r, err)
		}
		if round == 5 {
			if workspace.PlainText(r.Content) != "done by the first" {
				t.Errorf("%+v", r)
			}
			break
		}
		req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Content: r.Content})
		for _, call := range r.ToolCalls() {
			req.Messages = append(req.Messages, llm.Message{Role: llm.ToolRole, Content: []workspace.Content{
				{Kind: workspace.ToolResult, CallID: call.CallID, Name: call.Name, Text: "seen"}}})
		}
	}
	if n := second.Count(); n != 2 {
		t.Errorf("the second was asked %d times", n)
	}
	for i, b := range second.Bodies() {
		if strings.Contains(b, "private thought") || strings.Contains(b, "signature") {
			t.Errorf("call %d: the first one's thinking went to the second: %s", i, b)
		}
	}
	bodies := first.Bodies()
	if last := bodies[len(bodies)-1]; strings.Contains(last, "another thought") || !strings.Contains(last, "private thought") {
		t.Errorf("thinking in the last call: %s", last)
	}
}

// Whatever a server or the way to it does, on both wires: what people are told names the model, the code and the cause, without an
// address or a key.
func TestBothWiresNameTheCause(t *testing.T) {
	t.Parallel()
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	nowhere := http.Transport{}
	nowhere.DialContext = func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "models.internal", IsNotFound: true}}
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	untrusted := httptest.NewUnstartedServer(http.NotFoundHandler())
	untrusted.Config.ErrorLog = log.New(io.Discard, "", 0)
	untrusted.StartTLS()
	t.Cleanup(untrusted.Close)
	resets := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }))
	t.Cleanup(resets.Close)
	over := `{"type":"error","error":{"type":"%s","message":"%s"}}`
	type failing struct {
		what  string
		reply llmtest.Reply
		url   string // in place of the reply
		http  http.RoundTripper
		kind  llm.Kind
		after time.Duration
		says  string // a regular expression
		wire  string // empty: both
	}
	for _, c := range []failing{
		{what: "500", reply: llmtest.Reply{Status: 500, ErrorBody: fmt.Sprintf(over, "api_error", "upstream exploded for sk-test-0123")}, kind: llm.Overload, says: "error 500 from m: `upstream exploded for \\[redacted\\]`"},
		{what: "502 of a proxy", reply: llmtest.Reply{Status: 502, ErrorBody: "<html>Bad gateway</html>"}, kind: llm.Overload, says: "error 502 from m: `<html>Bad gateway</html>`"},
		{what: "no words", reply: llmtest.Reply{Status: 503, ErrorBody: "{}"}, kind: llm.Overload, says: "error 503 from m.*"},
		{what: "key", reply: llmtest.Reply{Status: 401, ErrorBody: fmt.Sprintf(over, "authentication_error", "Incorrect API key: sk-te******0123.")}, kind: llm.Auth, says: "error 401 from m: `Incorrect API key: \\[redacted\\]`"},
		{what: "forbidden", reply: llmtest.Reply{Status: 403, ErrorBody: fmt.Sprintf(over, "permission_error", "not for you")}, kind: llm.Auth, says: "error 403 from m: `not for you`"},
		{what: "no such model", reply: llmtest.Reply{Status: 404, ErrorBody: fmt.Sprintf(over, "not_found_error", "model: `test-model`")}, kind: llm.Rejected, says: "error 404 from m: `model: 'test-model'`"},
		{what: "invalid", reply: llmtest.Reply{Status: 400, ErrorBody: fmt.Sprintf(over, "invalid_request_error", "bad \\u001b[31m field")}, kind: llm.Rejected, says: "error 400 from m: `bad \\[31m field`"},
		{what: "long", reply: llmtest.Reply{Status: 500, ErrorBody: strings.Repeat("long ", 200)}, kind: llm.Overload, says: "error 500 from m: `(long )+.{0,8}`"},
		{what: "429", reply: llmtest.Reply{Status: 429, Header: map[string]string{"Retry-After": "7"}, ErrorBody: fmt.Sprintf(over, "rate_limit_error", "slow down")}, kind: llm.Limited, after: 7 * time.Second, says: "error 429 from m: `slow down`"},
		{what: "529", reply: llmtest.Reply{Status: 529, Header: map[string]string{"Retry-After": "9"}, ErrorBody: fmt.Sprintf(over, "overloaded_error", "Overloaded")}, kind: llm.Overload, after: 9 * time.Second, says: "error 529 from m: `Overloaded`"},
		{what: "429 with resets", reply: llmtest.Reply{Status: 429, Header: map[string]string{"X-Ratelimit-Remaining-Requests": "3", "X-Ratelimit-Reset-Requests": "9m", "X-Ratelimit-Remaining-Tokens": "0", "X-Ratelimit-Reset-Tokens": "6m0s"}},
			kind: llm.Limited, after: 6 * time.Minute, says: "error 429 from m.*"},
		{what: "500 with resets", reply: llmtest.Reply{Status: 500, Header: map[string]string{"X-Ratelimit-Remaining-Tokens": "0", "X-Ratelimit-Reset-Tokens": "6m0s"}}, kind: llm.Overload, says: "error 500 from m.*"},
		{what: "overloaded in the stream", wire: "anthropic", reply: llmtest.Reply{Raw: []string{"event: error\ndata: " + fmt.Sprintf(over, "overloaded_error", "Overloaded")}}, kind: llm.Overload, says: "error 529 from m: `Overloaded`"},
		{what: "limited in the stream", wire: "openai", reply: llmtest.Reply{Raw: []string{`data: {"error":{"message":"slow down","code":429}}`}}, kind: llm.Limited, says: "error 429 from m: `slow down`"},
		{what: "garbage", reply: llmtest.Reply{Raw: []string{"data: {nonsense"}}, kind: llm.Malformed, says: "the answer of m cannot be read: `unreadable event: .+`"},
		{what: "a web page", reply: llmtest.Reply{Raw: []string{"<html>Welcome</html>"}}, kind: llm.Malformed, says: "the answer of m cannot be read.*"},
		{what: "nothing at all", reply: llmtest.Reply{Raw: []string{}}, kind: llm.Cut, says: "the connection to m broke off in the middle of an answer"},
		{what: "cut", wire: "openai", reply: llmtest.Cut("half an answer"), kind: llm.Cut, says: "the connection to m broke off in the middle of an answer"},
		{what: "silence", reply: llmtest.Hang(), kind: llm.TimedOut, says: "m did not answer in time"},
		{what: "redirect", reply: llmtest.Reply{Status: 302, Header: map[string]string{"Location": "https://elsewhere.example/"}}, kind: llm.Rejected, says: "error 302 from m: `it redirects elsewhere.*`"},
		{what: "nobody listens", url: gone.URL, kind: llm.Overload, says: "m cannot be reached: `connection refused`"},
		{what: "no name", http: &nowhere, url: "http://models.internal", kind: llm.Overload, says: "m cannot be reached: `its host name is not known`"},
		{what: "no TLS there", url: strings.Replace(plain.URL, "http:", "https:", 1), kind: llm.Overload, says: "m cannot be reached: `no TLS connection`"},
		{what: "untrusted", url: untrusted.URL, kind: llm.Overload, says: "m cannot be reached: `its certificate is not trusted`"},
		{what: "closed", url: resets.URL, kind: llm.Overload, says: "m cannot be reached: `the connection was closed before an answer`"},
	} {
		for _, wire := range []string{"openai", "anthropic"} {
			if c.wire != "" && c.wire != wire {
				continue
			}
			t.Run(wire+" "+c.what, func(t *testing.T) {
				t.Parallel()
				url := c.url
				if url == "" {
					url = llmtest.Start(t, func(*llmtest.Request) llmtest.Reply { return c.reply }).URL
				}
				client := &http.Client{Transport: tr}
				if c.http != nil {
					client.Transport = c.http
				}
				patience := 30 * time.Second
				if c.kind == llm.TimedOut {
					patience = 200 * time.Millisecond
				}
				var m llm.Model
				var err error
				if wire == "openai" {
					m, err = openai.New(openai.Options{Name: "m", Model: "test-model", BaseURL: url, APIKey: "sk-test-0123", HTTP: client, FirstByte: patience})
				} else {
					m, err = anthropic.New(anthropic.Options{Name: "m", Model: "test-model", BaseURL: url, APIKey: "sk-test-0123", HTTP: client, FirstByte: patience})
				}
				if err != nil {
					t.Fatal(err)
				}
				_, err = m.Stream(t.Context(), llm.Request{Messages: []llm.Message{{Role: llm.User, Content: []workspace.Content{{Kind: workspace.Text, Text: "hi"}}}}}, nil)
				said := llm.Problem(llm.TroubleOf(err))
				if e := llm.KindOf(err); e != c.kind || !regexp.MustCompile("^(?:"+c.says+")$").MatchString(said) {
					t.Errorf("%s %q, want %s %q (%v)", e, said, c.kind, c.says, err)
				}
				if after := afterOf(err); after != c.after {
					t.Errorf("asks to wait %s, want %s", after, c.after)
				}
				if strings.Contains(said, "127.0.0.1") || strings.Contains(said, "sk-test") {
					t.Errorf("tells too much: %q", said)
				}
			})
		}
	}
}

func afterOf(err error) time.Duration {
	var e *llm.Error
	if errors.As(err, &e) {
		return e.After
	}
	return 0
}
