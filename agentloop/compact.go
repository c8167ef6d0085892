package agentloop

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"parley/agentloop/llm"
	"parley/tools"
	"parley/workspace"
)

//go:embed compact.md
var compactText string

// summaryTokens is the longest summary, and keepTurns how many of the newest exchanges a summary leaves as they are.
const (
	summaryTokens = 2000
	keepTurns     = 2
	leastTokens   = 64 // below this a summary gains nothing
)

// summaryMessage is a summary as the model gets it: data, at the head of the conversation. It is nil for none.
func summaryMessage(summary string) *llm.Message {
	if summary == "" {
		return nil
	}
	m := textMessage(llm.User, "The earlier part of this conversation, in a summary:\n"+Outside("summary", summary))
	return &m
}

// ErrShort says that there is nothing yet that a summary could stand for.
var ErrShort = errors.New("the conversation is too short to be summarised")

// Compaction is a summary of the older part of a conversation.
type Compaction struct {
	Summary string
	To      int64 // the newest entry that it stands for
	Usage   workspace.Usage
	Model   string
	Turns   int // exchanges that it stands for
	Before  int // tokens that they took, about
	After   int // tokens that the summary takes
}

// Summarize asks a model for a summary of all but the newest exchanges. Instructions say what matters; they come from
// the person who asks. fails is told of each failure of a model on the way; nil: nobody. It returns ErrShort when there is
// nothing to sum up.
func (l *Loop) Summarize(ctx context.Context, t Turn, instructions string, fails func(workspace.Trouble)) (Compaction, error) {
	limits := l.Limits.orDefault()
	model, err := l.Models.Chain(t.Models, nil)
	if err != nil {
		return Compaction{}, fmt.Errorf("%w: %w", errNoModel, err)
	}
	at := older(t.History)
	if at == 0 {
		return Compaction{}, ErrShort
	}
	old, rest := splitHistory(t.History[:at], "", t.PeerKind)
	old = append(old, unitOf(rest.messages)...)
	out := Compaction{Turns: len(old), To: t.History[at-1].N}
	var b strings.Builder
	if t.Summary != "" {
		fmt.Fprintf(&b, "[an earlier summary]\n%s\n", t.Summary)
		out.Before += tokens(t.Summary)
	}
	for _, u := range old {
		out.Before += u.size
		for _, m := range u.messages {
			writeMessage(&b, m)
		}
	}
	if out.Before < leastTokens {
		return Compaction{}, ErrShort
	}
	info := model.Info()
	window := info.ContextWindow
	if window <= 0 {
		window = limits.Window
	}
	text := b.String()
	if most := (window - summaryTokens - tokens(compactText) - 500) * bytesPerToken; most > 0 && len(text) > most { // its head and its end say the most
		text = cut(text, most/4) + "\n[…]\n" + strings.ToValidUTF8(text[len(text)-most*3/4:], "")
	}
	ask := compactText
	if instructions != "" {
		ask += "\nWhat the person asks of the summary: " + instructions + "\n"
	}
	resp, err := model.Stream(ctx, llm.Request{System: ask, Messages: []llm.Message{textMessage(llm.User, Outside("conversation", text))}, MaxTokens: summaryTokens,
		CacheKey: string(t.SessionID)}, func(d llm.Delta) {
		if d.Trouble != nil && fails != nil {
			fails(*d.Trouble)
		}
	})
	if err != nil {
		return out, err
	}
	l.hideResponse(&resp)
	out.Summary = strings.TrimSpace(workspace.PlainText(resp.Content))
	if out.Summary == "" || out.Summary == Silence {
		return out, errEmpty
	}
	resp.Usage.Calls = max(resp.Usage.Calls, 1)
	out.Usage, out.Model, out.After = resp.Usage, resp.Model, tokens(out.Summary)
	return out, nil
}

// older is how many of the entries come before the newest exchanges, which are kept as they are. Of one exchange alone
// nothing is kept.
func older(history []workspace.Entry) int {
	var starts []int
	for i, e := range history {
		if e.Role == workspace.RoleUser && (i == 0 || history[i-1].Role != workspace.RoleUser) {
			starts = append(starts, i)
		}
	}
	switch keep := min(keepTurns, len(starts)-1); {
	case keep < 0:
		return 0
	case keep == 0:
		return len(history)
	default:
		return starts[len(starts)-keep]
	}
}

// unitOf is messages as one unit; none for none.
func unitOf(messages []llm.Message) []unit {
	if len(messages) == 0 {
		return nil
	}
	u := unit{messages: messages}
	for _, m := range messages {
		u.size += messageSize(m)
	}
	return []unit{u}
}

// writeMessage writes a message for who summarises. What is said in it is set in by a space, so that none of its lines
// passes for another message.
func writeMessage(b *strings.Builder, m llm.Message) {
	fmt.Fprintf(b, "[%s]\n", m.Role)
	for _, c := range m.Content {
		switch c.Kind {
		case workspace.Text, workspace.ToolResult:
			for line := range lines(cut(c.Text, 4000)) {
				b.WriteString(" " + line)
			}
			b.WriteString("\n")
		case workspace.ToolCall:
			fmt.Fprintf(b, "(called %s %s)\n", c.Name, cut(string(c.Args), 1000))
		case workspace.Image, workspace.FileRef:
			fmt.Fprintf(b, "(a file: %s)\n", c.Name)
		}
	}
}

// Explain is the plain sentence for a model that failed, without a run to name.
func Explain(err error) string {
	_, sentence := explain(err)
	return sentence
}

// Composition is what a prompt is made of, in tokens, about: bytes divided by four.
type Composition struct {
	Window   int            `json:"window"`
	Output   int            `json:"output"` // kept free for the answer
	System   int            `json:"system"`
	Tools    int            `json:"tools"`
	Volatile int            `json:"volatile"`
	Summary  int            `json:"summary"`
	History  int            `json:"history"`
	Turns    int            `json:"turns"`    // exchanges in it
	Messages int            `json:"messages"` // of all roles
	Schemas  []ToolPart     `json:"tool_list"`
	Roles    map[string]int `json:"by_role"`
}

// ToolPart is a tool in a prompt.
type ToolPart struct {
	Name   string `json:"name"`
	Tokens int    `json:"tokens"`
}

// Used is all that the model would be sent.
func (c Composition) Used() int { return c.System + c.Tools + c.Volatile + c.Summary + c.History }

// Free is what a next message and its answer's steps may still take.
func (c Composition) Free() int { return c.Window - c.Output - c.Used() }

// Compose weighs the prompt of a turn as it would be sent to its first model.
func (l *Loop) Compose(t Turn) (Composition, error) {
	model, err := l.Models.Chain(t.Models, nil)
	if err != nil {
		return Composition{}, fmt.Errorf("%w: %w", errNoModel, err)
	}
	info := model.Info()
	c := Composition{Window: info.ContextWindow, Output: info.MaxOutput, System: tokens(t.System), Volatile: tokens(t.Volatile), Schemas: []ToolPart{}, Roles: map[string]int{}}
	if c.Window <= 0 {
		c.Window = l.Limits.orDefault().Window
	}
	if c.Output <= 0 {
		c.Output = 4096
	}
	c.Output = min(c.Output, c.Window/2)
	for _, s := range l.Tools.For(t.Subject()) {
		n := toolTokens(s)
		c.Tools += n
		c.Schemas = append(c.Schemas, ToolPart{Name: s.Name, Tokens: n})
	}
	if m := summaryMessage(t.Summary); m != nil {
		c.Summary = messageSize(*m)
	}
	past, now := splitHistory(t.History, t.Run, t.PeerKind)
	c.Turns = len(past)
	past = append(past, unitOf(now.messages)...)
	for _, u := range past {
		c.History += u.size
		c.Messages += len(u.messages)
		for _, m := range u.messages {
			c.Roles[string(m.Role)] += messageSize(m)
		}
	}
	return c, nil
}

func toolTokens(s tools.Spec) int {
	return tokens(s.Name) + tokens(s.Description) + len(s.Schema)/bytesPerToken
}
