package openai

import (
	"strings"
	"testing"

	"parley/agentloop/llm"
	"parley/agentloop/llm/llmtest"
	"parley/workspace"
)

// picky is a server that refuses bodies with a word in them.
func picky(word, says string) llmtest.Script {
	return func(r *llmtest.Request) llmtest.Reply {
		if strings.Contains(string(r.Body), word) {
			return llmtest.Reply{Status: 400, ErrorBody: `{"error":{"message":"` + says + `"}}`}
		}
		return llmtest.Reply{Text: "fine"}
	}
}

func TestHabitsOfServersAreLearntOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, word, says string
		want             quirk
	}{
		{"stream_options", "stream_options", "Unknown parameter: stream_options", noUsage},
		{"stream_options without a word", "stream_options", "bad request", noUsage},
		{"max_tokens", `"max_tokens"`, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", completionTokens},
		{"system at the start", `"system","content":"now"`, "System message must be at the beginning.", oneSystem},
		{"alternate", `"system","content":"now"`, "Conversation roles must alternate user/assistant/user/assistant/...", oneSystem},
		{"short ids", `call_1`, "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9.", shortIDs},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			srv, m := serve(t, picky(c.word, c.says))
			req := llm.Request{System: "s", Volatile: "now", MaxTokens: 5, Messages: append(toolTurn(), llmtest.User("hi"))}
			for range 2 {
				if r, err := m.Stream(t.Context(), req, nil); err != nil || r.Content[0].Text != "fine" {
					t.Fatalf("%+v, %v", r, err)
				}
			}
			if srv.Count() != 3 || quirk(m.learned.Load()) != c.want {
				t.Errorf("%d requests, learnt %b", srv.Count(), m.learned.Load())
			}
		})
	}
}

func TestReasoningGoesBackOnlyWhereItIsWanted(t *testing.T) {
	t.Parallel()
	srv, m := serve(t, func(r *llmtest.Request) llmtest.Reply {
		if !strings.Contains(string(r.Body), `"reasoning_content":"private"`) {
			return llmtest.Reply{Status: 400, ErrorBody: `{"error":{"message":"Missing reasoning_content field in the assistant message"}}`}
		}
		return llmtest.Reply{Text: "fine"}
	})
	if _, err := m.Stream(t.Context(), llm.Request{Messages: toolTurn()}, nil); err != nil {
		t.Fatal(err)
	}
	if b := srv.Bodies(); len(b) != 2 || strings.Contains(b[0], "private") {
		t.Errorf("%q", b)
	}
}

func TestRefusalAfterAGuessKeepsItsReason(t *testing.T) {
	t.Parallel()
	srv, m := serve(t, func(r *llmtest.Request) llmtest.Reply {
		if r.N == 1 {
			return llmtest.Reply{Status: 400, ErrorBody: `{"error":"first reason"}`}
		}
		return llmtest.Reply{Status: 400, ErrorBody: `{"error":"second reason"}`}
	})
	_, err := m.Stream(t.Context(), llmtest.Ask("hi"), nil)
	if e := llmtest.KindOf(t, err, llm.Rejected); !strings.Contains(e.Error(), "first reason") || srv.Count() != 2 || m.learned.Load() != 0 {
		t.Errorf("%v after %d requests, learnt %b", err, srv.Count(), m.learned.Load())
	}
}

func TestProvenServerIsNotGuessedAt(t *testing.T) {
	t.Parallel()
	srv, m := serve(t, llmtest.Sequence(llmtest.Reply{Text: "a"}, llmtest.Failing(400)))
	for range 2 {
		if _, err := m.Stream(t.Context(), llmtest.Ask("hi"), nil); err != nil {
			llmtest.KindOf(t, err, llm.Rejected)
		}
	}
	if srv.Count() != 2 {
		t.Errorf("%d requests", srv.Count())
	}
}

func TestThoughtSignatureGoesBackToItsServerOnly(t *testing.T) {
	t.Parallel()
	raw := []string{`data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"exec","arguments":"{}"},"extra_content":{"google":{"thought_signature":"sig"}}}]},"finish_reason":"stop"}]}`}
	srv, m := serve(t, llmtest.Sequence(llmtest.Reply{Raw: raw}, llmtest.Reply{Text: "ok"}))
	r, err := m.Stream(t.Context(), llmtest.Ask("hi"), nil)
	if err != nil {
		t.Fatal(err)
	}
	next := llm.Request{Messages: []llm.Message{llmtest.User("hi"), {Role: llm.Assistant, Content: r.Content},
		{Role: llm.ToolRole, Content: []workspace.Content{{Kind: workspace.ToolResult, CallID: "c1", Text: "done"}}}}}
	if b := llmtest.Sent(t, srv, m, next); !strings.Contains(b, `"extra_content":{"google":{"thought_signature":"sig"}}`) {
		t.Error(b)
	}
	other, m2 := serve(t, llmtest.Echo)
	if b := llmtest.Sent(t, other, m2, next); strings.Contains(b, "sig") {
		t.Error(b)
	}
}
