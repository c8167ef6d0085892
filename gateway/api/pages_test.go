package api_test

import (
	"net/http"
	"strings"
	"testing"
)

// Every address of the page can be reloaded, also the one that begins as webhooks do; nothing of the API is the page.
func TestAddressesOfThePageCanBeReloaded(t *testing.T) {
	t.Parallel()
	r := start(t, setup{})
	browser := func(q *http.Request) {
		q.Header.Set("Accept", "text/html,application/xhtml+xml")
		q.Header.Del("Authorization")
	}
	for _, path := range []string{"/", "/sessions", "/agents", "/agents/assistant", "/channels", "/runs?state=failed", "/runs/01J", "/usage", "/logs", "/config", "/needs", "/chat/agent:assistant:local:main"} {
		if a := r.ask("GET", path, "", browser); a.StatusCode != 200 || !strings.HasPrefix(a.Header.Get("Content-Type"), "text/html") {
			t.Errorf("%s: %d %s", path, a.StatusCode, a.Header.Get("Content-Type"))
		}
	}
	for _, path := range []string{"/channels/tg/hook", "/v1/agents", "/metrics"} {
		if a := r.ask("GET", path, "", browser); strings.HasPrefix(a.Header.Get("Content-Type"), "text/html") {
			t.Errorf("%s is the page", path)
		}
	}
}
