package openai

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"parley/agentloop/llm"
	"parley/agentloop/llm/wire"
	"parley/workspace"
)

// The request is appended by hand, not marshalled: the long and always equal start (tools, system) is encoded once
// and copied after that, and a message of history costs one pass over its bytes. The order of fields is fixed, so
// that two requests of a session share every byte up to the last user message.

// body is the whole request.
func (m *Model) body(req llm.Request, q quirk) []byte {
	size := 512 + len(req.System) + len(req.Volatile)
	for i := range req.Messages {
		content := req.Messages[i].Content
		for j := range content {
			size += 64 + len(content[j].Text) + len(content[j].Args)
		}
	}
	b := make([]byte, 0, size+size/8)
	b = append(b, `{"model":`...)
	b = wire.AppendString(b, m.o.Model)
	b = append(b, `,"stream":true`...)
	if q&noUsage == 0 {
		b = append(b, `,"stream_options":{"include_usage":true}`...)
	}
	if n := m.limit(req); n > 0 {
		field := `,"max_tokens":`
		if q&completionTokens != 0 {
			field = `,"max_completion_tokens":`
		}
		b = strconv.AppendInt(append(b, field...), int64(n), 10)
	}
	if effort := q.effort(req.Think); effort != "" && !plain().MatchString(m.o.Model) {
		b = wire.AppendString(append(b, `,"reasoning_effort":`...), effort)
	}
	if m.official && req.CacheKey != "" {
		// Hashed, since a session's key holds the ids of people.
		sum := sha256.Sum256([]byte(req.CacheKey))
		b = append(b, `,"prompt_cache_key":"`...)
		b = append(hex.AppendEncode(b, sum[:16]), '"')
	}
	b = append(b, m.prefixes.Encoded(req.System, req.Tools)...)
	w := writer{m: m, q: q, b: b, first: req.System == ""}
	w.messages(req)
	return append(w.b, `]}`...)
}

func (m *Model) limit(req llm.Request) int {
	if req.MaxTokens > 0 {
		return req.MaxTokens
	}
	return m.o.MaxOutput
}

func encodePrefix(system string, tools []llm.Tool) []byte {
	var b []byte
	for i, t := range tools {
		if i == 0 {
			b = append(b, `,"tools":[`...)
		} else {
			b = append(b, ',')
		}
		b = append(b, `{"type":"function","function":{"name":`...)
		b = wire.AppendString(b, t.Name)
		b = append(b, `,"description":`...)
		b = wire.AppendString(b, t.Description)
		b = append(b, `,"parameters":`...)
		b = appendSchema(b, t.Schema)
		b = append(b, `}}`...)
	}
	if len(tools) > 0 {
		b = append(b, ']')
	}
	b = append(b, `,"messages":[`...)
	if system != "" {
		b = append(b, `{"role":"system","content":`...)
		b = append(wire.AppendString(b, system), '}')
	}
	return b
}

// appendSchema keeps one tool's broken schema (an MCP server wrote it) from spoiling the whole request.
func appendSchema(b []byte, schema json.RawMessage) []byte {
	var compact bytes.Buffer
	if len(schema) == 0 || json.Compact(&compact, schema) != nil {
		return append(b, `{"type":"object","properties":{}}`...)
	}
	return append(b, compact.Bytes()...)
}

// writer appends messages.
type writer struct {
	m      *Model
	q      quirk
	b      []byte
	first  bool                // no message is written yet
	images []workspace.Content // of tool results: only a user's message can show them
}

func (w *writer) messages(req llm.Request) {
	at := volatileAt(req.Messages)
	for i, msg := range req.Messages {
		if msg.Role != llm.ToolRole {
			w.toolImages()
		}
		fold := ""
		if i == at && req.Volatile != "" {
			if w.q&oneSystem != 0 && msg.Role == llm.User {
				fold = req.Volatile
			} else {
				w.text("system", req.Volatile)
			}
		}
		words, plain := msg.Plain()
		switch {
		case plain && words != "" && msg.Role == llm.Assistant:
			w.text("assistant", words)
		case plain && msg.Role == llm.User:
			w.text("user", wire.Join(fold, words))
		case msg.Role == llm.Assistant:
			w.assistant(msg)
		case msg.Role == llm.ToolRole:
			w.tool(msg)
		default:
			w.user(msg, fold)
		}
	}
	w.toolImages()
	if at == len(req.Messages) && req.Volatile != "" {
		w.text("system", req.Volatile)
	}
}

// volatileAt is the index of the first of the last run of user messages: what stands before it stays as it is for
// the provider's cache. Without a user message it is the end.
func volatileAt(msgs []llm.Message) int {
	i := len(msgs) - 1
	for i >= 0 && msgs[i].Role != llm.User {
		i--
	}
	if i < 0 {
		return len(msgs)
	}
	for i > 0 && msgs[i-1].Role == llm.User {
		i--
	}
	return i
}

func (w *writer) open(role string) {
	if !w.first {
		w.b = append(w.b, ',')
	}
	w.first = false
	w.b = append(w.b, `{"role":"`...)
	w.b = append(w.b, role...)
	w.b = append(w.b, '"')
}

func (w *writer) text(role, s string) {
	w.open(role)
	w.b = append(w.b, `,"content":`...)
	w.b = append(wire.AppendString(w.b, s), '}')
}

// picture and document say what the wire has a part for.
func picture(c workspace.Content) bool { return c.Kind == workspace.Image }

func document(c workspace.Content) bool {
	return c.Kind == workspace.FileRef && c.MIME == pdf && c.Blob != ""
}

const pdf = "application/pdf"

func holds(msgs []llm.Message, is func(workspace.Content) bool) bool {
	return slices.ContainsFunc(msgs, func(m llm.Message) bool { return slices.ContainsFunc(m.Content, is) })
}

// shows says whether c becomes a part of its own, and else what is said of it.
func (w *writer) shows(c workspace.Content) (words string, ok bool) {
	switch {
	case picture(c):
		ok = w.q&(sightless|noPictures) == 0
	case document(c):
		ok = w.q&noFiles == 0
	default:
		return wire.Words(c), false
	}
	if !ok {
		return wire.Unseen(c), false
	}
	return c.Text, true
}

// user writes a string where it can: many servers know no parts.
func (w *writer) user(msg llm.Message, fold string) {
	text, images := fold, []workspace.Content(nil)
	for _, c := range msg.Content {
		words, ok := w.shows(c)
		if ok {
			images = append(images, c)
		}
		text = wire.Join(text, words)
	}
	if len(images) == 0 {
		w.text("user", text)
		return
	}
	w.parts(text, images)
}

func (w *writer) parts(text string, images []workspace.Content) {
	w.open("user")
	w.b = append(w.b, `,"content":[{"type":"text","text":`...)
	var shown [][]byte
	var kept []workspace.Content
	for _, c := range images {
		data, err := w.m.blob(c.Blob)
		if err != nil {
			text = wire.Join(text, "["+strings.TrimPrefix(string(c.Kind), "file_")+" "+c.Name+" cannot be shown]")
			continue
		}
		shown, kept = append(shown, data), append(kept, c)
	}
	w.b = append(wire.AppendString(w.b, text), '}')
	for i, c := range kept {
		if document(c) {
			w.b = append(w.b, `,{"type":"file","file":{"filename":`...)
			w.b = wire.AppendString(w.b, c.Name)
			w.b = append(w.b, `,"file_data":"data:application/pdf;base64,`...)
			w.b = append(base64.StdEncoding.AppendEncode(w.b, shown[i]), `"}}`...)
			continue
		}
		mime := c.MIME
		if mime == "" {
			mime = "image/png"
		}
		w.b = append(w.b, `,{"type":"image_url","image_url":{"url":`...)
		w.b = wire.AppendString(w.b, "data:"+mime+";base64,")
		w.b = base64.StdEncoding.AppendEncode(w.b[:len(w.b)-1], shown[i])
		w.b = append(w.b, `"}}`...)
	}
	w.b = append(w.b, `]}`...)
}

func (m *Model) blob(ref string) ([]byte, error) {
	if m.o.Blobs == nil {
		return nil, errNoBlobs
	}
	return m.o.Blobs(ref)
}

// assistant writes text and calls; a message with neither (only reasoning, or nothing) would be refused.
func (w *writer) assistant(msg llm.Message) {
	var text, reasoning string
	var calls []workspace.Content
	for _, c := range msg.Content {
		switch c.Kind {
		case workspace.Reasoning:
			reasoning = wire.Join(reasoning, c.Text)
		case workspace.ToolCall:
			calls = append(calls, c)
		default:
			text = wire.Join(text, wire.Words(c))
		}
	}
	if text == "" && len(calls) == 0 {
		return
	}
	w.open("assistant")
	w.b = append(w.b, `,"content":`...)
	if text == "" {
		w.b = append(w.b, `null`...)
	} else {
		w.b = wire.AppendString(w.b, text)
	}
	if reasoning != "" && len(calls) > 0 && w.q&wantsReasoning != 0 {
		w.b = append(w.b, `,"reasoning_content":`...)
		w.b = wire.AppendString(w.b, reasoning)
	}
	for i, c := range calls {
		if i == 0 {
			w.b = append(w.b, `,"tool_calls":[`...)
		} else {
			w.b = append(w.b, ',')
		}
		w.call(c)
	}
	if len(calls) > 0 {
		w.b = append(w.b, ']')
	}
	w.b = append(w.b, '}')
}

func (w *writer) call(c workspace.Content) {
	w.b = append(w.b, `{"id":`...)
	w.b = wire.AppendString(w.b, w.id(c.CallID))
	w.b = append(w.b, `,"type":"function","function":{"name":`...)
	w.b = wire.AppendString(w.b, toolName(c.Name))
	w.b = append(w.b, `,"arguments":`...)
	args := string(c.Args)
	if c.Error || args == "" {
		args = "{}" // servers that parse arguments refuse a history with broken ones; the result says what was wrong
	}
	w.b = append(wire.AppendString(w.b, args), '}')
	var o opaque
	if len(c.Opaque) > 0 && json.Unmarshal(c.Opaque, &o) == nil && o.Account == w.m.account {
		w.b = append(w.b, `,"extra_content":`...)
		w.b = append(w.b, o.Extra...)
	}
	w.b = append(w.b, '}')
}

// opaque is what a server wants back with its call (Gemini's thought signatures), marked with whose it is: another
// server would refuse it.
type opaque struct {
	Account string          `json:"account"`
	Extra   json.RawMessage `json:"extra_content"`
}

// tool writes one message a result. Content after a ToolResult belongs to it.
func (w *writer) tool(msg llm.Message) {
	text, id, started := "", "", false
	flush := func() {
		if started {
			w.open("tool")
			w.b = append(w.b, `,"tool_call_id":`...)
			w.b = wire.AppendString(w.b, w.id(id))
			w.b = append(w.b, `,"content":`...)
			w.b = append(wire.AppendString(w.b, text), '}')
		}
	}
	for _, c := range msg.Content {
		switch {
		case c.Kind == workspace.ToolResult:
			flush()
			text, id, started = c.Text, c.CallID, true
		default:
			words, ok := w.shows(c)
			if ok {
				w.images = append(w.images, c)
			}
			text = wire.Join(text, words)
		}
	}
	flush()
}

func (w *writer) toolImages() {
	if len(w.images) > 0 {
		images := w.images
		w.images = nil
		w.parts("Images of the tool results above.", images)
	}
}

// id is the call's id, or nine letters and digits made from it where the server wants that.
func (w *writer) id(id string) string {
	if w.q&shortIDs == 0 && len(id) <= maxCallID || len(id) == 9 {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	if w.q&shortIDs == 0 {
		return "call_" + hex.EncodeToString(sum[:12])
	}
	return hex.EncodeToString(sum[:5])[:9]
}

// What OpenAI takes of a history, in bytes; it refuses a request with more, and so each later one of the session.
const (
	maxCallID   = 40
	maxToolName = 64
)

// toolName is a name as some model made it up, in the letters that OpenAI takes, ^[a-zA-Z0-9_-]{1,64}$.
func toolName(name string) string {
	if name == "" {
		return "unknown"
	}
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, name)
	return name[:min(len(name), maxToolName)]
}
