// Files: what a kept file is called where it is sent.

package delivery

import (
	"context"
	"io"

	"parley/channels"
	"parley/workspace"
	"parley/workspace/media"
)

// document is a part's kept file as a network gets it. Each try of a send opens it for itself.
func (d *Outbox) document(o *workspace.Outbound, ref string) (channels.File, error) {
	kept, err := d.Blobs.Open(ref)
	if err != nil {
		return channels.File{}, err
	}
	defer kept.Close()
	head, err := kept.Head()
	if err != nil {
		return channels.File{}, err
	}
	name, mime := titled(o, head)
	return channels.File{Name: name, MIME: mime, Size: kept.Size(), Ref: ref, Open: func(context.Context) (io.ReadCloser, error) {
		f, err := d.Blobs.Open(ref)
		if err != nil { // no reader, and not one that is nil
			return nil, err
		}
		return f, nil
	}}, nil
}

// titled is the name and type of an answer's file that begins so: one that an agent sends, or a text that goes as one: a
// long answer, or what a command hands out, which is Markdown or JSON.
func titled(o *workspace.Outbound, head []byte) (name, mime string) {
	switch o.Kind {
	case workspace.OutFile:
		return o.Text, media.Type(head)
	case workspace.OutApproval:
		return "call.txt", "text/plain"
	case workspace.OutReply:
		if len(head) > 0 && head[0] == '{' {
			return "session.json", "application/json"
		}
		return "session.md", "text/markdown"
	}
	return "answer.md", "text/markdown"
}
