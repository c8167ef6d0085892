package llmtest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
)

// Anthropic's Messages, https://platform.claude.com/docs/en/api/messages, as far as a client can get it wrong.

var idForm = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// anthropicBody is a request.
type anthropicBody struct {
	Model     string             `json:"model"`
	MaxTokens int                `json:"max_tokens"`
	System    []anthropicBlock   `json:"system"`
	Messages  []anthropicMessage `json:"messages"`
	Tools     []struct {
		Name   string `json:"name"`
		Schema struct {
			Type string `json:"type"`
		} `json:"input_schema"`
		Cache *struct{} `json:"cache_control"`
	} `json:"tools"`
}

type anthropicMessage struct {
	Role    string           `json:"role"`
	Content []anthropicBlock `json:"content"`
}

// anthropicBlock has its content again as blocks when it is a tool's result.
type anthropicBlock struct {
	Type      string           `json:"type"`
	Text      string           `json:"text"`
	ID        string           `json:"id"`
	Name      string           `json:"name"`
	Input     json.RawMessage  `json:"input"`
	ToolUseID string           `json:"tool_use_id"`
	Error     bool             `json:"is_error"`
	Content   []anthropicBlock `json:"content"`
	Signature string           `json:"signature"`
	Data      string           `json:"data"`
	Cache     *struct{}        `json:"cache_control"`
}

func (s *Server) messages(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	refuse := func(status int, why string) {
		sendError(w, Reply{Status: status, ErrorBody: anthropicError(status, why)})
	}
	switch {
	case s.Key != "" && r.Header.Get("X-Api-Key") != s.Key:
		refuse(http.StatusUnauthorized, "invalid x-api-key")
		return
	case r.Header.Get("Anthropic-Version") != "2023-06-01":
		refuse(http.StatusBadRequest, "anthropic-version: header is required")
		return
	}
	if why := wrong(body); why != "" {
		refuse(http.StatusBadRequest, why)
		return
	}
	s.answer(w, r, &Request{Header: r.Header, Body: body, anthropic: true})
}

// wrong says why Anthropic would refuse the request.
func wrong(body []byte) string {
	var b anthropicBody
	if err := json.Unmarshal(body, &b); err != nil {
		return err.Error()
	}
	switch {
	case b.MaxTokens <= 0:
		return "max_tokens: Field required"
	case len(b.Messages) == 0:
		return "messages: at least one message is required"
	case b.Messages[0].Role != "user":
		return "messages: first message must use the \"user\" role"
	case b.Messages[len(b.Messages)-1].Role != "user":
		return "messages: the conversation must end with a user message"
	}
	marks := 0
	for i, t := range b.Tools {
		if t.Schema.Type != "object" {
			return fmt.Sprintf("tools.%d.input_schema.type: Field required", i)
		}
		if t.Cache != nil {
			marks++
		}
	}
	for _, s := range b.System {
		if strings.TrimSpace(s.Text) == "" {
			return "system: text content blocks must be non-empty"
		}
		if s.Cache != nil {
			marks++
		}
	}
	open := map[string]bool{}
	for i, m := range b.Messages {
		if why := b.wrongMessage(m, open, &marks); why != "" {
			return fmt.Sprintf("messages.%d: %s", i, why)
		}
	}
	if marks > 4 {
		return fmt.Sprintf("A maximum of 4 blocks with cache_control may be provided. Found %d.", marks)
	}
	return wrongThinking(body)
}

// wrongMessage checks one message. open are the calls of the message before, each of which wants its result at once.
func (b *anthropicBody) wrongMessage(m anthropicMessage, open map[string]bool, marks *int) string {
	if len(m.Content) == 0 {
		return "content: must be non-empty"
	}
	results := true
	for _, c := range m.Content {
		if c.Cache != nil {
			*marks++
		}
		switch c.Type {
		case "text":
			if strings.TrimSpace(c.Text) == "" {
				return "text content blocks must contain non-whitespace text"
			}
		case "tool_use":
			if m.Role != "assistant" || !idForm.MatchString(c.ID) || !idForm.MatchString(c.Name) || !strings.HasPrefix(string(c.Input), "{") || len(b.Tools) == 0 {
				return "tool_use: invalid " + c.ID
			}
			open[c.ID] = true
			continue
		case "tool_result":
			if m.Role != "user" || !results || !open[c.ToolUseID] {
				return "unexpected `tool_use_id` found in `tool_result` blocks: " + c.ToolUseID
			}
			delete(open, c.ToolUseID)
			continue
		case "thinking", "redacted_thinking":
			if c.Cache != nil || c.Signature+c.Data == "" {
				return "thinking: invalid signature"
			}
		}
		results = false
	}
	if m.Role == "user" && len(open) > 0 {
		return "`tool_use` ids were found without `tool_result` blocks immediately after"
	}
	return ""
}

// wrongThinking does the check of preserved thinking: what stands before a thinking block must be what it was when
// the block was made, cache_control aside.
func wrongThinking(body []byte) string {
	var b struct {
		System   any              `json:"system"`
		Tools    any              `json:"tools"`
		Messages []map[string]any `json:"messages"`
	}
	if json.Unmarshal(body, &b) != nil {
		return "not JSON"
	}
	for i, m := range b.Messages {
		blocks, _ := m["content"].([]any)
		for _, block := range blocks {
			c, _ := block.(map[string]any)
			given := fmt.Sprint(c["signature"])
			if c["type"] == "redacted_thinking" {
				given = fmt.Sprint(c["data"])
			} else if c["type"] != "thinking" {
				continue
			}
			if _, sum, _ := strings.Cut(given, "."); sum != prefixSum(b.System, b.Tools, b.Messages[:i]) {
				return fmt.Sprintf("messages.%d: Invalid `signature` in `thinking` block: what stands before it has changed", i)
			}
		}
	}
	return ""
}

// sign is the end of a signature for an answer to the request.
func sign(req *Request) string {
	var b struct {
		System   any              `json:"system"`
		Tools    any              `json:"tools"`
		Messages []map[string]any `json:"messages"`
	}
	if json.Unmarshal(req.Body, &b) != nil {
		return ""
	}
	return prefixSum(b.System, b.Tools, b.Messages)
}

func prefixSum(system, tools any, messages []map[string]any) string {
	list := make([]any, 0, len(messages)+2)
	for _, m := range messages {
		list = append(list, m)
	}
	raw, err := json.Marshal(unmarked(append(list, system, tools)))
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:8])
}

// unmarked is v without cache_control.
func unmarked(v any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = unmarked(v[i])
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for k := range v {
			if k != "cache_control" {
				out[k] = unmarked(v[k])
			}
		}
		return out
	}
	return v
}

const reminder = "<system-reminder>" // begins a block that no person wrote

// fromAnthropic is the request as a Chat: results are messages of their own, reminders are left out.
func (r *Request) fromAnthropic() *Chat {
	var b anthropicBody
	if json.Unmarshal(r.Body, &b) != nil {
		return new(Chat)
	}
	chat := &Chat{Model: b.Model, Stream: streamed(r.Body)}
	for _, t := range b.Tools {
		chat.Tools = append(chat.Tools, struct {
			Function struct {
				Name string `json:"name"`
			} `json:"function"`
		}{})
		chat.Tools[len(chat.Tools)-1].Function.Name = t.Name
	}
	for _, m := range b.Messages {
		chat.Messages = append(chat.Messages, plainMessages(m)...)
	}
	return chat
}

func plainMessages(m anthropicMessage) []Message {
	var out []Message
	var text strings.Builder
	msg := Message{Role: m.Role}
	for _, c := range m.Content {
		switch {
		case c.Type == "tool_result":
			var result strings.Builder
			for _, part := range c.Content {
				result.WriteString(part.Text)
			}
			out = append(out, Message{Role: "tool", ToolCallID: c.ToolUseID, Content: json.RawMessage(quote(result.String()))})
		case c.Type == "tool_use":
			call := ToolCall{ID: c.ID}
			call.Function.Name, call.Function.Arguments = c.Name, string(c.Input)
			msg.ToolCalls = append(msg.ToolCalls, call)
		case c.Type == "text" && !strings.HasPrefix(c.Text, reminder):
			text.WriteString(c.Text)
		}
	}
	if text.Len() > 0 || m.Role == "assistant" {
		msg.Content = json.RawMessage(quote(text.String()))
		out = append(out, msg)
	}
	return out
}
