package anthropic

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"parley/agentloop/llm"
	"parley/agentloop/llm/llmtest"
	"parley/agentloop/llm/wire"
)

// refusal is an error in the API's shape.
func refusal(status int, kind, message string) llmtest.Reply {
	return llmtest.Reply{Status: status, ErrorBody: `{"type":"error","error":{"type":"` + kind + `","message":"` + message + `"},"request_id":"req_1"}`}
}

// inStream is an error event behind some text.
func inStream(kind string, lines ...string) llmtest.Reply {
	return llmtest.Reply{Raw: append(lines, "event: error\n"+`data: {"type":"error","error":{"type":"`+kind+`","message":"Overloaded"}}`)}
}

const (
	messageStart = "event: message_start\n" + `data: {"type":"message_start","message":{"type":"message","content":[],"usage":{"input_tokens":3,"output_tokens":1}}}`
	textStart    = `data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`
	textPiece    = `data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}`
	messageEnd   = `data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}`
)

func TestErrorsAreClassified(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reply llmtest.Reply
		want  llm.Kind
	}{
		{refusal(401, "authentication_error", "invalid x-api-key"), llm.Auth},
		{refusal(403, "permission_error", "no"), llm.Auth},
		{refusal(402, "billing_error", "no"), llm.Auth},
		{refusal(400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API."), llm.Auth},
		{refusal(400, "invalid_request_error", "You have reached your specified API usage limits."), llm.Auth},
		{refusal(429, "rate_limit_error", "This request would exceed your rate limit"), llm.Limited},
		{refusal(429, "rate_limit_error", "prompt is too long for your rate limit: context window"), llm.Limited},
		{refusal(500, "api_error", "Internal server error"), llm.Overload},
		{refusal(504, "timeout_error", "timeout"), llm.Overload},
		{refusal(529, "overloaded_error", "Overloaded"), llm.Overload},
		{llmtest.Failing(529), llm.Overload},
		{refusal(400, "invalid_request_error", "messages.0.content: bad"), llm.Rejected},
		{refusal(404, "not_found_error", "model: nope"), llm.Rejected},
		{refusal(413, "request_too_large", "Request exceeds the maximum size"), llm.Overflow},
		{refusal(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"), llm.Overflow},
		{refusal(400, "invalid_request_error", "input length and `max_tokens` exceed context limit: 195000 + 8192 > 200000"), llm.Overflow},
		{inStream("overloaded_error"), llm.Overload},
		{inStream("overloaded_error", messageStart), llm.Overload},
		{inStream("overloaded_error", messageStart, textStart, textPiece), llm.Cut},
		{inStream("rate_limit_error"), llm.Limited},
		{inStream("authentication_error"), llm.Auth},
		{inStream("request_too_large"), llm.Overflow},
		{llmtest.Reply{Raw: []string{`data: {"type":"content_`}}, llm.Malformed},
		{llmtest.Reply{Raw: []string{messageStart, textPiece}}, llm.Malformed},
		{llmtest.Reply{Raw: []string{`{"type":"error","error":{"type":"authentication_error","message":"No such key"}}`}}, llm.Auth},
		{llmtest.Reply{Raw: []string{`{"error":"boom"}`}}, llm.Overload},
		{llmtest.Reply{Raw: []string{`<html><title>Welcome</title></html>`}}, llm.Malformed},
		{llmtest.Reply{Raw: []string{}}, llm.Cut},
		{llmtest.Reply{Raw: []string{messageStart, textStart, textPiece}}, llm.Cut},
		{llmtest.Reply{Raw: []string{`{"type":"message","content":[{"type":"text","te`}}, llm.Malformed},
		{llmtest.Reply{Raw: []string{`data: ` + strings.Repeat("x", wire.MaxLine)}}, llm.TooLong},
		{llmtest.Reply{Status: 502, ErrorBody: "<html>Bad gateway</html>"}, llm.Overload},
	} {
		srv, m := serve(t, always(c.reply))
		_, err := m.Stream(t.Context(), ask("hi"), nil)
		if llm.KindOf(err) != c.want || srv.Count() != 1 {
			t.Errorf("%.90v: %v, want %s; asked %d times", c.reply, err, c.want, srv.Count())
		}
	}
}

func TestOverflowIsKnownInEveryServersWords(t *testing.T) {
	t.Parallel()
	for name, reply := range llmtest.Overflows() {
		if name == "gemini" { // answers with a list, and has no door of this kind
			continue
		}
		_, m := serve(t, always(reply))
		_, err := m.Stream(t.Context(), ask("hi"), nil)
		if llm.KindOf(err) != llm.Overflow {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRetryAfterIsRead(t *testing.T) {
	t.Parallel()
	reply := refusal(429, "rate_limit_error", "slow down")
	reply.Header = map[string]string{"Retry-After": "7"}
	_, m := serve(t, always(reply))
	_, err := m.Stream(t.Context(), ask("hi"), nil)
	if e := kindOf(t, err, llm.Limited); e.After != 7*time.Second || e.Status != 429 || !strings.Contains(e.Error(), "req_1") {
		t.Errorf("%+v", e)
	}
}

func TestE52_KeyIsNeverInAnError(t *testing.T) {
	t.Parallel()
	for name, reply := range map[string]llmtest.Reply{
		"body":      {Status: 400, ErrorBody: "bad key " + testKey + "\x1b[31m\nred\u202e"},
		"json":      refusal(401, testKey, "your key "+testKey+" is wrong"),
		"at cut":    {Status: 500, ErrorBody: strings.Repeat("x", 290) + testKey},
		"split":     {Status: 500, ErrorBody: "key " + testKey[:8] + "\x00" + testKey[8:]},
		"stream":    {Raw: []string{`data: {"type":"error","error":{"type":"api_error","message":"` + testKey + `"}}`}},
		"malformed": {Raw: []string{`data: ` + testKey}},
		"redirect":  {Status: 302, Header: map[string]string{"Location": "https://elsewhere.example/" + testKey}},
	} {
		_, m := serve(t, always(reply))
		_, err := m.Stream(t.Context(), ask("hi"), nil)
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		for e := err; e != nil; e = errors.Unwrap(e) {
			if strings.Contains(e.Error(), "canary") || strings.ContainsAny(e.Error(), "\x1b\n\x00\u202e") {
				t.Errorf("%s: %q", name, e)
			}
		}
		if n := len([]rune(err.Error())); n > 400 {
			t.Errorf("%s: %d characters", name, n)
		}
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	hit := make(chan string, 10)
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { hit <- r.Header.Get("X-Api-Key") }))
	defer thief.Close()
	for _, status := range []int{301, 302, 307, 308} {
		_, m := serve(t, always(llmtest.Reply{Status: status, ErrorBody: "moved", Header: map[string]string{"Location": thief.URL + "/v1/x?q=1"}}))
		_, err := m.Stream(t.Context(), ask("hi"), nil)
		if e := kindOf(t, err, llm.Rejected); !strings.Contains(e.Error(), thief.URL) {
			t.Errorf("does not say where to: %v", e)
		}
	}
	if len(hit) != 0 {
		t.Error("followed")
	}
}

func TestUnreachableServerIsOverload(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	m, err := New(Options{Model: "m", BaseURL: "http://" + addr, HTTP: client(t)})
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.Stream(t.Context(), ask("hi"), nil)
	kindOf(t, err, llm.Overload)
}
