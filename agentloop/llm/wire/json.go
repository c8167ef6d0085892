package wire

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"parley/agentloop/llm"
	"parley/workspace"
)

// Words are what a piece says as text.
func Words(c workspace.Content) string {
	switch c.Kind {
	case workspace.FileRef, workspace.Image:
		if c.Text != "" { // a label that says it all
			break
		}
		s := "[file " + c.Name
		if c.MIME != "" {
			s += ", " + c.MIME
		}
		return s + "]"
	case workspace.JSON:
		if c.Text == "" {
			return string(c.Args)
		}
	case workspace.Reasoning:
		return ""
	}
	return c.Text
}

// Unseen are the words for a picture or document that a model is not shown.
func Unseen(c workspace.Content) string {
	if c.Blob == "" || c.Text == "" {
		return Words(c)
	}
	return c.Text + " (only told, not shown: this model does not see it)"
}

// Join puts a blank line between two texts.
func Join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n\n" + b
}

// CallIDs of the conversation.
func CallIDs(msgs []llm.Message) map[string]bool {
	ids := map[string]bool{}
	for i := range msgs {
		content := msgs[i].Content
		for j := range content {
			if c := &content[j]; c.Kind == workspace.ToolCall {
				ids[c.CallID] = true
			}
		}
	}
	return ids
}

// Object is args as the model wrote them when they are a JSON object; none at all is an empty one. Some servers
// wrap the object into a string once more. Anything else comes back as a JSON string, and bad is true.
func Object(args []byte) (out json.RawMessage, bad bool) {
	args = bytes.TrimSpace(args)
	if len(args) == 0 || string(args) == "null" {
		return json.RawMessage("{}"), false
	}
	inner := args
	var s string
	if args[0] == '"' && json.Unmarshal(args, &s) == nil {
		inner = bytes.TrimSpace([]byte(s))
	}
	if len(inner) > 0 && inner[0] == '{' && json.Valid(inner) {
		return json.RawMessage(inner), false
	}
	return AppendString(nil, string(args)), true
}

const hexDigits = "0123456789abcdef"

// AppendString appends s as a JSON string (RFC 8259 §7); bytes that are no UTF-8 become U+FFFD.
func AppendString(b []byte, s string) []byte {
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				b = append(append(b, s[from:i]...), "\ufffd"...)
				from = i + 1
			}
			i += n
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		b = append(b, s[from:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\t':
			b = append(b, '\\', 't')
		case '\r':
			b = append(b, '\\', 'r')
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		from = i
	}
	return append(append(b, s[from:]...), '"')
}
