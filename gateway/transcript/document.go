package transcript

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"parley/workspace"
	"parley/workspace/clip"
)

// entriesAtOnce is how many entries a document is read by.
const entriesAtOnce = 500

// WriteDocument writes one generation as Markdown under a title, or as JSON lines inside one document. It returns how many
// lines of the transcript there are. entries lists those of a session after a number.
func WriteDocument(ctx context.Context, w io.Writer, ses workspace.Session, title, format string,
	entries func(id workspace.SessionID, after int64, limit int) ([]workspace.Entry, error)) (n int, err error) {
	markdown := format == "" || format == "markdown" || format == "md"
	if !markdown && format != "json" {
		return 0, workspace.Say(workspace.ErrInvalid, "There is no format %q. Formats are markdown and json.", clip.Runes(format, 40))
	}
	begun := ses.Created.UTC().Format(time.RFC3339)
	head := fmt.Sprintf("{\"session\":%q,\"generation\":%d,\"created\":%q,\"items\":[", ses.Key.String(), ses.Gen, begun)
	if markdown {
		title = cmp.Or(title, "Conversation with "+string(ses.Agent))
		head = fmt.Sprintf("# %s\n\n`%s`, generation %d, begun %s\n", title, ses.Key, ses.Gen, begun)
	}
	if _, err := io.WriteString(w, head); err != nil {
		return 0, err
	}
	for after := int64(0); ; {
		list, err := entries(ses.ID, after, entriesAtOnce)
		if err != nil {
			return n, err
		}
		if len(list) == 0 {
			break
		}
		for _, e := range list {
			after = e.N
			line := LineOf(e)
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

func writeJSON(w io.Writer, line Line, comma bool) error {
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
