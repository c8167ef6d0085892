// Package llmtest is a scripted model server for tests and load drivers: it speaks OpenAI's Chat Completions and
// Anthropic's Messages over HTTP, streamed and whole, answers from a script and can fail in every way that real
// servers do. What it is asked in Anthropic's format it checks as strictly as Anthropic does. It is not a model
// and keeps no conversation: a script sees one request and says one reply. The server starts no goroutine beyond
// net/http's own; Start's listener lives until the test ends. Suite is what every adapter promises, checked against it.
//
// In a load driver: http.Serve(listener, llmtest.New(llmtest.Echo)).
package llmtest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// Script answers one request. It is called from many goroutines at once.
type Script func(*Request) Reply

// Request is one call as it came in.
type Request struct {
	N      int // 1 for the first completion request of the server
	Header http.Header
	Body   []byte

	anthropic bool // the wire format; Chat looks the same in both
	chat      *Chat
}

// Chat is a request body, decoded.
type Chat struct {
	Model         string `json:"model"`
	Stream        bool   `json:"stream"`
	StreamOptions *struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Messages []Message `json:"messages"`
	Tools    []struct {
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	} `json:"tools"`
}

// Message of a request. Content is a string or a list of parts.
type Message struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCalls  []ToolCall      `json:"tool_calls"`
	ToolCallID string          `json:"tool_call_id"`
}

// ToolCall of an assistant's message in a request.
type ToolCall struct {
	ID       string `json:"id"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// Text of the message: its string, or its text parts joined.
func (m Message) Text() string {
	var s string
	if json.Unmarshal(m.Content, &s) == nil {
		return s
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(m.Content, &parts) != nil {
		return ""
	}
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

// Chat decodes the body, once. A body that is not a JSON object gives an empty Chat.
func (r *Request) Chat() *Chat {
	if r.chat == nil && r.anthropic {
		r.chat = r.fromAnthropic()
	}
	if r.chat == nil {
		r.chat = new(Chat)
		if json.Unmarshal(r.Body, r.chat) != nil {
			r.chat = new(Chat)
		}
	}
	return r.chat
}

const userMark = `{"role":"user","content":`

// LastUser is the text of the last user message.
func (r *Request) LastUser() string {
	// The mark cannot stand inside a JSON string, where its quotes would be escaped: reading from its last place
	// spares a load driver the decoding of a long prompt.
	if i := bytes.LastIndex(r.Body, []byte(userMark)); i >= 0 && !r.anthropic {
		var m Message
		if json.NewDecoder(bytes.NewReader(r.Body[i:])).Decode(&m) == nil {
			return m.Text()
		}
	}
	for i := len(r.Chat().Messages) - 1; i >= 0; i-- {
		if m := r.Chat().Messages[i]; m.Role == "user" {
			return m.Text()
		}
	}
	return ""
}

// Round counts the assistant's messages since the last user message: 0 is the first model call of a turn, 1 the
// call after the first tool results.
func (r *Request) Round() int {
	n := 0
	for _, m := range r.Chat().Messages {
		switch m.Role {
		case "assistant":
			n++
		case "user":
			n = 0
		}
	}
	return n
}

// ToolResults are the texts of the tool messages after the last assistant's message, in order.
func (r *Request) ToolResults() []string {
	var out []string
	for _, m := range r.Chat().Messages {
		switch m.Role {
		case "tool":
			out = append(out, m.Text())
		default:
			out = nil
		}
	}
	return out
}

// Call is a tool call to make. In a stream its arguments come in fragments, mixed with those of the other calls.
type Call struct {
	ID   string // made from the request's and the call's number when empty
	Name string
	Args string // JSON text, sent as it is
}

// Usage of a reply. The zero value is counted as bytes/4.
// Prompt is the whole of it; Cached and Written are parts.
type Usage struct{ Prompt, Completion, Cached, Written, Reasoning int }

// Reply is what the server does with one request. The zero Reply is an empty answer.
type Reply struct {
	Text      string
	Pieces    []string // the deltas of Text, when they matter; Text is ignored then
	Reasoning string   // as reasoning_content, or a signed thinking block
	Redacted  string   // Anthropic: thinking that may not be read
	Refusal   string
	Calls     []Call
	Finish    string // finish_reason or stop_reason; empty: what fits
	Usage     Usage
	NoUsage   bool // send none, even when asked

	Latency    time.Duration // before the headers
	TokenDelay time.Duration // before each chunk

	Status    int    // above 299: an error answer with ErrorBody
	ErrorBody string // sent as it is; empty: the wire format's shape with the status text
	Header    map[string]string
	Raw       []string // lines of a stream, sent as they are instead of all of the above

	HangBefore bool // never send headers
	HangAfter  int  // above 0: fall silent after so many chunks
	CutAfter   int  // above 0: close the connection after so many chunks, without an end
	Whole      bool // answer with one JSON body although a stream was asked for
}

// Echo answers with the last user text.
func Echo(r *Request) Reply { return Reply{Text: "echo: " + r.LastUser()} }

// Sequence gives the first reply to the first request and so on; the last one stays.
func Sequence(replies ...Reply) Script {
	return func(r *Request) Reply { return replies[min(r.N, len(replies))-1] }
}

// Rule answers when the last user text contains Contains. Replies[n] is for Round n; the last one stays.
type Rule struct {
	Contains string
	Replies  []Reply
}

// Rules is a script of rules; the first that matches wins, without a match the text is echoed.
func Rules(rules ...Rule) Script {
	return func(r *Request) Reply {
		text := r.LastUser()
		for _, rule := range rules {
			if strings.Contains(text, rule.Contains) {
				return rule.Replies[min(r.Round(), len(rule.Replies)-1)]
			}
		}
		return Echo(r)
	}
}
