package llm_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"parley/agentloop/llm"
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
