package whatsapp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"go.mau.fi/whatsmeow"

	"parley/channels"
)

// wire is the HTTP under a client of whatsmeow: its socket and its files. It leads to another server where one is
// configured, it ends the socket's line when it must, and it holds what is downloaded to its announced size.
//
// whatsmeow waits 20 s for a handshake and 10 s for a farewell, whatever its context says. cut ends both.
type wire struct {
	under http.RoundTripper
	base  *url.URL // nil: WhatsApp's own

	fell chan struct{} // whatsmeow has told that a line ended; holds one

	mu      sync.Mutex
	dialing context.CancelFunc
	line    *line
	ended   bool
}

func newWire(under http.RoundTripper, base *url.URL) *wire {
	return &wire{under: under, base: base, fell: make(chan struct{}, 1)}
}

var errEnded = errors.New("the connection was given up")

// RoundTrip dials the socket, or serves another request.
func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	out := req.Clone(req.Context())
	if w.base != nil {
		out.URL.Scheme, out.URL.Host, out.Host = w.base.Scheme, w.base.Host, ""
		out.URL.Path = w.base.Path + out.URL.Path
	}
	if strings.EqualFold(req.Header.Get("Upgrade"), "websocket") {
		return w.dial(out)
	}
	resp, err := w.under.RoundTrip(out)
	if most, ok := req.Context().Value(mostKey{}).(int64); ok && err == nil && resp.StatusCode == http.StatusOK {
		if resp.ContentLength > most {
			resp.Body.Close()
			// An error here would be taken for the network's, and tried five times.
			return &http.Response{StatusCode: http.StatusRequestEntityTooLarge, Status: "413 too large", Header: http.Header{},
				Body: http.NoBody, Request: req, Proto: resp.Proto, ProtoMajor: resp.ProtoMajor, ProtoMinor: resp.ProtoMinor}, nil
		}
		resp.Body = channels.Capped(resp.Body, most)
	}
	return resp, err
}

func (w *wire) dial(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	w.mu.Lock()
	w.dialing = cancel
	ended := w.ended
	w.mu.Unlock()
	if ended {
		cancel()
		return nil, errEnded
	}
	resp, err := w.under.RoundTrip(req.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	l := &line{free: cancel, closed: make(chan struct{})}
	if rw, ok := resp.Body.(io.ReadWriteCloser); ok && resp.StatusCode == http.StatusSwitchingProtocols {
		l.rw, resp.Body = rw, l
	} else {
		resp.Body = &freed{resp.Body, cancel}
		return resp, nil
	}
	w.mu.Lock()
	w.dialing, w.line, ended = nil, l, w.ended
	w.mu.Unlock()
	if ended {
		l.spoil()
	}
	return resp, nil
}

// cut ends the line that there is, at whatever point it is.
func (w *wire) cut() {
	w.mu.Lock()
	dialing, l := w.dialing, w.line
	w.mu.Unlock()
	if dialing != nil {
		dialing()
	}
	if l != nil {
		l.spoil()
	}
}

// down says that the line has ended, which whatsmeow may not know yet.
func (w *wire) down() bool {
	w.mu.Lock()
	l := w.line
	w.mu.Unlock()
	if l == nil {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended
}

// told notes that whatsmeow has seen a line's end.
func (w *wire) told() {
	select {
	case w.fell <- struct{}{}:
	default:
	}
}

// sever ends a client's connection. The line goes first: whatsmeow's own Disconnect waits for a farewell, and leaves its
// reader behind for ever if a frame arrives in that moment (frameComplete of its socket/framesocket.go).
func (w *wire) sever(cli *whatsmeow.Client) {
	select {
	case <-w.fell:
	default:
	}
	w.cut()
	w.mu.Lock()
	l := w.line
	w.mu.Unlock()
	if l != nil {
		late := time.NewTimer(time.Second)
		defer late.Stop()
		select {
		case <-w.fell:
		case <-late.C:
		case <-l.closed: // it is told right after, unless whatsmeow expected the end
			late.Reset(50 * time.Millisecond)
			select {
			case <-w.fell:
			case <-late.C:
			}
		}
	}
	cli.Disconnect()
}

// end cuts, and lets no other line come.
func (w *wire) end() {
	w.mu.Lock()
	w.ended = true
	w.mu.Unlock()
	w.cut()
}

// freed lets go of a request's context with the end of its answer.
type freed struct {
	io.ReadCloser
	free context.CancelFunc
}

func (f *freed) Close() error {
	defer f.free()
	return f.ReadCloser.Close()
}

// line is a socket's connection.
type line struct {
	rw     io.ReadWriteCloser
	free   context.CancelFunc
	once   sync.Once
	closed chan struct{} // by whatsmeow

	mu      sync.Mutex
	ended   bool // the other side is gone
	tried   int  // writes since then
	spoiled bool
	last    []byte // what a spoiled line still says
}

// farewell is a websocket message with one frame of WhatsApp's, which is neither a handshake nor can be decrypted: whoever
// waits for a frame is told of the end by it (RFC 6455 §5.2; the inner length has three bytes).
const farewell = "\x82\x04\x00\x00\x01\xff"

// spoil ends the line for both sides.
func (l *line) spoil() {
	l.mu.Lock()
	if !l.spoiled {
		l.spoiled, l.last = true, []byte(farewell)
	}
	l.mu.Unlock()
	_ = l.rw.Close() // what it says does not matter any more
}

// A line's end is kept from whatsmeow until nobody has written to it for restWait, at most restMost. It stops handling what
// has arrived as soon as it knows of the end, and that is where the server says why (handlerQueueLoop of its client.go);
// and it clears the connection without a look at who is writing to it (Close of its socket/framesocket.go).
const (
	restWait = 60 * time.Millisecond
	restMost = time.Second
)

func (l *line) Read(p []byte) (int, error) {
	n, err := l.rw.Read(p)
	if err == nil || n > 0 {
		return n, err
	}
	l.mu.Lock()
	l.ended = true
	if len(l.last) > 0 {
		n = copy(p, l.last)
		l.last = l.last[n:]
		l.mu.Unlock()
		return n, nil
	}
	l.mu.Unlock()
	l.rest()
	return 0, err
}

// rest waits until those who write to a line that has ended have noticed.
func (l *line) rest() {
	rest := time.NewTicker(restWait)
	defer rest.Stop()
	most := time.NewTimer(restMost)
	defer most.Stop()
	for seen := -1; ; {
		l.mu.Lock() // behind every Write of before
		tried := l.tried
		l.mu.Unlock()
		if tried == seen {
			return
		}
		seen = tried
		select {
		case <-rest.C:
		case <-most.C:
			return
		case <-l.closed:
			return
		}
	}
}

// Write drops what is written to a line that has ended, as a socket does: what gets no answer is sent again on the next one
// (retryFrame of whatsmeow's request.go).
func (l *line) Write(p []byte) (int, error) {
	l.mu.Lock()
	ended := l.ended
	if ended {
		l.tried++
	}
	l.mu.Unlock()
	if ended {
		return len(p), nil
	}
	return l.rw.Write(p)
}

func (l *line) Close() error {
	defer l.free()
	l.once.Do(func() { close(l.closed) })
	return l.rw.Close()
}

// mostKey is the context's key of the most bytes that an answer may have.
type mostKey struct{}
