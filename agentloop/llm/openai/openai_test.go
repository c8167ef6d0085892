package openai

import (
	"testing"

	"go.uber.org/goleak"

	"parley/agentloop/llm"
	"parley/agentloop/llm/llmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testKey = "sk-canary-0123456789"

func serve(t *testing.T, s llmtest.Script) (*llmtest.Server, *Model) {
	t.Helper()
	srv := llmtest.Start(t, s)
	srv.Key = testKey
	m, err := New(Options{Name: "m", Model: "test-model", BaseURL: srv.URL, APIKey: testKey, HTTP: llmtest.Client(t)})
	if err != nil {
		t.Fatal(err)
	}
	return srv, m
}

func TestThinkTagStaysPrivate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pieces        []string
		text, thought string
	}{
		{[]string{"<think>secret plan</think>\n\nHello"}, "Hello", "secret plan"},
		{[]string{"\n<th", "ink>sec", "ret</thi", "nk>", "\n", "\nHel", "lo"}, "Hello", "secret"},
		{[]string{"<think>never ends </thin"}, "", "never ends </thin"},
		{[]string{"<thin air"}, "<thin air", ""},
		{[]string{"<th"}, "<th", ""},
		{[]string{"Say <think>x</think>"}, "Say <think>x</think>", ""},
	} {
		_, m := serve(t, llmtest.Sequence(llmtest.Reply{Pieces: c.pieces}))
		var text, thought string
		if _, err := m.Stream(t.Context(), llmtest.Ask("hi"), func(d llm.Delta) { text += d.Text; thought += d.Reasoning }); err != nil {
			t.Fatal(err)
		}
		if text != c.text || thought != c.thought {
			t.Errorf("%q: text %q, thought %q", c.pieces, text, thought)
		}
	}
}
