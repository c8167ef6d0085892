package control

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"parley/workspace"
	"parley/workspace/clip"
)

// Export is a transcript as a document.
type Export struct {
	Session SessionItem
	Format  string // markdown or json
	Data    []byte
	// Inline says that the reply is the document itself; else it goes as a file where File is true, and where it is
	// not the reply says where to get it.
	Inline, File bool
	Lines        int
}

// maxInline is the longest document, in bytes, that is a reply of its own.
const maxInline = 3000

// ExportSession writes the transcript of a session: empty key, the one that the chat writes into.
func (c *Control) ExportSession(ctx context.Context, call Call, key SessionWord, format string) (Export, error) {
	if err := c.may(call, "session.export"); err != nil {
		return Export{}, err
	}
	ses, err := c.find(call, cmp.Or(key, SessionWord(call.Session.String())))
	if err != nil {
		return Export{}, err
	}
	x := Export{Format: format}
	if x.Session, err = c.itemOf(ses); err != nil {
		return x, err
	}
	var b bytes.Buffer
	if x.Lines, err = c.WriteExport(ctx, call, &b, ses, format); err != nil {
		return x, err
	}
	x.Data, x.Inline = b.Bytes(), b.Len() <= maxInline
	if !x.Inline && call.placed() && call.Input != nil {
		call.file, x.File = c.House.Attach(call.Room, x.Data)
	}
	return x, c.answer(call, x)
}

// ExportLine is a line of the transcript as an exported document holds it.
type ExportLine struct {
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

// WriteExport writes one generation, that SessionOf found, as Markdown or as JSON lines inside one document. It returns
// how many lines of the transcript there are.
func (c *Control) WriteExport(ctx context.Context, _ Call, w io.Writer, ses workspace.Session, format string) (n int, err error) {
	markdown := format == "" || format == "markdown" || format == "md"
	if !markdown && format != "json" {
		return 0, workspace.Say(workspace.ErrInvalid, "There is no format %q. Formats are markdown and json.", clip.Runes(format, 40))
	}
	head := fmt.Sprintf("{\"session\":%q,\"generation\":%d,\"created\":%q,\"items\":[", ses.Key.String(), ses.Gen, ses.Created.UTC().Format(time.RFC3339))
	if markdown {
		head = fmt.Sprintf("# %s\n\n`%s`, generation %d, begun %s\n", exportTitle(ses), ses.Key, ses.Gen, ses.Created.UTC().Format(time.RFC3339))
	}
	if _, err := io.WriteString(w, head); err != nil {
		return 0, err
	}
	for after := int64(0); ; {
		list, err := c.Store.Entries(ses.ID, after, 500)
		if err != nil {
			return n, err
		}
		if len(list) == 0 {
			break
		}
		for _, e := range list {
			after = e.N
			line := exportLine(e)
			if markdown {
				_, err = io.WriteString(w, line.markdown())
			} else {
				err = writeJSON(w, line, n > 0)
			}
			if err != nil {
				return n, err
			}
			n++
		}
		if err := ctx.Err(); err != nil {
			return n, err
		}
	}
	if !markdown {
		_, err = io.WriteString(w, "]}\n")
	}
	return n, err
}

func exportTitle(ses workspace.Session) string {
	for _, s := range []string{ses.Name, ses.Key.Name, localTitle(ses.Key)} {
		if s != "" {
			return s
		}
	}
	return "Conversation with " + string(ses.Agent)
}

func writeJSON(w io.Writer, line ExportLine, comma bool) error {
	b, err := json.Marshal(line)
	if err != nil {
		return err
	}
	if comma {
		b = append([]byte(",\n"), b...)
	}
	_, err = w.Write(b)
	return err
}

// exportLine leaves out what is private: reasoning, and what a provider wants back unchanged.
func exportLine(e workspace.Entry) ExportLine {
	x := ExportLine{Sequence: e.N, Time: e.At.UTC(), Run: string(e.RunID), Role: string(e.Role), Name: e.Body.Name, Text: e.Body.Plain(), Event: e.Body.Type,
		Reason: e.Body.Reason, Partial: e.Body.Partial}
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

// markdown is empty for events that a reader needs not see.
func (x ExportLine) markdown() string {
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
