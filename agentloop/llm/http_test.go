package llm_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

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
