// Package offline is the model that is none: a scripted responder that answers when nothing is configured. It says
// plainly what it is and how to add a model, echoes, and shows on request that every part works. The same request
// always gets the same answer. It uses no network and starts no goroutine.
package offline

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/agentloop/llm"
	"parley/workspace"
	"parley/workspace/clip"
)

var (
	//go:embed help.md
	help string
	//go:embed long.md
	long string
)

var errAsked = errors.New(`you wrote "error", so the built-in responder fails as a model would`)

const (
	longParts = 14                     // about 8,000 characters, more than one message on every network
	pause     = 400 * time.Millisecond // between the pieces of a slow answer
	maxResult = 1500                   // bytes of a tool's result that are shown
)

// Model implements llm.Model.
type Model struct{ name string }

var _ llm.Model = Model{}

// New is the responder under the name that the configuration gives it.
func New(name string) Model { return Model{name: name} }

// Info says that it is not a model.
func (m Model) Info() llm.Info {
	return llm.Info{Name: m.name, Model: "offline", ContextWindow: 200_000, Offline: true}
}

// reply is what it will say.
type reply struct {
	text string
	call *workspace.Content
	wait time.Duration // before each piece
	err  error
}

// Stream answers the last message. It fails only when ctx ends or the word was "error".
func (m Model) Stream(ctx context.Context, req llm.Request, onDelta func(llm.Delta)) (llm.Response, error) {
	r := answer(req)
	said, err := say(ctx, r, onDelta)
	if err == nil {
		err = r.err
	}
	switch {
	case ctx.Err() != nil:
		return llm.Response{}, &llm.Error{Kind: llm.Cancelled, Model: m.name, Partial: said, Err: context.Cause(ctx)}
	case err != nil:
		return llm.Response{}, &llm.Error{Kind: llm.Rejected, Model: m.name, Partial: said, Err: err}
	}
	free := 0.0
	out := llm.Response{Stop: llm.StopEnd, Model: m.name, Usage: workspace.Usage{Calls: 1, CostUSD: &free}}
	if r.text != "" {
		out.Content = append(out.Content, workspace.Content{Kind: workspace.Text, Text: r.text})
	}
	if r.call != nil {
		out.Content, out.Stop = append(out.Content, *r.call), llm.StopToolCalls
		if onDelta != nil {
			onDelta(llm.Delta{ToolName: r.call.Name})
		}
	}
	return out, nil
}

// say streams the text word by word and returns what was said.
func say(ctx context.Context, r reply, onDelta func(llm.Delta)) (string, error) {
	said := 0
	for piece := range strings.SplitAfterSeq(r.text, " ") {
		if err := wait(ctx, r.wait); err != nil {
			return r.text[:said], err
		}
		said += len(piece)
		if onDelta != nil && piece != "" {
			onDelta(llm.Delta{Text: piece})
		}
	}
	return r.text[:said], nil
}

func wait(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func answer(req llm.Request) reply {
	n := len(req.Messages)
	if n > 0 && req.Messages[n-1].Role == llm.ToolRole {
		if word(lastUser(req.Messages)) == "file" && wrote(req.Messages[n-1]) && has(req, "send_file") {
			return call(req, "send_file", `{"path":"hello.txt"}`)
		}
		return reply{text: shown(req.Messages[n-1])}
	}
	said := lastUser(req.Messages)
	switch word(said) {
	case "help":
		return reply{text: helpFor(req)}
	case "tool":
		return call(req, "list_dir", `{"path":"."}`)
	case "file":
		return call(req, "write_file", `{"path":"hello.txt","content":"Hello from the built-in responder.\n"}`)
	case "approval":
		return call(req, "exec", `{"command":"echo hello from the sandbox"}`)
	case "error":
		return reply{err: errAsked}
	case "slow":
		return reply{wait: pause, text: "This answer comes slowly, one word after the other, so that you can watch it grow, or stop it with /stop."}
	case "long":
		var b strings.Builder
		for i := range longParts {
			fmt.Fprintf(&b, long, i+1, i+1, i+1)
		}
		return reply{text: strings.TrimSpace(b.String())}
	}
	if first(req.Messages) {
		return reply{text: "You wrote: " + said + "\n\n" + helpFor(req)}
	}
	return reply{text: "You wrote: " + said + "\n\n(No model is configured; I only repeat. Write `help` to see how to add one.)"}
}

// helpFor names the words that show something here: what needs a tool is left out where the agent has none.
func helpFor(req llm.Request) string {
	words := []string{"`error` (a model that fails)", "`long` (an answer of many messages)", "`slow` (a slow stream)", "`help` (this text)"}
	if has(req, "exec") {
		words = append([]string{"`approval` (asks for your permission first)"}, words...)
	}
	if has(req, "write_file") && has(req, "send_file") {
		words = append([]string{"`file` (writes a file and sends it to you)"}, words...)
	}
	if has(req, "list_dir") {
		words = append([]string{"`tool` (calls a tool)"}, words...)
	}
	return strings.TrimSpace(help) + " " + strings.Join(words, ", ") + "."
}

func has(req llm.Request, tool string) bool {
	return slices.ContainsFunc(req.Tools, func(t llm.Tool) bool { return t.Name == tool })
}

// call asks for a tool, or says that this agent has none of that name.
func call(req llm.Request, name, args string) reply {
	if has(req, name) {
		return reply{text: "I am no model, but I can call " + name + " as one would.",
			call: &workspace.Content{Kind: workspace.ToolCall, CallID: callID(req.Messages), Name: name, Args: json.RawMessage(args)}}
	}
	return reply{text: "You may not use the tool " + name + " here, so I cannot show it."}
}

// wrote says that a message is the result of write_file, and that it did it.
func wrote(m llm.Message) bool {
	return slices.ContainsFunc(m.Content, func(c workspace.Content) bool {
		return c.Kind == workspace.ToolResult && c.Name == "write_file" && !c.Error
	})
}

// callID counts the calls so far, so that it is new in its conversation.
func callID(msgs []llm.Message) string {
	taken := map[string]bool{}
	for _, m := range msgs {
		for _, c := range m.Content {
			if c.Kind == workspace.ToolCall {
				taken[c.CallID] = true
			}
		}
	}
	for n := len(taken) + 1; ; n++ {
		if id := fmt.Sprintf("offline_%d", n); !taken[id] {
			return id
		}
	}
}

// shown is a tool's result in a block of code.
func shown(m llm.Message) string {
	var parts []string
	for _, c := range m.Content {
		if c.Text != "" {
			parts = append(parts, unmarked(c.Text))
		}
	}
	text := strings.ReplaceAll(strings.Join(parts, "\n"), "```", "'''")
	if text == "" {
		return "The tool answered with nothing."
	}
	if len(text) > maxResult {
		text = clip.Bytes(text, maxResult) + "…"
	}
	return "The tool answered:\n\n```\n" + text + "\n```"
}

// unmarked is text without the lines that mark it as data for a model.
func unmarked(text string) string {
	first, rest, found := strings.Cut(text, "\n")
	if !found || !strings.HasPrefix(first, "<") || !strings.HasSuffix(first, ">") {
		return text
	}
	if i := strings.LastIndex(rest, "\n</"); i >= 0 {
		return rest[:i]
	}
	return text
}

// lastUser is the text of the last run of user messages.
func lastUser(msgs []llm.Message) string {
	var parts []string
	for i := len(msgs) - 1; i >= 0 && (msgs[i].Role == llm.User || len(parts) == 0); i-- {
		if msgs[i].Role != llm.User {
			continue
		}
		for j := len(msgs[i].Content) - 1; j >= 0; j-- {
			switch c := msgs[i].Content[j]; {
			case c.Text != "":
				parts = append([]string{c.Text}, parts...)
			case c.Name != "":
				parts = append([]string{"[" + c.Name + "]"}, parts...)
			}
		}
	}
	return strings.Join(parts, "\n")
}

// word is the last line of what was said, when it is one word; a mention before it does not count.
func word(said string) string {
	said = strings.TrimSpace(said)
	if i := strings.LastIndexByte(said, '\n'); i >= 0 {
		said = said[i+1:]
	}
	fields := strings.Fields(said)
	for len(fields) > 1 && (strings.HasPrefix(fields[0], "@") || strings.HasPrefix(fields[0], "<@") || strings.HasSuffix(fields[0], ":")) {
		fields = fields[1:]
	}
	if len(fields) != 1 {
		return ""
	}
	return strings.ToLower(strings.Trim(fields[0], ".!?\"'`"))
}

func first(msgs []llm.Message) bool {
	for _, m := range msgs {
		if m.Role == llm.Assistant {
			return false
		}
	}
	return true
}
