// A transcript as a document.

package transcript

import (
	"fmt"
	"strings"
	"time"

	"parley/workspace"
)

// Line is a line of a transcript as an exported document holds it.
type Line struct {
	Sequence int64     `json:"sequence"`
	Time     time.Time `json:"time"`
	Run      string    `json:"run_id,omitempty"`
	Role     string    `json:"role"`
	Name     string    `json:"name,omitempty"`
	Text     string    `json:"text,omitempty"`
	Calls    []string  `json:"calls,omitempty"`
	Event    string    `json:"event,omitempty"`
	Reason   string    `json:"reason,omitempty"`
	Partial  bool      `json:"partial,omitempty"`
}

// LineOf leaves out what is private: reasoning, and what a provider wants back unchanged.
func LineOf(e workspace.Entry) Line {
	x := Line{Sequence: e.N, Time: e.At.UTC(), Run: string(e.RunID), Role: string(e.Role), Name: e.Body.Name,
		Text: e.Body.Plain(), Event: e.Body.Type, Reason: e.Body.Reason, Partial: e.Body.Partial}
	for _, p := range e.Body.Content {
		switch p.Kind {
		case workspace.ToolCall:
			x.Calls = append(x.Calls, p.Name+" "+string(p.Args))
		case workspace.ToolResult:
			x.Name, x.Text = p.Name, x.Text+p.Text
		}
	}
	if x.Event == "command" && len(e.Body.Context) > 0 {
		x.Name, x.Text = e.Body.Context[0].Name, e.Body.Context[0].Text+"\n\n"+x.Text
	}
	return x
}

// Markdown is empty for events that a reader needs not see.
func (x Line) Markdown() string {
	who := x.Name
	switch {
	case x.Role == string(workspace.RoleAssistant):
		who = "Assistant"
	case x.Role == string(workspace.RoleTool):
		who = "Result of " + x.Name
	case x.Role == string(workspace.RoleEvent) && (x.Event == "turn.started" || x.Event == "turn.ended"):
		return ""
	case x.Role == string(workspace.RoleEvent):
		who = strings.ToUpper(x.Event[:min(1, len(x.Event))]) + x.Event[min(1, len(x.Event)):]
	case who == "":
		who = "User"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n## %s · %s\n\n", who, x.Time.Format("2006-01-02 15:04:05"))
	if x.Role == string(workspace.RoleTool) {
		b.WriteString(fenced(x.Text))
	} else if x.Text != "" {
		b.WriteString(strings.TrimRight(x.Text, "\n") + "\n")
	}
	for _, call := range x.Calls {
		b.WriteString("\n" + fenced(call))
	}
	if x.Partial {
		b.WriteString("\n*(stopped here)*\n")
	}
	return b.String()
}

// fenced is a code block whose fence is longer than any in the text.
func fenced(s string) string {
	fence := "```"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	return fence + "\n" + strings.TrimRight(s, "\n") + "\n" + fence + "\n"
}
