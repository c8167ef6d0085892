package setup_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"parley/configs"
	"parley/gateway/setup"
)

// A model's server is asked only what it has; a refused key, a wrong path and a model that it does not know are failures.
func TestModelsAreLookedAt(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method != http.MethodGet:
			t.Errorf("%s %s", r.Method, r.URL)
		case r.URL.Path == "/away/v1/models":
			http.Redirect(w, r, "/v1/models", http.StatusFound)
		case !strings.HasPrefix(r.URL.Path, "/v1/models"):
			http.NotFound(w, r)
		case r.Header.Get("Authorization") != "Bearer good" && r.Header.Get("X-Api-Key") != "good":
			http.Error(w, `{"error":{"message":"no"}}`, http.StatusUnauthorized)
		case r.URL.Path == "/v1/models":
			_, _ = w.Write([]byte(`{"data":[{"id":"listed"}]}`))
		case r.URL.Path != "/v1/models/alias":
			http.NotFound(w, r)
		default:
			_, _ = w.Write([]byte(`{"id":"alias"}`))
		}
	}))
	defer server.Close()
	parts := setup.Parts{HTTP: server.Client()}
	for name, c := range map[string]struct {
		m            configs.Model
		fine, failed bool
	}{
		"listed":       {configs.Model{API: "openai", BaseURL: "/v1", APIKey: "good", Model: "listed"}, true, false},
		"anthropic":    {configs.Model{API: "anthropic", BaseURL: "", APIKey: "good", Model: "listed"}, true, false},
		"an alias":     {configs.Model{API: "openai", BaseURL: "/v1", APIKey: "good", Model: "alias"}, true, false},
		"unknown":      {configs.Model{API: "openai", BaseURL: "/v1", APIKey: "good", Model: "none"}, false, true},
		"a wrong key":  {configs.Model{API: "openai", BaseURL: "/v1", APIKey: "bad", Model: "listed"}, false, true},
		"a wrong path": {configs.Model{API: "openai", BaseURL: "/v9", APIKey: "good", Model: "listed"}, false, true},
		"elsewhere":    {configs.Model{API: "openai", BaseURL: "/away/v1", APIKey: "good", Model: "listed"}, false, false},
		"offline":      {configs.Model{API: "offline"}, true, false},
	} {
		c.m.Name, c.m.BaseURL = "m", server.URL+c.m.BaseURL
		got := parts.Look(t.Context(), &configs.Config{Models: []configs.Model{c.m}}, setup.Part{Kind: "model", Name: "m"})
		if got.Fine != c.fine || got.Failed != c.failed || !got.Settled || got.Fine == (got.Why != "") || strings.Contains(got.Why, "good") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
