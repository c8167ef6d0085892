package llmtest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func post(t *testing.T, s *Server, body string) (int, string, error) {
	t.Helper()
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := c.Post(s.URL+"/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

const streaming = `{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"system","content":"{\"role\":\"user\",\"content\":\"no\"}"},{"role":"user","content":"hé \"you\""}]}`

func TestEveryEventOfAStreamIsJSON(t *testing.T) {
	t.Parallel()
	s := Start(t, Sequence(Reply{Text: strings.Repeat("wörd ", 40), Reasoning: "hm", Refusal: "no", Calls: []Call{{Name: "a", Args: `{"x":"yyyyyyyyyy"}`}, {Name: "b"}}}))
	_, body, err := post(t, s, streaming)
	if err != nil {
		t.Fatal(err)
	}
	events := strings.Split(strings.TrimSpace(body), "\n\n")
	if len(events) < 15 || events[len(events)-1] != "data: [DONE]" || !strings.Contains(body, `"cached_tokens"`) {
		t.Fatalf("%d events: %s", len(events), body)
	}
	for _, e := range events[:len(events)-1] {
		if !json.Valid([]byte(strings.TrimPrefix(e, "data: "))) {
			t.Errorf("no JSON: %s", e)
		}
	}
	if _, body, _ := post(t, s, strings.Replace(streaming, `"stream_options":{"include_usage":true},`, "", 1)); strings.Contains(body, "usage") {
		t.Error("usage was sent unasked")
	}
	if _, body, _ := post(t, s, `{"messages":[{"content":[{"type":"text","text":"x"}],"role":"user"}]}`); !json.Valid([]byte(body)) {
		t.Errorf("no JSON: %s", body)
	}
}

func TestEchoFindsTheLastUserText(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		streaming: `hé "you"`,
		`{"messages":[{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"role":"user"},{"role":"assistant","content":"x"}]}`: "ab",
		`{"messages":[{"role":"user","content":"one"},{"role":"tool","content":"{\"role\":\"user\",\"content\":\"no\"}"}]}`:                   "one",
		`{"messages":[]}`: "", `nonsense`: "",
	} {
		if got := (&Request{Body: []byte(body)}).LastUser(); got != want {
			t.Errorf("%s: %q", body, got)
		}
	}
}

func TestRulesFollowTheRoundsOfATurn(t *testing.T) {
	t.Parallel()
	script := Rules(Rule{Contains: "weather", Replies: []Reply{{Text: "zero"}, {Text: "one"}}})
	turn := `{"messages":[{"role":"assistant","content":"old"},{"role":"user","content":"the weather"}`
	for body, want := range map[string]string{
		turn + `]}`: "zero",
		turn + `,{"role":"assistant"},{"role":"tool","content":"r"}]}`:                                                    "one",
		turn + `,{"role":"assistant"},{"role":"tool","content":"r"},{"role":"assistant"},{"role":"tool","content":"r"}]}`: "one",
		turn + `,{"role":"assistant"},{"role":"tool","content":"r"},{"role":"user","content":"hi"}]}`:                     "echo: hi",
	} {
		if got := script(&Request{Body: []byte(body)}).Text; got != want {
			t.Errorf("%s: %q", body, got)
		}
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 10)
	script := Sequence(Unauthorized(), TooMany("3"), Failing(529), Cut("half a text"), HangMid("half a text"))
	s := Start(t, func(r *Request) Reply {
		asked <- struct{}{}
		return script(r)
	})
	for _, want := range []int{401, 429, 529} {
		if status, body, err := post(t, s, streaming); status != want || err != nil || !json.Valid([]byte(body)) {
			t.Errorf("%d %s %v", status, body, err)
		}
	}
	if _, body, err := post(t, s, streaming); err == nil || !strings.Contains(body, "half") {
		t.Errorf("cut: %s, %v", body, err)
	}
	done := make(chan error, 1)
	go func() {
		_, _, err := post(t, s, streaming)
		done <- err
	}()
	for range 5 {
		<-asked
	}
	select {
	case err := <-done:
		t.Fatal("did not hang:", err)
	case <-time.After(50 * time.Millisecond):
	}
	s.Close()
	if err := <-done; err == nil {
		t.Error("Close ended the stream as if it were whole")
	}
	if n := len(s.Bodies()); n != 5 {
		t.Errorf("%d bodies", n)
	}
}

func TestKeyIsChecked(t *testing.T) {
	t.Parallel()
	s := Start(t, Echo)
	s.Key = "k"
	if status, _, _ := post(t, s, streaming); status != 401 || s.Count() != 0 {
		t.Errorf("status %d, %d requests", status, s.Count())
	}
}

func BenchmarkEcho(b *testing.B) {
	s := New(Echo)
	body := strings.Replace(streaming, `"no\"`, `"no`+strings.Repeat("x", 4000)+`\"`, 1)
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequest("POST", "/v1/chat/completions", strings.NewReader(body))
		s.ServeHTTP(httptest.NewRecorder(), r)
	}
}
