package openai

import (
	"encoding/json"
	"errors"
	"flag"
	"strings"
	"testing"

	"parley/agentloop/llm"
	"parley/agentloop/llm/llmtest"
	"parley/agentloop/llm/wire"
	"parley/workspace"
)

var update = flag.Bool("update", false, "write the golden files again")

func tools() []llm.Tool {
	return []llm.Tool{
		{Name: "read_file", Description: "Reads \"a\" file.", Schema: json.RawMessage(`{"type": "object", "properties": {"path": {"type": "string"}}}`)},
		{Name: "broken", Description: "From a stranger.", Schema: json.RawMessage(`{"type": `)},
		{Name: "bare"},
	}
}

func toolTurn() []llm.Message {
	return []llm.Message{
		{Role: llm.Assistant, Content: []workspace.Content{
			{Kind: workspace.Reasoning, Text: "private"},
			{Kind: workspace.Text, Text: "Looking."},
			{Kind: workspace.ToolCall, CallID: "call_1", Name: "read_file", Args: json.RawMessage(`{"path":"a \"b\".txt"}`)},
			{Kind: workspace.ToolCall, CallID: "call_2", Name: "exec", Args: json.RawMessage(`"{broken"`), Error: true},
		}},
		{Role: llm.ToolRole, Content: []workspace.Content{
			{Kind: workspace.ToolResult, CallID: "call_1", Text: "line\n"},
			{Kind: workspace.JSON, Text: `{"n":1}`},
			{Kind: workspace.Image, Name: "plot.png", MIME: "image/png", Blob: "b1"},
			{Kind: workspace.ToolResult, CallID: "call_2", Text: "arguments were not JSON", Error: true},
		}},
	}
}

func TestRequestBody(t *testing.T) {
	t.Parallel()
	req := llm.Request{System: "You are\thelpful.\n", Volatile: "It is Monday.", Tools: tools(), MaxTokens: 100, CacheKey: "agent:a:telegram:1"}
	req.Messages = append([]llm.Message{llmtest.User("old"), llmtest.User("older")}, toolTurn()...)
	req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Content: []workspace.Content{{Kind: workspace.Reasoning, Text: "nothing said"}}},
		llm.Message{Role: llm.User, Content: []workspace.Content{{Kind: workspace.Text, Text: "what is this?"},
			{Kind: workspace.Image, Name: "cat.jpg", MIME: "image/jpeg", Blob: "b2"}, {Kind: workspace.Image, Name: "gone.jpg", MIME: "image/jpeg", Blob: "gone"},
			{Kind: workspace.FileRef, Name: "notes.pdf", MIME: "application/pdf"}}})
	srv, m := serve(t, llmtest.Echo)
	m.o.Blobs = func(ref string) ([]byte, error) {
		if ref == "gone" {
			return nil, errors.New("gone")
		}
		return []byte(ref), nil
	}
	llmtest.Golden(t, "plain", []byte(llmtest.Sent(t, srv, m, req)), *update)
	m.learned.Store(uint32(noUsage | completionTokens | oneSystem | wantsReasoning | shortIDs))
	llmtest.Golden(t, "quirks", m.body(req, quirk(m.learned.Load())), *update)
	llmtest.Golden(t, "empty", m.body(llm.Request{Volatile: "now"}, 0), *update)
	m.official = true
	if b := string(m.body(req, 0)); !strings.Contains(b, `"prompt_cache_key":"`) || strings.Contains(b, "telegram:1") {
		t.Error("the cache key is absent or tells the session")
	}
}

// The provider's cache hits only while the start of a request is, byte for byte, the start of the one before.
func TestPrefixIsByteStableOverTurns(t *testing.T) {
	t.Parallel()
	srv, m := serve(t, llmtest.Echo)
	mark := `{"role":"system","content":"Volatile `
	req := llm.Request{System: "Sys", Tools: tools(), CacheKey: "k"}
	var before string
	for turn := range 6 {
		req.Volatile = "Volatile " + strings.Repeat("x", turn)
		req.Messages = append(req.Messages, llmtest.User("question"))
		body := llmtest.Sent(t, srv, m, req)
		stable, _, found := strings.Cut(body, mark)
		if !found {
			t.Fatalf("no volatile message in %s", body)
		}
		if !strings.HasPrefix(stable, before) {
			t.Fatalf("turn %d changed the prefix:\n%s\n%s", turn, before, stable)
		}
		before = stable
		// Within the turn everything before the tools' results stays, the volatile message included.
		req.Messages = append(req.Messages, toolTurn()...)
		again := llmtest.Sent(t, srv, m, req)
		if !strings.HasPrefix(again, strings.TrimSuffix(body, "]}")) {
			t.Fatalf("turn %d: the second call does not go on from the first:\n%s\n%s", turn, body, again)
		}
		req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Content: []workspace.Content{{Kind: workspace.Text, Text: "done"}}})
	}
}

// TestAHistoryHoldsOnlyWhatOpenAITakes: one call with a name or id that another server let through would have every
// later request of the session refused.
func TestAHistoryHoldsOnlyWhatOpenAITakes(t *testing.T) {
	t.Parallel()
	m := &Model{o: Options{Model: "m"}, prefixes: wire.Prefixes{Encode: encodePrefix}}
	long := strings.Repeat("i", 41)
	body := m.body(llm.Request{Messages: []llm.Message{
		{Role: llm.User, Content: []workspace.Content{{Kind: workspace.Text, Text: "hi"}}},
		{Role: llm.Assistant, Content: []workspace.Content{{Kind: workspace.ToolCall, CallID: long, Name: "read file\n" + strings.Repeat("x", 90), Args: json.RawMessage(`{}`)}}},
		{Role: llm.ToolRole, Content: []workspace.Content{{Kind: workspace.ToolResult, CallID: long, Text: "no such tool"}}},
	}}, 0)
	var got struct {
		Messages []struct {
			Calls []struct {
				ID       string
				Function struct{ Name string }
			} `json:"tool_calls"`
			CallID string `json:"tool_call_id"`
		}
	}
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	call := got.Messages[1].Calls[0]
	if len(call.ID) > 40 || call.ID != got.Messages[2].CallID {
		t.Errorf("ids %q and %q", call.ID, got.Messages[2].CallID)
	}
	if want := "read_file_" + strings.Repeat("x", 54); call.Function.Name != want {
		t.Errorf("name %q, want %q", call.Function.Name, want)
	}
}
