package anthropic

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
			return refusal(400, "invalid_request_error", says)
		}
		return llmtest.Reply{Text: "fine"}
	}
}

func TestWhatAServerRefusesIsLeftOut(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		word, says string
		twice      int // calls that two requests make
	}{
		"cache": {`"cache_control"`, "tools.0.cache_control: Extra inputs are not permitted", 3},
		"limit": {`"max_tokens":8192`, "max_tokens: 8192 > 4096, which is the maximum allowed number of output tokens for m", 3},
	} {
		srv, m := serve(t, picky(c.word, c.says))
		req := llmtest.Ask("hi")
		for range 2 {
			if r, err := m.Stream(t.Context(), req, nil); err != nil || r.Content[0].Text != "fine" {
				t.Errorf("%s: %+v, %v", name, r, err)
			}
		}
		if srv.Count() != c.twice {
			t.Errorf("%s: asked %d times, want %d", name, srv.Count(), c.twice)
		}
	}
}

// The check of signatures is the server's; whatever it dislikes, the conversation goes on without the thinking.
func TestRefusedThinkingIsLeftOut(t *testing.T) {
	t.Parallel()
	script := llmtest.Sequence(llmtest.Reply{Reasoning: "hm", Calls: []llmtest.Call{{ID: "toolu_1", Name: "read_file", Args: "{}"}}}, llmtest.Reply{Text: "fine"})
	srv, m := serve(t, func(r *llmtest.Request) llmtest.Reply {
		if strings.Contains(string(r.Body), `"signature"`) {
			return refusal(400, "invalid_request_error", "messages.1.content.0: Invalid `signature` in `thinking` block")
		}
		return script(r)
	})
	req := llm.Request{Tools: tools(), Messages: []llm.Message{llmtest.User("hi")}}
	r, err := m.Stream(t.Context(), req, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Messages = append(req.Messages, says(r.Content...), llm.Message{Role: llm.ToolRole, Content: []workspace.Content{{Kind: workspace.ToolResult, CallID: "toolu_1"}}})
	if r, err = m.Stream(t.Context(), req, nil); err != nil || r.Content[0].Text != "fine" || srv.Count() != 3 {
		t.Errorf("%+v, %v after %d calls", r, err, srv.Count())
	}
}

func TestRefusalsThatTeachNothingAreFinal(t *testing.T) {
	t.Parallel()
	for _, says := range []string{"messages.0: bad", "Could not process image", "max_tokens: 8192 > 9000", "max_tokens: 5 > 99999999999999999999", "max_tokens: 5 > 0", "cache_control of an unknown kind"} {
		srv, m := serve(t, llmtest.Sequence(refusal(400, "invalid_request_error", says)))
		_, err := m.Stream(t.Context(), llmtest.Ask("hi"), nil)
		llmtest.KindOf(t, err, llm.Rejected)
		want := 1
		if strings.HasPrefix(says, "cache_control") {
			want = 2 // once more, without
		}
		if srv.Count() != want {
			t.Errorf("%s: asked %d times", says, srv.Count())
		}
	}
}
