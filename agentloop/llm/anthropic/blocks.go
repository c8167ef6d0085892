package anthropic

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"

	"parley/agentloop/llm"
	"parley/agentloop/llm/wire"
	"parley/workspace"
)

// Limits of one file, https://platform.claude.com/docs/en/build-with-claude/vision and …/pdf-support: a whole request
// may weigh 32 MB, in base64. A file above them is only named.
const (
	maxImage = 5 << 20
	maxPDF   = 20 << 20
	pdf      = "application/pdf"
)

// encodePrefix is the tools and the system prompt, and opens the list of messages. The API reads them in this order, so
// that the one breakpoint at the end covers both and leaves three for the messages.
func encodePrefix(system string, tools []llm.Tool) []byte {
	hasSystem := strings.TrimSpace(system) != ""
	var b []byte
	for i, t := range tools {
		if i == 0 {
			b = append(b, `,"tools":[`...)
		} else {
			b = append(b, ',')
		}
		b = append(b, `{"name":`...)
		b = wire.AppendString(b, t.Name)
		if t.Description != "" {
			b = append(b, `,"description":`...)
			b = wire.AppendString(b, t.Description)
		}
		b = append(b, `,"input_schema":`...)
		b = append(b, inputSchema(t.Schema)...)
		if i == len(tools)-1 && !hasSystem {
			b = append(b, breakpoint...)
		}
		b = append(b, '}')
	}
	if len(tools) > 0 {
		b = append(b, ']')
	}
	if hasSystem {
		b = append(b, `,"system":[{"type":"text","text":`...)
		b = append(wire.AppendString(b, system), breakpoint...)
		b = append(b, `}]`...)
	}
	return append(b, `,"messages":[`...)
}

// inputSchema keeps one tool's broken schema (an MCP server wrote it) from spoiling the whole request: the API wants
// an object of type object without a choice at its top. Keys are sorted, so that the bytes are always the same.
func inputSchema(schema json.RawMessage) []byte {
	var s map[string]json.RawMessage
	if json.Unmarshal(schema, &s) != nil || s == nil {
		s = map[string]json.RawMessage{"properties": json.RawMessage(`{}`)}
	}
	s["type"] = json.RawMessage(`"object"`)
	for _, choice := range []string{"oneOf", "anyOf", "allOf"} {
		delete(s, choice)
	}
	b, err := json.Marshal(s)
	if err != nil {
		return []byte(`{"type":"object"}`)
	}
	return b
}

// picture is an image or a document that the model sees.
type picture struct {
	kind, mime, name string
	data             []byte
}

// pictured says that the API has a block for c.
func pictured(c workspace.Content) bool {
	return c.Blob != "" && (c.Kind == workspace.Image || c.Kind == workspace.FileRef && c.MIME == pdf)
}

// unseen is what is said of c where it is not shown.
func unseen(c workspace.Content) string {
	if pictured(c) {
		return wire.Unseen(c)
	}
	return wire.Words(c)
}

// picture reads c; ok is false when it can only be named.
func (m *Model) picture(c workspace.Content, q quirk) (p picture, ok bool) {
	if !pictured(c) || q&(noPictures|sightless) != 0 || m.o.Blobs == nil {
		return picture{}, false
	}
	data, err := m.o.Blobs(c.Blob)
	if err != nil || len(data) == 0 {
		return picture{}, false
	}
	if c.MIME == pdf {
		return picture{kind: "document", mime: pdf, name: c.Name, data: data}, len(data) <= maxPDF
	}
	// The API compares the type with the bytes, and what a sender says of a file is often wrong.
	switch mime := http.DetectContentType(data); mime {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return picture{kind: "image", mime: mime, data: data}, len(data) <= maxImage
	}
	return picture{}, false
}

// append writes the block without its end.
func (p picture) append(b []byte) []byte {
	b = append(b, `{"type":"`...)
	b = append(b, p.kind...)
	b = append(b, `","source":{"type":"base64","media_type":"`...)
	b = append(b, p.mime...)
	b = append(b, `","data":"`...)
	b = base64.StdEncoding.AppendEncode(b, p.data)
	b = append(b, `"}`...)
	if p.name != "" {
		b = wire.AppendString(append(b, `,"title":`...), p.name)
	}
	return b
}

// callID is the id as the API takes it, ^[a-zA-Z0-9_-]+$; other providers of the chain give others.
func callID(id string) string {
	if id != "" && clean(id) == id {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "toolu_" + hex.EncodeToString(sum[:12])
}

// toolName is a name as a model made it up, in the API's letters.
func toolName(name string) string {
	if name = clean(name); name == "" {
		return "unknown"
	}
	return name[:min(len(name), 64)]
}

func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, s)
}
