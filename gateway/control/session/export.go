package session

import (
	"bytes"
	"cmp"
	"context"

	"parley/gateway/control"
	"parley/gateway/transcript"
)

// Exported is a transcript as a document.
type Exported struct {
	Session Item
	Format  string // markdown or json
	Data    []byte
	// Inline says that the reply is the document itself; else it goes as a file where File is true, and where it is
	// not the reply says where to get it.
	Inline, File bool
	Lines        int
}

// maxInline is the longest document, in bytes, that is a reply of its own.
const maxInline = 3000

// Export writes the transcript of a session: empty key, the one that the chat writes into.
func (c *Sessions) Export(ctx context.Context, call control.Call, key control.SessionWord, format string) (Exported, error) {
	if err := c.Allow(call, "session.export"); err != nil {
		return Exported{}, err
	}
	ses, err := c.Find.Session(call, cmp.Or(key, control.SessionWord(call.Session.String())))
	if err != nil {
		return Exported{}, err
	}
	x := Exported{Format: format}
	if x.Session, err = c.itemOf(ses); err != nil {
		return x, err
	}
	var b bytes.Buffer
	name := cmp.Or(ses.Name, ses.Key.Name, localTitle(ses.Key))
	if x.Lines, err = transcript.WriteDocument(ctx, &b, ses, name, format, c.Store.Entries); err != nil {
		return x, err
	}
	x.Data, x.Inline = b.Bytes(), b.Len() <= maxInline
	if !x.Inline && call.FromRoom() && call.Input != nil {
		call.File, x.File = c.Outbox.Attach(call.Room, x.Data)
	}
	return x, c.Answer(call, x)
}
