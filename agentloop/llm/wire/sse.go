package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"sync"
)

// MaxLine is how many bytes one line has at most; that of an answer with a limit has fewer.
const MaxLine = 4 << 20

// ErrNoEnd is a stream that ended before its answer did.
var ErrNoEnd = errors.New("the stream ended before the answer did")

// readers keeps buffers between calls.
type readers struct{ pool sync.Pool }

func (p *readers) get(r io.Reader) *bufio.Reader {
	if b, ok := p.pool.Get().(*bufio.Reader); ok {
		b.Reset(r)
		return b
	}
	return bufio.NewReaderSize(r, 4<<10)
}

func (p *readers) put(b *bufio.Reader) {
	b.Reset(nil)
	p.pool.Put(b)
}

// Events reads an event stream line by line, after https://html.spec.whatwg.org/multipage/server-sent-events.html with
// one liberty: every data line is an event of its own, since servers that forget the blank line exist and none that
// spreads its JSON over lines was seen.
type Events struct {
	r    *bufio.Reader
	long []byte // a line that did not fit into the buffer
	name string // of the event whose lines are being read
	most int    // bytes of a line
}

// NewEvents reads from r an answer that has so much room.
func NewEvents(r *bufio.Reader, room *Room) *Events {
	_, line := room.wire()
	return &Events{r: r, most: line}
}

// Next returns the data of the next data line and the event's name, which is mostly empty. The data is valid until
// the next call. The error is io.EOF after a clean end, ErrTooLong with the beginning of a line that is too long, or the reader's.
func (e *Events) Next() (name string, data []byte, err error) {
	for {
		line, err := e.line()
		if err != nil && !errors.Is(err, ErrTooLong) {
			return "", nil, err
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "":
			if len(line) == 0 {
				e.name = ""
			}
		case "event":
			e.name = string(value)
		case "data":
			return e.name, value, err
		}
		if err != nil {
			return "", nil, err
		}
	}
}

// line without its end. A last line without one is a line too.
func (e *Events) line() ([]byte, error) {
	e.long = e.long[:0]
	for {
		part, err := e.r.ReadSlice('\n')
		if len(e.long)+len(part) > e.most {
			return append(e.long, part...), ErrTooLong
		}
		switch {
		case err == nil && len(e.long) == 0:
			return trimEnd(part), nil
		case err == nil, err == io.EOF && len(e.long)+len(part) > 0:
			e.long = append(e.long, part...)
			return trimEnd(e.long), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
		e.long = append(e.long, part...)
	}
}

func trimEnd(line []byte) []byte {
	line = bytes.TrimSuffix(line, []byte("\n"))
	return bytes.TrimSuffix(line, []byte("\r"))
}

// FirstByte tells what an answer begins with and leaves it there. It skips white space and a byte order mark.
func FirstByte(r *bufio.Reader) (byte, error) {
	for {
		b, err := r.ReadByte()
		switch {
		case err == io.EOF:
			return 0, ErrNoEnd
		case err != nil:
			return 0, err
		case b == 0xEF || b == 0xBB || b == 0xBF || b == ' ' || b == '\r' || b == '\n' || b == '\t':
			continue
		}
		return b, r.UnreadByte()
	}
}
