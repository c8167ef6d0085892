package control

import (
	"bytes"
	"cmp"
	"context"

	"parley/gateway/transcript"
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
	if x.Lines, err = transcript.WriteDocument(ctx, &b, ses, cmp.Or(ses.Name, ses.Key.Name, localTitle(ses.Key)), format, c.Store.Entries); err != nil {
		return x, err
	}
	x.Data, x.Inline = b.Bytes(), b.Len() <= maxInline
	if !x.Inline && call.placed() && call.Input != nil {
		call.file, x.File = c.Outbox.Attach(call.Room, x.Data)
	}
	return x, c.answer(call, x)
}
