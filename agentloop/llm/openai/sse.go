package openai

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"sync"
)

// The event stream of Chat Completions, after https://html.spec.whatwg.org/multipage/server-sent-events.html with
// one liberty: every data line is an event of its own, since servers that forget the blank line exist and none that
// spreads its JSON over lines was seen.

const (
	maxLine   = 4 << 20  // bytes of one line
	maxAnswer = 32 << 20 // bytes of a whole answer on the wire
)

var (
	errLongLine   = errors.New("line of the stream is too long")
	errLongAnswer = errors.New("answer is too long")
)

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

// events reads a stream line by line.
type events struct {
	r    *bufio.Reader
	long []byte // a line that did not fit into the buffer
	name string // of the event whose lines are being read
}

// next returns the data of the next data line and the event's name, which is mostly empty. The data is valid until
// the next call. The error is io.EOF after a clean end, errLongLine, or the reader's.
func (e *events) next() (name string, data []byte, err error) {
	for {
		line, err := e.line()
		if err != nil {
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
			return e.name, value, nil
		}
	}
}

// line without its end. A last line without one is a line too.
func (e *events) line() ([]byte, error) {
	e.long = e.long[:0]
	for {
		part, err := e.r.ReadSlice('\n')
		if len(e.long)+len(part) > maxLine {
			return nil, errLongLine
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
