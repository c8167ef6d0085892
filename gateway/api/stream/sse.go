package stream

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"parley/gateway/api/wire"
	"parley/gateway/control/view"
	"parley/workspace"
)

// writeWithin is how long one write may take; a slower reader is dropped.
const writeWithin = 15 * time.Second

// sse is a stream as server-sent events.
type sse struct {
	w  http.ResponseWriter
	rc *http.ResponseController
}

// write sends one event; only what is stored has an id, since only after that can a reader resume.
func (o *sse) write(ev view.Event) error {
	data, err := json.Marshal(ev)
	if err != nil {
		return fmt.Errorf("marshal event %s: %w", ev.EventID, err)
	}
	if err := o.deadline(); err != nil {
		return err
	}
	if !ev.Synthetic {
		if _, err := fmt.Fprintf(o.w, "id: %d\n", ev.Sequence); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(o.w, "event: %s\ndata: %s\n\n", ev.Type, data)
	return err
}

func (o *sse) flush() error {
	if err := o.deadline(); err != nil {
		return err
	}
	return o.rc.Flush()
}

func (o *sse) still() error {
	if err := o.deadline(); err != nil {
		return err
	}
	_, err := fmt.Fprint(o.w, ": still here\n\n")
	return err
}

func (o *sse) caught(workspace.SessionID, int64) error { return nil }

func (o *sse) deadline() error {
	return wire.WriteWithin(o.w, writeWithin)
}
