package anthropic

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"hash"
	"slices"
	"strconv"
	"strings"

	"parley/agentloop/llm"
	"parley/agentloop/llm/wire"
	"parley/workspace"
)

// The request is appended by hand, not marshalled: the long and always equal start (tools, system) is encoded once
// and copied after that, and a message of history costs one pass over its bytes. The order of fields is fixed, so
// that two requests of a session share every byte but cache_control up to the turn at hand.

const (
	breakpoint     = `,"cache_control":{"type":"ephemeral"}`
	maxBreakpoints = 4 // https://platform.claude.com/docs/en/build-with-claude/prompt-caching
)

// writer appends messages. Breakpoints of the cache are put in last, so that what stands in b is what the API
// compares when it gets thinking back.
type writer struct {
	m     *Model
	q     quirk
	head  []byte // model and limits
	fixed []byte // tools and system
	b     []byte // messages, without the end of the last
	role  llm.Role
	block int       // offset of the end of the last block that may carry cache_control; 0: there is none
	ends  []int     // of each message of the request: block behind it
	marks []int     // offsets in b where a breakpoint stands
	run   hash.Hash // of fixed and of b up to runTo
	runTo int
}

// write is the whole request.
func (m *Model) write(req llm.Request, q quirk) *writer {
	size := 512 + len(req.Volatile)
	for _, msg := range req.Messages {
		for _, c := range msg.Content {
			size += 96 + len(c.Text) + len(c.Args)
		}
	}
	w := &writer{m: m, q: q, b: make([]byte, 0, size+size/8)}
	w.head = wire.AppendString([]byte(`{"model":`), m.o.Model)
	think, most := m.thinking(req.Think, q, m.maxTokens(req))
	w.head = strconv.AppendInt(append(w.head, `,"max_tokens":`...), int64(most), 10)
	w.head = append(append(w.head, think...), `,"stream":true`...)
	if len(req.Tools) == 0 && hasCalls(req.Messages) {
		// The API wants tools to be named where the conversation has calls of them.
		w.head = append(w.head, `,"tool_choice":{"type":"none"}`...)
		req.Tools = []llm.Tool{{Name: "none", Description: "There are no tools now."}}
	}
	w.fixed = m.prefixes.Encoded(req.System, req.Tools)
	at := turnStart(req.Messages)
	w.messages(req, at)
	if q&noCache == 0 {
		w.mark(req, at)
	}
	return w
}

func (m *Model) maxTokens(req llm.Request) int {
	n := m.o.MaxOutput
	if req.MaxTokens > 0 {
		n = req.MaxTokens
	}
	if most := int(m.limit.Load()); most > 0 {
		n = min(n, most)
	}
	return n
}

func hasCalls(msgs []llm.Message) bool {
	return slices.ContainsFunc(msgs, func(m llm.Message) bool {
		return slices.ContainsFunc(m.Content, func(c workspace.Content) bool {
			return c.Kind == workspace.ToolCall || c.Kind == workspace.ToolResult
		})
	})
}

// body puts the parts together.
func (w *writer) body() []byte {
	fixed := w.fixed
	if w.q&noCache != 0 {
		fixed = bytes.ReplaceAll(fixed, []byte(breakpoint), nil) // inside a string its quotes would be escaped
	}
	out := make([]byte, 0, len(w.head)+len(fixed)+len(w.b)+len(w.marks)*len(breakpoint)+8)
	out = append(append(out, w.head...), fixed...)
	from := 0
	for _, at := range w.marks {
		out = append(append(out, w.b[from:at]...), breakpoint...)
		from = at
	}
	return append(append(out, w.b[from:]...), `]}]}`...)
}

// sum tells the request up to an offset in b from others, for the check of thinking that is sent back. It reads only
// what it has not read yet, so that offsets must not go back.
func (w *writer) sum(to int) string {
	if w.run == nil {
		w.run = sha256.New()
		w.run.Write(w.fixed) // a hash takes everything
	}
	w.run.Write(w.b[w.runTo:to])
	w.runTo = to
	return hex.EncodeToString(w.run.Sum(nil)[:8])
}

// mark chooses the breakpoints in the messages. What stands before the turn at hand stays as it is and is read by
// the turns to come; within a turn each call after the first reads what the call before it wrote. The one before is
// marked too, since the API looks back over 20 blocks only and one round of parallel calls can be longer.
func (w *writer) mark(req llm.Request, at int) {
	fixed := bytes.Count(w.fixed, []byte(breakpoint))
	points := []int{w.endOf(at)}
	rounds := resultsAfter(req.Messages, at)
	if len(rounds) == 0 && at > 0 {
		points = append(points, w.endOf(turnStart(req.Messages[:at-1])))
	}
	for _, end := range rounds[max(0, len(rounds)-2):] {
		points = append(points, w.endOf(end))
	}
	slices.Sort(points)
	for _, p := range slices.Compact(points) {
		if p > 0 && len(w.marks)+fixed < maxBreakpoints {
			w.marks = append(w.marks, p)
		}
	}
}

// endOf is the offset of the last block of the first n messages.
func (w *writer) endOf(n int) int {
	if n == 0 {
		return 0
	}
	return w.ends[n-1]
}

// resultsAfter are the ends of the runs of tool results from message at on.
func resultsAfter(msgs []llm.Message, at int) []int {
	var ends []int
	for i := at; i < len(msgs); i++ {
		if msgs[i].Role == llm.ToolRole && (i+1 == len(msgs) || msgs[i+1].Role != llm.ToolRole) {
			ends = append(ends, i+1)
		}
	}
	return ends
}

// turnStart is the index of the user's message that began the turn at hand: the first behind the last answer that
// called no tool. A message that was steered into the turn does not move it. Without a user's message it is the end.
func turnStart(msgs []llm.Message) int {
	start := 0
	for i := len(msgs) - 1; i >= 0; i-- {
		if msgs[i].Role == llm.Assistant && !hasCalls(msgs[i:i+1]) {
			start = i + 1
			break
		}
	}
	for ; start < len(msgs); start++ {
		if msgs[start].Role == llm.User {
			return start
		}
	}
	return len(msgs)
}

// messages writes the conversation. What changes from turn to turn stands before the question of the turn, since
// text behind tool results teaches the model to wait for it.
func (w *writer) messages(req llm.Request, at int) {
	for i, msg := range req.Messages {
		if i == at {
			w.volatile(req.Volatile)
		}
		switch msg.Role {
		case llm.Assistant:
			w.assistant(msg)
		case llm.ToolRole:
			w.results(msg)
		default:
			w.user(msg)
		}
		w.ends = append(w.ends, w.block)
	}
	if at == len(req.Messages) {
		w.volatile(req.Volatile)
	}
	if w.role != llm.User { // the API wants the user to speak last
		w.text(llm.User, "Go on.")
	}
}

// volatile is marked as the system's, which the wire has no other place for behind the cached part.
func (w *writer) volatile(text string) {
	if strings.TrimSpace(text) != "" {
		w.text(llm.User, "<system-reminder>\n"+text+"\n</system-reminder>")
	}
}

// turn opens a message of the role, or goes on with the one that is open.
func (w *writer) turn(role llm.Role) {
	switch {
	case w.role == role:
		w.b = append(w.b, ',')
		return
	case w.role != "":
		w.b = append(w.b, `]},`...)
	case role == llm.Assistant: // the API wants the user to speak first
		w.b = append(w.b, `{"role":"user","content":[{"type":"text","text":"(the conversation goes on)"}]},`...)
	}
	w.role = role
	w.b = append(w.b, `{"role":"`...)
	w.b = append(w.b, role...)
	w.b = append(w.b, `","content":[`...)
}

// done ends a block that may carry cache_control.
func (w *writer) done() {
	w.block = len(w.b)
	w.b = append(w.b, '}')
}

// text writes a block; the API refuses one without a visible character.
func (w *writer) text(role llm.Role, s string) {
	if strings.TrimSpace(s) == "" {
		return
	}
	w.turn(role)
	w.b = append(w.b, `{"type":"text","text":`...)
	w.b = wire.AppendString(w.b, s)
	w.done()
}

func (w *writer) user(msg llm.Message) {
	before := len(w.b)
	var text string
	for _, c := range msg.Content {
		if p, ok := w.m.picture(c, w.q); ok {
			w.text(llm.User, wire.Join(text, c.Text))
			w.turn(llm.User)
			w.b = p.append(w.b)
			w.done()
			text = ""
			continue
		}
		text = wire.Join(text, unseen(c))
	}
	w.text(llm.User, text)
	if len(w.b) == before {
		w.text(llm.User, "(a message without text)")
	}
}

// assistant writes thinking, text and calls in their order.
func (w *writer) assistant(msg llm.Message) {
	if !slices.ContainsFunc(msg.Content, func(c workspace.Content) bool {
		return c.Kind == workspace.ToolCall || strings.TrimSpace(wire.Words(c)) != ""
	}) {
		return // thinking alone says nothing
	}
	before := len(w.b)
	for _, c := range msg.Content {
		switch c.Kind {
		case workspace.Reasoning:
			w.thinking(c, before)
		case workspace.ToolCall:
			w.call(c)
		default:
			w.text(llm.Assistant, wire.Words(c))
		}
	}
}

func (w *writer) call(c workspace.Content) {
	w.turn(llm.Assistant)
	w.b = append(w.b, `{"type":"tool_use","id":`...)
	w.b = wire.AppendString(w.b, callID(c.CallID))
	w.b = append(w.b, `,"name":`...)
	w.b = wire.AppendString(w.b, toolName(c.Name))
	w.b = append(w.b, `,"input":`...)
	args := []byte(c.Args)
	if first := strings.TrimSpace(string(args)); c.Error || !strings.HasPrefix(first, "{") {
		args = []byte(`{}`) // only an object is taken; the result says what was wrong
	}
	w.b = append(w.b, args...)
	w.done()
}

// results writes what the calls gave. Content after a ToolResult belongs to it.
func (w *writer) results(msg llm.Message) {
	for i, c := range msg.Content {
		if c.Kind != workspace.ToolResult {
			continue
		}
		end := i + 1
		for end < len(msg.Content) && msg.Content[end].Kind != workspace.ToolResult {
			end++
		}
		w.result(c, msg.Content[i+1:end])
	}
}

func (w *writer) result(c workspace.Content, more []workspace.Content) {
	text := c.Text
	var shown []picture
	for _, m := range more {
		p, ok := w.m.picture(m, w.q)
		if ok && !c.Error { // an error is text only
			shown, text = append(shown, p), wire.Join(text, m.Text)
			continue
		}
		text = wire.Join(text, unseen(m))
	}
	w.turn(llm.User)
	w.b = append(w.b, `{"type":"tool_result","tool_use_id":`...)
	w.b = wire.AppendString(w.b, callID(c.CallID))
	if c.Error {
		w.b = append(w.b, `,"is_error":true`...)
	}
	if strings.TrimSpace(text) == "" {
		text = "(no output)"
	}
	w.b = append(w.b, `,"content":[{"type":"text","text":`...)
	w.b = append(wire.AppendString(w.b, text), '}')
	for _, p := range shown {
		w.b = append(p.append(append(w.b, ',')), '}')
	}
	w.b = append(w.b, ']')
	w.done()
}

// origin is where thinking comes from: no other model can read it, and none after another beginning
// (https://platform.claude.com/docs/en/build-with-claude/preserved-thinking).
type origin struct{ account, prefix string }

// opaque is what the API wants back with thinking.
type opaque struct {
	Account   string `json:"account"`
	Prefix    string `json:"prefix"`
	Signature string `json:"signature,omitempty"`
	Redacted  string `json:"redacted,omitempty"`
}

// thinking goes back only where it was: another model, a turn that is over (whose Volatile has gone) or a history
// that was shortened would make the API refuse the request.
func (w *writer) thinking(c workspace.Content, before int) {
	var o opaque
	if w.q&noThoughts != 0 || len(c.Opaque) == 0 || json.Unmarshal(c.Opaque, &o) != nil || o.Account != w.m.account || o.Prefix != w.sum(before) {
		return
	}
	w.turn(llm.Assistant)
	if o.Redacted != "" {
		w.b = append(w.b, `{"type":"redacted_thinking","data":`...)
		w.b = append(wire.AppendString(w.b, o.Redacted), '}')
		return
	}
	w.b = append(w.b, `{"type":"thinking","thinking":`...)
	w.b = wire.AppendString(w.b, c.Text)
	w.b = append(w.b, `,"signature":`...)
	w.b = append(wire.AppendString(w.b, o.Signature), '}')
}
