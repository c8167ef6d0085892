package llmtest

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/agentloop/llm"
	"parley/workspace"
)

// What the adapters' own tests have in common with the suite.

// Client is a pooled client of one test.
func Client(t testing.TB) *http.Client {
	tr := &http.Transport{MaxIdleConnsPerHost: 16}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// Ask is a request of one message.
func Ask(text string) llm.Request {
	return llm.Request{System: "You are helpful.", Messages: []llm.Message{User(text)}}
}

// User is a person's message.
func User(text string) llm.Message {
	return llm.Message{Role: llm.User, Content: []workspace.Content{{Kind: workspace.Text, Text: text}}}
}

// KindOf is err as an *llm.Error of the kind that it must have.
func KindOf(t testing.TB, err error, want llm.Kind) *llm.Error {
	t.Helper()
	var e *llm.Error
	if !errors.As(err, &e) || e.Kind != want {
		t.Fatalf("error %v, want kind %s", err, want)
	}
	return e
}

// Sent is the body that reaches the server for req.
func Sent(t testing.TB, srv *Server, m llm.Model, req llm.Request) string {
	t.Helper()
	if _, err := m.Stream(t.Context(), req, nil); err != nil {
		t.Fatal(err)
	}
	bodies := srv.Bodies()
	return bodies[len(bodies)-1]
}

// CheckCalls wants every call of a response to be one that can be run and answered.
func CheckCalls(t testing.TB, r llm.Response) {
	t.Helper()
	ids := map[string]bool{}
	for _, c := range r.ToolCalls() {
		if c.CallID == "" || ids[c.CallID] || c.Name == "" || !json.Valid(c.Args) {
			t.Fatalf("call %+v", c)
		}
		ids[c.CallID] = true
		if raw := c.Args[0] == '{'; raw == c.Error {
			t.Fatalf("arguments %s, error %v", c.Args, c.Error)
		}
	}
}

// Golden compares a body with testdata/<name>.json, which it writes first when update is set.
func Golden(t testing.TB, name string, got []byte, update bool) {
	t.Helper()
	var pretty strings.Builder
	var v any
	if err := json.Unmarshal(got, &v); err != nil {
		t.Fatalf("body is not JSON: %v\n%s", err, got)
	}
	e := json.NewEncoder(&pretty)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", name+".json")
	if update {
		if err := os.WriteFile(path, []byte(pretty.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if pretty.String() != string(want) {
		t.Errorf("%s differs (-update writes it):\n%s", path, pretty.String())
	}
}
