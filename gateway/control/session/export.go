package session

import (
	"bytes"
	"cmp"
	"context"
	"fmt"

	"parley/gateway/control"
	"parley/gateway/rights"
	"parley/gateway/transcript"
	"parley/workspace"
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

// ExportIn says how the transcript of the session that the chat writes into is written.
type ExportIn struct {
	Session control.SessionWord `json:"session,omitempty" help:"*key* of another one"`
	Format  string              `json:"format,omitempty" chat:"markdown|json" help:"its *form*; left out: markdown" enum:"markdown,json"`
}

// Export writes the transcript of a session.
var Export = control.Verb[*Sessions, ExportIn, Exported]{
	Name: "session.export", Help: "Hand out what was said in a session",
	Rights: rights.Row{Owner: rights.Direct, Member: rights.OwnDirect, Guest: rights.OwnDirect},
	Chat:   "session export [markdown|json], export [markdown|json]",
	Do: func(ctx context.Context, c *Sessions, call control.Call, in ExportIn) (Exported, error) {
		ses, err := c.Find.Session(call, in.Session)
		if err != nil {
			return Exported{}, err
		}
		x := Exported{Format: in.Format}
		if x.Session, err = c.itemOf(call, ses); err != nil {
			return x, err
		}
		var b bytes.Buffer
		name := cmp.Or(ses.Name, ses.Key.Name, control.LocalTitle(ses.Key))
		if x.Lines, err = transcript.WriteDocument(ctx, &b, ses, name, in.Format, c.Store.Entries); err != nil {
			return x, err
		}
		x.Data, x.Inline = b.Bytes(), b.Len() <= maxInline
		if !x.Inline && call.FromRoom() && call.Input != nil {
			call.File, x.File = c.Outbox.Attach(call.Room, x.Data)
		}
		return x, c.Answer(call, x)
	},
	Say: func(x Exported) string {
		lines := workspace.Plural(x.Lines, "line")
		switch {
		case x.Inline:
			return string(x.Data)
		case x.File:
			return fmt.Sprintf("Here are the %s of **%s**.", lines, x.Session.Name)
		}
		return fmt.Sprintf("The %s of **%s** are too long for a message here. The API has them: `GET /v1/sessions/%s/entries`; "+
			"so has `parley session show`.", lines, x.Session.Name, x.Session.Key)
	},
}
