package openai

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strings"

	"parley/agentloop/llm"
	"parley/agentloop/llm/wire"
	"parley/workspace"
)

var (
	errNoBlobs = errors.New("no blob store")
	errTooMany = errors.New("too many tool calls in one answer")
)

const maxCalls = 128 // tool calls of one answer, as OpenAI allows tools

// chunk is one event of a stream, or a whole answer; https://platform.openai.com/docs/api-reference/chat-streaming.
type chunk struct {
	Choices []choice        `json:"choices"`
	Usage   *usage          `json:"usage"`
	Error   json.RawMessage `json:"error"`
}

type choice struct {
	Delta   message `json:"delta"`
	Message message `json:"message"` // of an answer without a stream
	Finish  string  `json:"finish_reason"`
}

type message struct {
	Content          content    `json:"content"`
	ReasoningContent string     `json:"reasoning_content"` // DeepSeek, vLLM, llama.cpp
	Reasoning        string     `json:"reasoning"`         // OpenRouter, Ollama, newer vLLM
	Refusal          string     `json:"refusal"`
	ToolCalls        []fragment `json:"tool_calls"`
}

// fragment of a tool call. Servers leave out or repeat index and id.
type fragment struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string    `json:"name"`
		Arguments arguments `json:"arguments"`
	} `json:"function"`
	Extra json.RawMessage `json:"extra_content"` // Gemini
}

// arguments are a string that holds JSON; some servers send the object itself.
type arguments string

func (a *arguments) UnmarshalJSON(b []byte) error {
	*a = arguments(wire.Plain(b))
	return nil
}

// content is a string or, with Mistral, a list of parts of which some are private thinking.
type content struct{ text, thinking string }

func (c *content) UnmarshalJSON(b []byte) error {
	if len(b) == 0 || b[0] != '[' {
		if b[0] != 'n' {
			return json.Unmarshal(b, &c.text)
		}
		return nil
	}
	var parts []struct {
		Type     string  `json:"type"`
		Text     string  `json:"text"`
		Thinking content `json:"thinking"`
	}
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	for _, p := range parts {
		c.thinking += p.Thinking.text
		c.text += p.Text
	}
	return nil
}

// usage as reported. The cached and written tokens are inside prompt_tokens.
type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	CacheHit   int `json:"prompt_cache_hit_tokens"` // DeepSeek
	Details    struct {
		Cached  int `json:"cached_tokens"`
		Written int `json:"cache_write_tokens"` // OpenRouter
	} `json:"prompt_tokens_details"`
}

// counted turns what the wire says into ours, where InputTokens are those neither read from a cache nor written
// to one, so that the three can be priced and added.
func (u *usage) counted() workspace.Usage {
	if u == nil {
		return workspace.Usage{}
	}
	read := max(u.Details.Cached, u.CacheHit, 0)
	written := max(u.Details.Written, 0)
	return workspace.Usage{
		InputTokens:  max(u.Prompt-read-written, 0),
		OutputTokens: max(u.Completion, 0), CacheReadTokens: read, CacheWriteTokens: written,
	}
}

// call is a tool call that is being put together.
type call struct {
	index    int // -1: the server gave none
	id, name string
	args     []byte
	extra    json.RawMessage
}

func (c *call) whole() bool {
	args := bytes.TrimSpace(c.args)
	return len(args) > 0 && args[0] == '{' && json.Valid(args)
}

// answer is put together from chunks.
type answer struct {
	client    *wire.Client // frees the server's words of the key
	onDelta   func(llm.Delta)
	text      strings.Builder
	reasoning strings.Builder
	think     thinkTag
	calls     []*call
	finish    string
	refused   bool
	usage     *usage
	room      *wire.Room
	long      bool // it was cut for its length
}

// add takes one chunk in.
func (a *answer) add(c *chunk) error {
	if c.Usage != nil {
		a.usage = c.Usage
	}
	if len(c.Choices) == 0 {
		return nil
	}
	ch := &c.Choices[0]
	for _, m := range []*message{&ch.Delta, &ch.Message} {
		if err := a.message(m); err != nil {
			return err
		}
	}
	if ch.Finish != "" {
		a.finish = ch.Finish
	}
	return nil
}

func (a *answer) message(m *message) error {
	thoughts := m.ReasoningContent
	if thoughts == "" {
		thoughts = m.Reasoning
	}
	a.addReasoning(thoughts + m.Content.thinking)
	a.addContent(m.Content.text)
	if m.Refusal != "" {
		a.refused = true
		a.addText(m.Refusal)
	}
	for i := range m.ToolCalls {
		if err := a.fragment(&m.ToolCalls[i]); err != nil {
			return err
		}
	}
	return nil
}

// addContent adds a piece of the answer, from which a thinkTag is taken out.
func (a *answer) addContent(s string) {
	text, thought := a.think.split(s)
	a.addReasoning(thought)
	a.addText(text)
}

func (a *answer) addText(s string) {
	if s = wire.Take(a.room, s); s != "" {
		a.text.WriteString(s)
		a.delta(llm.Delta{Text: s})
	}
}

func (a *answer) addReasoning(s string) {
	if s = wire.Take(a.room, s); s != "" {
		a.reasoning.WriteString(s)
		a.delta(llm.Delta{Reasoning: s})
	}
}

func (a *answer) delta(d llm.Delta) {
	if a.onDelta != nil {
		a.onDelta(d)
	}
}

func (a *answer) fragment(f *fragment) error {
	c := a.find(f)
	if c == nil {
		if len(a.calls) == maxCalls {
			return errTooMany
		}
		c = &call{index: -1}
		if f.Index != nil {
			c.index = *f.Index
		}
		a.calls = append(a.calls, c)
	}
	if c.id == "" {
		c.id = wire.Take(a.room, f.ID)
	}
	if c.name == "" && f.Function.Name != "" {
		c.name = wire.Take(a.room, f.Function.Name)
		a.delta(llm.Delta{ToolName: c.name})
	}
	c.args = append(c.args, wire.Take(a.room, f.Function.Arguments)...)
	if extra := wire.Take(a.room, f.Extra); len(extra) > 0 && len(extra) == len(f.Extra) {
		c.extra = extra
	}
	return nil
}

// find is the call that the fragment goes on with; nil: it begins a new one.
func (a *answer) find(f *fragment) *call {
	for i := len(a.calls) - 1; i >= 0; i-- {
		c := a.calls[i]
		switch {
		case f.Index != nil && c.index != *f.Index:
			continue
		case f.Index == nil && f.ID != "" && c.id != f.ID:
			continue
		case f.begins(c):
			return nil
		}
		return c
	}
	return nil
}

// begins says that f is the start of another call although it has the index or id of c, or none. Servers that send
// each call in one piece give all of them index 0; others repeat id and name with every piece.
func (f *fragment) begins(c *call) bool {
	switch {
	case f.ID != "" && c.id != "" && f.ID != c.id:
		return true
	case f.Function.Name == "" || c.name == "":
		return false
	case f.Index == nil && f.ID == "":
		return true
	}
	return f.Function.Arguments != "" && c.whole()
}

// response is the finished answer. taken are the call ids that the conversation has used up.
func (a *answer) response(account string, taken map[string]bool) llm.Response {
	text, thought := a.think.rest()
	a.addReasoning(thought)
	a.addText(text)
	r := llm.Response{Stop: a.stop(), Usage: a.usage.counted()}
	if a.long && r.Usage.OutputTokens == 0 {
		r.Usage.OutputTokens = a.room.Tokens()
	}
	if a.reasoning.Len() > 0 {
		r.Content = append(r.Content, workspace.Content{Kind: workspace.Reasoning, Text: a.reasoning.String()})
	}
	if a.text.Len() > 0 {
		r.Content = append(r.Content, workspace.Content{Kind: workspace.Text, Text: a.text.String()})
	}
	for i, c := range a.calls {
		cut := r.Stop == llm.StopLength && i == len(a.calls)-1 && !c.whole()
		if c.name == "" || cut {
			continue
		}
		r.Content = append(r.Content, c.content(account, taken))
	}
	return r.Settled()
}

func (a *answer) stop() llm.Stop {
	switch {
	case a.refused || a.finish == "content_filter":
		return llm.StopFiltered
	case a.finish == "length" || a.finish == "max_tokens":
		return llm.StopLength
	}
	return llm.StopEnd
}

func (c *call) content(account string, taken map[string]bool) workspace.Content {
	if c.id == "" || taken[c.id] {
		c.id = "call_" + rand.Text()
	}
	taken[c.id] = true
	out := workspace.Content{Kind: workspace.ToolCall, CallID: c.id, Name: c.name}
	out.Args, out.Error = wire.Object(c.args)
	if len(c.extra) > 0 && string(c.extra) != "null" {
		// Both fields were read as JSON, so that this cannot fail.
		out.Opaque, _ = json.Marshal(opaque{Account: account, Extra: c.extra})
	}
	return out
}
