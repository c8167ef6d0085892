package gateway

import (
	"os"

	"parley/channels"
	"parley/workspace"
)

// document is an answer's file: one that an agent sends, or a text that goes as one: a long answer, or what a command hands
// out, which is Markdown or JSON.
func document(o *workspace.Outbound, path string) channels.File {
	switch o.Kind {
	case workspace.OutFile:
		return sentFile(o.Text, path)
	case workspace.OutApproval:
		return channels.File{Name: "call.txt", MIME: "text/plain", Path: path}
	case workspace.OutReply:
	default:
		return channels.File{Name: "answer.md", MIME: "text/markdown", Path: path}
	}
	if f, err := os.Open(path); err == nil { // else the send itself will say so
		defer f.Close()
		first := make([]byte, 1)
		if n, _ := f.Read(first); n == 1 && first[0] == '{' { // an empty file is no JSON
			return channels.File{Name: "session.json", MIME: "application/json", Path: path}
		}
	}
	return channels.File{Name: "session.md", MIME: "text/markdown", Path: path}
}
