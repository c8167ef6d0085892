package control

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"parley/gateway/transcript"
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
		call.file, x.File = c.Outbox.Attach(call.Room, x.Data)
	}
	return x, c.answer(call, x)
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
			line := transcript.LineOf(e)
			if markdown {
				_, err = io.WriteString(w, line.Markdown())
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

func writeJSON(w io.Writer, line transcript.Line, comma bool) error {
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
