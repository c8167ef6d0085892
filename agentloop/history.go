package agentloop

import (
	"fmt"
	"slices"

	"parley/agentloop/llm"
	"parley/workspace"
)

const (
	bytesPerToken = 4    // an estimate that is right for English and high for most else
	messageTokens = 8    // what a message costs in addition to its text
	imageTokens   = 1000 // about what providers count for one picture
	shrunkResult  = 2000 // bytes that are left of a tool's result when the turn itself is too long
)

// Tokens is about how many a text of so many bytes takes.
func Tokens(bytes int) int { return (bytes + bytesPerToken - 1) / bytesPerToken }

func tokens(s string) int { return Tokens(len(s)) }

func messageSize(m llm.Message) int {
	n := messageTokens
	for i := range m.Content {
		c := &m.Content[i]
		n += tokens(c.Text) + (len(c.Args)+len(c.Opaque))/bytesPerToken
		switch {
		case c.Kind == workspace.Image:
			n += imageTokens
		case shown(c):
			n += fileTokens(c.Size)
		}
	}
	return n
}

// unit is what is kept or left out together: a user's message with all that followed up to the next.
type unit struct {
	messages []llm.Message
	size     int // tokens
}

// conversation is what the model is sent. Earlier messages never change and later ones are only added, so that
// the bytes of one request begin with those of the request before, until the oldest part is left out.
type conversation struct {
	summary *llm.Message // of what came before past; never left out
	past    []unit
	now     []llm.Message // this turn
	nowSize int
	left    int   // messages that were left out
	leftTok int   // their tokens
	used    int64 // bytes of files that this turn shows
}

func (c *conversation) add(m llm.Message) {
	if len(m.Content) == 0 {
		return
	}
	c.now = append(c.now, m)
	c.nowSize += messageSize(m)
}

// messages is the whole conversation, with a word on what is missing.
func (c *conversation) messages() []llm.Message {
	n := 2 + len(c.now)
	for _, u := range c.past {
		n += len(u.messages)
	}
	out := make([]llm.Message, 0, n)
	if c.summary != nil {
		out = append(out, *c.summary)
	}
	if c.left > 0 {
		out = append(out, textMessage(llm.User, fmt.Sprintf("[%d earlier messages of this conversation were left out to fit.]", c.left)))
	}
	for _, u := range c.past {
		out = append(out, u.messages...)
	}
	return append(out, c.now...)
}

// fit leaves out the oldest units until the rest is within budget tokens. It takes them in strides of a quarter of
// the budget, counted from the beginning, so that the beginning of the prompt is another one only now and then.
func (c *conversation) fit(budget int) {
	total := c.leftTok + c.nowSize
	if c.summary != nil {
		total += messageSize(*c.summary)
	}
	for _, u := range c.past {
		total += u.size
	}
	need := total - budget
	if need <= c.leftTok {
		return
	}
	stride := max(budget/4, 1)
	need = (need + stride - 1) / stride * stride
	for len(c.past) > 0 && c.leftTok < need {
		c.drop()
	}
}

// halve leaves out the older half of what is left of the past, or, when nothing is, the ends of long tool results
// of this turn, and then its pictures. It says whether there was anything to leave out.
func (c *conversation) halve() bool {
	if n := (len(c.past) + 1) / 2; n > 0 {
		for range n {
			c.drop()
		}
		return true
	}
	shrunk := false
	for i, m := range c.now {
		if m.Role != llm.ToolRole {
			continue
		}
		content := slices.Clone(m.Content)
		for j := range content {
			if len(content[j].Text) > 2*shrunkResult {
				content[j].Text = cut(content[j].Text, shrunkResult) + "\n" + outsideClose
				shrunk = true
			}
		}
		c.now[i].Content = content
	}
	shrunk = shrunk || c.dim()
	c.nowSize = 0
	for _, m := range c.now {
		c.nowSize += messageSize(m)
	}
	return shrunk
}

func (c *conversation) drop() {
	c.left += len(c.past[0].messages)
	c.leftTok += c.past[0].size
	c.past = c.past[1:]
}

// inTurn are the user's messages of the turn at hand, each with the number of the step that it came after.
type inTurn struct {
	messages []llm.Message
	after    []int
	used     int64 // bytes of the files in them
}

// upTo takes the messages that came after step n or before it.
func (t *inTurn) upTo(n int) []llm.Message {
	i := 0
	for i < len(t.after) && t.after[i] <= n {
		i++
	}
	taken := t.messages[:i]
	t.messages, t.after = t.messages[i:], t.after[i:]
	return taken
}

// splitHistory turns a transcript into messages: earlier turns as units, and what the user said in this one. Of
// this run's own steps the journal is the record, so that only their place is read here. Every call gets its
// result behind it, wherever the transcript has it, and results without their call are left out.
func splitHistory(history []workspace.Entry, run workspace.RunID, peerKind string) ([]unit, *inTurn) {
	return (*Known)(nil).split(history, run, peerKind)
}

func (k *Known) split(history []workspace.Entry, run workspace.RunID, peerKind string) ([]unit, *inTurn) {
	from, past := k.begin(history, peerKind)
	results := resultsByCall(history[from:])
	now := &inTurn{}
	step, view, ended := 0, viewOf(history, from, run), false
	for i := from; i < len(history); i++ {
		e := &history[i]
		past.at = i
		mine := run != "" && e.RunID == run
		if mine && !ended {
			ended = true
			k.keep(history, from, peerKind, &past)
		}
		switch {
		case mine && e.Role == workspace.RoleUser:
			step = max(step, e.StepN)
			now.messages, now.after = append(now.messages, present(userMessage(e, peerKind), &now.used)), append(now.after, step)
		case mine:
			step = max(step, e.StepN)
		case e.Role == workspace.RoleUser:
			past.add(view.past(i, userMessage(e, peerKind)))
		case e.Role == workspace.RoleAssistant:
			past.add(assistantEntry(e))
			for j := range e.Body.Content {
				if c := &e.Body.Content[j]; c.Kind == workspace.ToolCall {
					past.add(toolMessage(results.of(e.RunID, c)))
				}
			}
		}
	}
	list := past.list
	if last := len(list) - 1; len(now.messages) == 0 && last >= 0 && list[last].messages[len(list[last].messages)-1].Role == llm.User {
		now.messages, now.after = list[last].messages, make([]int, len(list[last].messages))
		list = list[:last]
	}
	return list, now
}

// units are put together from messages in order.
type units struct {
	list  []unit
	spare []llm.Message // for the usual two of a unit, allocated at once
	at    int           // the entry that is looked at
	last  int           // the entry with which the last unit begins
}

// add begins a new unit with each user's message that follows something else.
func (u *units) add(m llm.Message) {
	if len(m.Content) == 0 {
		return
	}
	last := len(u.list) - 1
	if last < 0 || m.Role == llm.User && u.list[last].messages[len(u.list[last].messages)-1].Role != llm.User {
		one := unit{}
		if len(u.spare) >= 2 {
			one.messages, u.spare = u.spare[:0:2], u.spare[2:]
		}
		u.list, last, u.last = append(u.list, one), last+1, u.at
	}
	u.list[last].messages = append(u.list[last].messages, m)
	u.list[last].size += messageSize(m)
}

type callKey struct {
	run workspace.RunID
	id  string
}

type callResults map[callKey][]workspace.Content

func resultsByCall(history []workspace.Entry) callResults {
	results := callResults{}
	for i := range history {
		e := &history[i]
		if e.Role != workspace.RoleTool {
			continue
		}
		var key callKey
		for _, c := range e.Body.Content {
			if c.Kind == workspace.ToolResult {
				key = callKey{e.RunID, c.CallID}
				if len(results[key]) > 0 { // the first one holds
					key = callKey{}
				}
			}
			if key.id != "" {
				results[key] = append(results[key], c)
			}
		}
	}
	return results
}

func (r callResults) of(run workspace.RunID, c *workspace.Content) []workspace.Content {
	if content := r[callKey{run, c.CallID}]; len(content) > 0 {
		return content
	}
	return []workspace.Content{{Kind: workspace.ToolResult, CallID: c.CallID, Name: c.Name, Text: saidLost, Error: true}}
}

func textMessage(role llm.Role, text string) llm.Message {
	return llm.Message{Role: role, Content: []workspace.Content{{Kind: workspace.Text, Text: text}}}
}

// userMessage is what a person said, behind what others had said before (quoted, as data); where several speak,
// with the person's name.
func userMessage(e *workspace.Entry, peerKind string) llm.Message {
	named := e.Body.Name != "" && (peerKind == "group" || peerKind == "room")
	if content := e.Body.Content; len(e.Body.Context) == 0 && !named && len(content) == 1 && content[0].Text != "" {
		return llm.Message{Role: llm.User, Content: content}
	}
	content := make([]workspace.Content, 0, len(e.Body.Content)+1)
	add := func(text string) {
		content = append(content, workspace.Content{Kind: workspace.Text, Text: text})
	}
	if len(e.Body.Context) > 0 {
		add(Quoted(e.Body.Context) + "\n")
	}
	if named {
		add(nameLine(e.Body.Name))
	}
	before := len(content)
	for i, c := range e.Body.Content {
		if named {
			c = spokenPiece(i, c)
		}
		if c.Kind != workspace.Text || c.Text != "" {
			content = append(content, c)
		}
	}
	if len(content) == before {
		add("(a message without text)")
	}
	return llm.Message{Role: llm.User, Content: content}
}

func assistantEntry(e *workspace.Entry) llm.Message {
	m := assistantMessage(e.Body.Content)
	if e.Body.Partial {
		m.Content = append(slices.Clone(m.Content), workspace.Content{Kind: workspace.Text, Text: " [stopped here]"})
	}
	return m
}

func assistantMessage(content []workspace.Content) llm.Message {
	return llm.Message{Role: llm.Assistant, Content: content}
}

// toolMessage is one result with its text marked as data.
func toolMessage(content []workspace.Content) llm.Message {
	content = slices.Clone(content)
	for i, c := range content {
		if c.Kind == workspace.ToolResult {
			content[i].Text = Outside(c.Name, c.Text)
		}
	}
	return llm.Message{Role: llm.ToolRole, Content: content}
}
