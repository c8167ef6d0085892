package gateway

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"parley/agentloop/llm"
	"parley/configs"
	"parley/workspace"
)

// only is an environment of one variable.
func only(name, value string) configs.Lookup {
	return func(asked string) (string, bool) {
		if asked != name {
			return "", false
		}
		return value, true
	}
}

// A call that comes while servers are asked waits for what is found, and is answered by that.
func TestCallWaitsWhileAModelIsLookedFor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	src := configs.NewSource(configs.LoadOptions{Env: only("HOME", dir)})
	c, err := src.Load()
	if err != nil {
		t.Fatal(err)
	}
	g := New(Options{Source: src, Env: func(string) (string, bool) { return "", false }})
	list := g.modelsOf(c)
	if len(list) != 1 || list[0].Name != lookingName {
		t.Fatalf("models while looking: %+v", list)
	}
	model, err := g.newModel(list[0])
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		res, err := model.Stream(t.Context(), llm.Request{Messages: []llm.Message{{Role: llm.User, Content: []workspace.Content{{Kind: workspace.Text, Text: "hello"}}}}}, nil)
		if err == nil && !strings.Contains(res.Content[0].Text, "hello") {
			t.Errorf("the answer is %+v", res)
		}
		answered <- err
	}()
	select {
	case err := <-answered:
		t.Fatalf("answered by nobody: %v", err)
	default:
	}
	g.find(configs.Model{Name: "offline", API: "offline", Model: "offline"})
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
	if list := g.modelsOf(c); list[0].API != "offline" {
		t.Errorf("models after it: %+v", list)
	}
}

func TestProbeSaysPlainlyWhatIsThere(t *testing.T) {
	t.Parallel()
	var auth string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/models":
			auth = r.Header.Get("Authorization")
			_, _ = w.Write([]byte(`{"data":[{"id":"a"},{"id":"b"}]}`))
		case "/page/models":
			_, _ = w.Write([]byte("<html>"))
		default:
			http.Error(w, "no", http.StatusUnauthorized)
		}
	}))
	defer srv.Close()
	g := New(Options{})
	defer g.http.CloseIdleConnections()
	got, err := g.probe(t.Context(), srv.URL+"/v1", "k")
	if err != nil || strings.Join(got, " ") != "a b" || auth != "Bearer k" {
		t.Errorf("got %v, %v with %q", got, err, auth)
	}
	for path, want := range map[string]string{"/page": "something else", "/none": "answers 401"} {
		if _, err := g.probe(t.Context(), srv.URL+path, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	srv.Close()
	if _, err := g.probe(t.Context(), srv.URL+"/v1", ""); err == nil || err.Error() != "nobody answers there" {
		t.Errorf("a closed port: %v", err)
	}
}
