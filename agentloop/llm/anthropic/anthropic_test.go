package anthropic

import (
	"net/http"
	"testing"

	"go.uber.org/goleak"

	"parley/agentloop/llm"
	"parley/agentloop/llm/llmtest"
	"parley/workspace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testKey = "sk-ant-canary-0123456789"

func open(t *testing.T, s *llmtest.Server) *Model {
	t.Helper()
	m, err := New(Options{Name: "m", Model: "test-model", BaseURL: s.URL, APIKey: testKey, HTTP: llmtest.Client(t)})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func serve(t *testing.T, s llmtest.Script) (*llmtest.Server, *Model) {
	t.Helper()
	srv := llmtest.Start(t, s)
	srv.Key = testKey
	return srv, open(t, srv)
}

func says(content ...workspace.Content) llm.Message {
	return llm.Message{Role: llm.Assistant, Content: content}
}

func text(s string) workspace.Content { return workspace.Content{Kind: workspace.Text, Text: s} }

func TestBaseURLWithAndWithoutVersion(t *testing.T) {
	t.Parallel()
	accounts := map[string]string{} // by endpoint: two ways to write one address are one account
	for base, want := range map[string]string{
		"": "https://api.anthropic.com/v1/messages", "https://api.anthropic.com": "https://api.anthropic.com/v1/messages",
		"https://api.anthropic.com/v1": "https://api.anthropic.com/v1/messages", "http://h:1/v1/": "http://h:1/v1/messages",
		"https://api.deepseek.com/anthropic": "https://api.deepseek.com/anthropic/v1/messages", "https://h/": "https://h/v1/messages",
	} {
		m, err := New(Options{Model: "m", BaseURL: base, HTTP: &http.Client{}})
		if err != nil || m.endpoint != want || m.Info().MaxOutput != 8192 {
			t.Fatalf("%q: %v, %v", base, m, err)
		}
		if was := accounts[want]; was != "" && was != m.Account() {
			t.Errorf("%q is another account", base)
		}
		accounts[want] = m.Account()
	}
}
