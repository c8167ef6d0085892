package anthropic

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"parley/agentloop/llm"
	"parley/agentloop/llm/wire"
	"parley/workspace"
)

var (
	errTooMany = errors.New("too many blocks in one answer")
	errNoBlock = errors.New("a piece of a block that has not begun")
)

const maxBlocks = 512 // of one answer

// event of a stream, or with Type message a whole answer; https://platform.claude.com/docs/en/build-with-claude/streaming.
type event struct {
	Type    string          `json:"type"`
	Index   int             `json:"index"`
	Message *message        `json:"message"`       // message_start
	Block   json.RawMessage `json:"content_block"` // content_block_start
	Delta   delta           `json:"delta"`         // content_block_delta, message_delta
	Usage   *usage          `json:"usage"`         // message_delta
	Error   json.RawMessage `json:"error"`
}

type message struct {
	Content []json.RawMessage `json:"content"`
	Usage   *usage            `json:"usage"`
	ending
}

type ending struct {
	Stop    string `json:"stop_reason"`
	Details struct {
		Explanation string `json:"explanation"` // of a refusal
	} `json:"stop_details"`
}

type delta struct {
	Type      string `json:"type"`
	Text      string `json:"text"`
	Partial   string `json:"partial_json"`
	Thinking  string `json:"thinking"`
	Signature string `json:"signature"`
	ending
}

// usage as reported: input_tokens are those after the last breakpoint, and the other two stand beside them. All are
// totals; a later event replaces what it names.
type usage struct {
	Input   *int `json:"input_tokens"`
	Output  *int `json:"output_tokens"`
	Read    *int `json:"cache_read_input_tokens"`
	Written *int `json:"cache_creation_input_tokens"`
	// The time for which the written ones are kept. We ask for five minutes only, and they are priced so.
	Creation *struct {
		Short int `json:"ephemeral_5m_input_tokens"`
		Long  int `json:"ephemeral_1h_input_tokens"`
	} `json:"cache_creation"`
}

// start of a block, or a whole block.
type start struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	Data      string          `json:"data"` // redacted_thinking
	ID        string          `json:"id"`   // tool_use
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
}

// block is a piece of the answer that is being put together. One of an unknown kind is passed over.
type block struct {
	start
	text strings.Builder // text, thinking or the arguments of a call
}

// answer is put together from events.
type answer struct {
	client  *wire.Client // frees the server's words of the key
	onDelta func(llm.Delta)
	blocks  []*block
	ending
	usage   workspace.Usage
	stopped bool // the server said that the answer is complete
	room    *wire.Room
	long    bool // it was cut for its length
}

// add takes one event in.
func (a *answer) add(e *event) error {
	switch e.Type {
	case "message_start":
		if e.Message != nil {
			return a.message(e.Message)
		}
	case "content_block_start":
		return a.begin(e.Index, e.Block)
	case "content_block_delta":
		return a.piece(e.Index, &e.Delta)
	case "message_delta":
		a.end(e.Delta.ending)
		a.count(e.Usage)
	case "message_stop":
		a.stopped = true
	}
	return nil // ping, content_block_stop, and what is added to the API later
}

// message is the start of an answer, or the whole of it.
func (a *answer) message(m *message) error {
	for i, raw := range m.Content {
		if err := a.begin(i, raw); err != nil {
			return err
		}
	}
	a.end(m.ending)
	a.count(m.Usage)
	return nil
}

func (a *answer) end(e ending) {
	if e.Stop != "" {
		a.ending = e
	}
}

func (a *answer) count(u *usage) {
	if u == nil {
		return
	}
	set := func(to *int, from *int) {
		if from != nil {
			*to = max(*from, 0)
		}
	}
	if u.Creation != nil && u.Written == nil {
		sum := u.Creation.Short + u.Creation.Long
		u.Written = &sum
	}
	set(&a.usage.InputTokens, u.Input)
	set(&a.usage.OutputTokens, u.Output)
	set(&a.usage.CacheReadTokens, u.Read)
	set(&a.usage.CacheWriteTokens, u.Written)
}

// begin opens a block. Indices come in order and without gaps.
func (a *answer) begin(index int, raw json.RawMessage) error {
	if len(a.blocks) == maxBlocks {
		return errTooMany
	}
	if index != len(a.blocks) {
		return errNoBlock
	}
	b := &block{}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &b.start); err != nil {
			return err
		}
	}
	for _, s := range []*string{&b.Type, &b.ID, &b.Name, &b.Signature, &b.Data} {
		*s = wire.Take(a.room, *s)
	}
	b.Input = wire.Take(a.room, b.Input)
	a.blocks = append(a.blocks, b)
	if b.Type == "tool_use" {
		a.delta(llm.Delta{ToolName: b.Name})
	}
	a.addText(b, b.Text)
	a.addThinking(b, b.Thinking)
	return nil
}

func (a *answer) piece(index int, d *delta) error {
	if index < 0 || index >= len(a.blocks) {
		return errNoBlock
	}
	b := a.blocks[index]
	switch d.Type {
	case "text_delta":
		a.addText(b, d.Text)
	case "thinking_delta":
		a.addThinking(b, d.Thinking)
	case "signature_delta":
		b.Signature += wire.Take(a.room, d.Signature)
	case "input_json_delta":
		b.text.WriteString(wire.Take(a.room, d.Partial))
	}
	return nil
}

func (a *answer) addText(b *block, s string) {
	if s != "" && b.Type == "text" {
		if s = wire.Take(a.room, s); s == "" {
			return
		}
		b.text.WriteString(s)
		a.delta(llm.Delta{Text: s})
	}
}

func (a *answer) addThinking(b *block, s string) {
	if s != "" && b.Type == "thinking" {
		if s = wire.Take(a.room, s); s == "" {
			return
		}
		b.text.WriteString(s)
		a.delta(llm.Delta{Reasoning: s})
	}
}

func (a *answer) delta(d llm.Delta) {
	if a.onDelta != nil {
		a.onDelta(d)
	}
}

// response is the finished answer. taken are the call ids that the conversation has used up.
func (a *answer) response(from origin, taken map[string]bool) llm.Response {
	r := llm.Response{Stop: a.stop(), Usage: a.usage}
	if a.long { // what was counted up to there is the beginning alone
		r.Usage.OutputTokens = max(r.Usage.OutputTokens, a.room.Tokens())
	}
	for i, b := range a.blocks {
		if b.Type == "tool_use" && r.Stop == llm.StopLength && i == len(a.blocks)-1 && !b.whole() {
			continue // begun, and cut
		}
		if c, ok := b.content(from, taken); ok {
			r.Content = append(r.Content, c)
		}
	}
	if r.Stop == llm.StopFiltered && workspace.PlainText(r.Content) == "" && a.Details.Explanation != "" {
		text := a.Details.Explanation
		r.Content = append(r.Content, workspace.Content{Kind: workspace.Text, Text: text})
		a.delta(llm.Delta{Text: text})
	}
	return r.Settled()
}

// stop maps the reasons; pause_turn comes only with tools of the server, which we never name.
func (a *answer) stop() llm.Stop {
	switch a.Stop {
	case "refusal":
		return llm.StopFiltered
	case "max_tokens", "model_context_window_exceeded":
		return llm.StopLength
	}
	return llm.StopEnd
}

// args of a call: what was streamed, else what the start held.
func (b *block) args() []byte {
	if b.text.Len() > 0 {
		return []byte(b.text.String())
	}
	return b.Input
}

func (b *block) whole() bool {
	args := bytes.TrimSpace(b.args())
	return len(args) > 0 && args[0] == '{' && json.Valid(args) && (b.text.Len() > 0 || string(args) != "{}")
}

// content is the block as it is kept; ok is false for one that says nothing.
func (b *block) content(from origin, taken map[string]bool) (c workspace.Content, ok bool) {
	switch {
	case b.Type == "text" && b.text.Len() > 0:
		return workspace.Content{Kind: workspace.Text, Text: b.text.String()}, true
	case b.Type == "thinking" && b.text.Len()+len(b.Signature) > 0:
		return b.thought(from), true
	case b.Type == "redacted_thinking" && b.Data != "":
		return b.thought(from), true
	case b.Type == "tool_use" && b.Name != "":
		id := b.ID
		if id == "" || taken[id] {
			id = "toolu_" + rand.Text()
		}
		taken[id] = true
		c = workspace.Content{Kind: workspace.ToolCall, CallID: id, Name: b.Name}
		c.Args, c.Error = wire.Object(b.args())
		return c, true
	}
	return workspace.Content{}, false
}

// thinks says that there is something to be sent back.
func (a *answer) thinks() bool {
	return slices.ContainsFunc(a.blocks, func(b *block) bool { return b.Signature != "" || b.Data != "" })
}

func (b *block) thought(from origin) workspace.Content {
	c := workspace.Content{Kind: workspace.Reasoning, Text: b.text.String()}
	if b.Signature != "" || b.Data != "" {
		// Strings only, so that this cannot fail.
		c.Opaque, _ = json.Marshal(opaque{Account: from.account, Prefix: from.prefix, Signature: b.Signature, Redacted: b.Data})
	}
	return c
}
