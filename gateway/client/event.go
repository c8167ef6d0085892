package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// Event is one event of a run or session. ID is empty for what is not stored: a reader can resume only after an id.
type Event struct {
	ID        string          `json:"-"`
	EventID   string          `json:"event_id"`
	Sequence  int64           `json:"sequence"`
	Time      time.Time       `json:"time"`
	SessionID string          `json:"session_id"`
	RunID     string          `json:"run_id"`
	Source    string          `json:"source"`
	Synthetic bool            `json:"synthetic"`
	Type      string          `json:"type"`
	Data      json.RawMessage `json:"data"`
}

// maxLine of a stream, in bytes.
const maxLine = 16 << 20

// ErrLine says that a line of a stream is too long to be meant.
var ErrLine = errors.New("line of the event stream is too long")

// Frame is one server-sent event as the wire has it (WHATWG HTML §9.2).
type Frame struct {
	ID, Event, Data string
}

// Frames reads server-sent events.
type Frames struct {
	r     *bufio.Reader
	id    string
	begun bool
	cr    bool // the last byte was one
}

// NewFrames reads from r.
func NewFrames(r io.Reader) *Frames { return &Frames{r: bufio.NewReader(r)} }

// Next returns the next event that has data; comments are passed over. It returns io.EOF at the end, and drops an
// event that the end cut.
func (f *Frames) Next() (Frame, error) {
	var out Frame
	var data strings.Builder
	fields := 0
	for {
		line, err := f.line()
		if err != nil {
			return Frame{}, err
		}
		if len(line) == 0 {
			if fields == 0 {
				out = Frame{}
				continue
			}
			out.ID, out.Data = f.id, strings.TrimSuffix(data.String(), "\n")
			return out, nil
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "data":
			if fields++; data.Len()+len(value) > maxLine {
				return Frame{}, ErrLine
			}
			data.Write(value)
			data.WriteByte('\n')
		case "event":
			out.Event = string(value)
		case "id":
			if !bytes.ContainsRune(value, 0) {
				f.id = string(value)
			}
		}
	}
}

// line reads to CR, LF or CRLF, without it.
func (f *Frames) line() ([]byte, error) {
	var line []byte
	for {
		b, err := f.r.ReadByte()
		if err != nil {
			return nil, err
		}
		second := b == '\n' && f.cr
		f.cr = b == '\r'
		switch {
		case second: // of a CRLF
		case b == '\n' || b == '\r':
			return f.clean(line), nil
		case len(line) >= maxLine:
			return nil, ErrLine
		default:
			line = append(line, b)
		}
	}
}

// clean removes the byte order mark that may stand at the very beginning.
func (f *Frames) clean(line []byte) []byte {
	if !f.begun {
		f.begun = true
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	return line
}

// ErrEnough is returned by a reader of events to end the stream; Events then returns nil.
var ErrEnough = errors.New("enough")

// Events reads one stream from after on until it ends, and hands over every event. A stream that is cut is an error;
// begin again after the last ID.
func (c *Client) Events(ctx context.Context, path string, after int64, each func(Event) error) error {
	h := http.Header{"Accept": {"text/event-stream"}}
	if after > 0 {
		h.Set("Last-Event-ID", strconv.FormatInt(after, 10))
	}
	res, err := c.request(ctx, http.MethodGet, path, h, nil)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	frames := NewFrames(res.Body)
	last := ""
	for {
		f, err := frames.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var e Event
		if err := json.Unmarshal([]byte(f.Data), &e); err != nil {
			return fmt.Errorf("read event %s: %w", f.ID, err)
		}
		if f.ID != last {
			e.ID, last = f.ID, f.ID
		}
		if err := each(e); errors.Is(err, ErrEnough) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// Delta is text that an item grew by.
type Delta struct {
	ItemID string `json:"item_id"`
	Part   int    `json:"part"`
	Offset int    `json:"offset"` // in UTF-16 code units
	Text   string `json:"text"`
}

// ErrGap says that a delta begins behind the end of what is there: something was missed.
var ErrGap = errors.New("a delta is missing")

// Apply puts a delta over the text of its part. Applied twice it does no harm.
func (d Delta) Apply(text string) (string, error) {
	at, units := 0, 0
	for at < len(text) && units < d.Offset {
		r, size := utf8.DecodeRuneInString(text[at:])
		at, units = at+size, units+utf16.RuneLen(r)
	}
	if units != d.Offset {
		return text, ErrGap
	}
	return text[:at] + d.Text, nil
}
