package openai

import (
	"context"
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

func countDials(c chan<- struct{}) func(context.Context, string, string) (net.Conn, error) {
	var d net.Dialer
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c <- struct{}{}
		return d.DialContext(ctx, network, addr)
	}
}

func TestStatusesAreClassified(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reply llmtest.Reply
		want  llm.Kind
	}{
		{llmtest.Unauthorized(), llm.Auth},
		{llmtest.Failing(403), llm.Auth},
		{llmtest.Failing(402), llm.Auth},
		{llmtest.TooMany(""), llm.Limited},
		{llmtest.Reply{Status: 429, ErrorBody: `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`}, llm.Auth},
		{llmtest.Failing(500), llm.Overload},
		{llmtest.Failing(503), llm.Overload},
		{llmtest.Failing(529), llm.Overload},
		{llmtest.Failing(408), llm.Overload},
		{llmtest.Failing(400), llm.Rejected},
		{llmtest.Failing(404), llm.Rejected},
		{llmtest.Failing(422), llm.Rejected},
		{llmtest.Reply{Raw: []string{`data: {"choices":[{"delta":{"content":"a"}}]}`, `data: {"error":{"message":"boom","code":502}}`}}, llm.Cut},
		{llmtest.Reply{Raw: []string{`data: {"error":{"message":"slow down","code":429}}`}}, llm.Limited},
		{llmtest.Reply{Raw: []string{"event: error\ndata: {\"message\":\"boom\"}"}}, llm.Overload},
		{llmtest.Reply{Raw: []string{`data: {"choices": [`}}, llm.Malformed},
		{llmtest.Reply{Raw: []string{`{"error":{"message":"No such key","code":401}}`}}, llm.Auth},
		{llmtest.Reply{Raw: []string{`<html><title>Welcome</title></html>`}}, llm.Malformed},
		{llmtest.Reply{Raw: []string{}}, llm.Cut},
		{llmtest.Reply{Raw: []string{`data: ` + strings.Repeat("x", wire.MaxLine)}}, llm.TooLong},
	} {
		_, m := serve(t, always(c.reply))
		_, err := m.Stream(t.Context(), ask("hi"), nil)
		if llm.KindOf(err) != c.want {
			t.Errorf("%.80v: %v, want %s", c.reply, err, c.want)
		}
	}
}

func TestOverflowIsKnownInEveryServersWords(t *testing.T) {
	t.Parallel()
	for name, reply := range llmtest.Overflows() {
		srv, m := serve(t, always(reply))
		_, err := m.Stream(t.Context(), ask("hi"), nil)
		if llm.KindOf(err) != llm.Overflow {
			t.Errorf("%s: %v", name, err)
		}
		if srv.Count() != 1 {
			t.Errorf("%s: asked %d times", name, srv.Count())
		}
	}
}

func TestRetryAfterIsRead(t *testing.T) {
	t.Parallel()
	_, m := serve(t, always(llmtest.TooMany("7")))
	_, err := m.Stream(t.Context(), ask("hi"), nil)
	if e := kindOf(t, err, llm.Limited); e.After != 7*time.Second || e.Status != 429 {
		t.Errorf("%+v", e)
	}
}

func TestE52_KeyIsNeverInAnError(t *testing.T) {
	t.Parallel()
	replies := map[string]llmtest.Reply{
		"body":      {Status: 400, ErrorBody: "bad key " + testKey + "\x1b[31m\nred\u202e"},
		"json":      {Status: 401, ErrorBody: `{"error":{"message":"your key ` + testKey + ` is wrong","type":"` + testKey + `"}}`},
		"at cut":    {Status: 500, ErrorBody: strings.Repeat("x", 290) + testKey},
		"split":     {Status: 500, ErrorBody: "key " + testKey[:8] + "\x00" + testKey[8:]},
		"stream":    {Raw: []string{`data: {"error":{"message":"` + testKey + `"}}`}},
		"malformed": {Raw: []string{`data: ` + testKey}},
		"redirect":  {Status: 302, Header: map[string]string{"Location": "https://elsewhere.example/" + testKey}},
	}
	for name, reply := range replies {
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
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { hit <- r.Header.Get("Authorization") }))
	defer thief.Close()
	for _, status := range []int{301, 302, 307, 308} {
		_, m := serve(t, always(llmtest.Reply{Status: status, Header: map[string]string{"Location": thief.URL + "/v1/x?q=1"}}))
		_, err := m.Stream(t.Context(), ask("hi"), nil)
		e := kindOf(t, err, llm.Rejected)
		if !strings.Contains(e.Error(), thief.URL) {
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
	m, err := New(Options{Model: "m", BaseURL: "http://" + addr + "/v1", HTTP: client(t)})
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.Stream(t.Context(), ask("hi"), nil)
	kindOf(t, err, llm.Overload)
}
