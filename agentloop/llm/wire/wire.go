// Package wire is what providers over HTTP share: one call with its event stream, guarded against silence, against
// redirects with a key and against endless answers; the errors of it without the key; and the few pieces of JSON
// that are written by hand. It knows no provider's format and does not retry. It starts no goroutine beyond
// net/http's and the timer that ends a silent call.
package wire

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"parley/agentloop/llm"
)

// afterEnd is how long the end of the body may take once the answer is complete. Reading it keeps the connection
// for the next call; a server that never ends it costs only that.
const afterEnd = 100 * time.Millisecond

// Client makes the calls of one configured model. It is safe for concurrent use.
type Client struct {
	HTTP      *http.Client // from Bare
	Key       string       // taken out of every error
	FirstByte time.Duration
	Idle      time.Duration
	// Refused reads the body of an answer with a status of 400 or more.
	Refused func(status int, body []byte) (text string, kind llm.Kind)

	readers readers
}

// Answer is put together from a body.
type Answer interface {
	// Read takes in the whole body up to the end of the answer. An *llm.Error is returned as it is; ErrTooLong says that
	// the answer is longer than it may be, and any other error that the stream was cut.
	Read(r *bufio.Reader) error
	// SoFar is the text up to now, and whether anything of the answer has come.
	SoFar() (text string, begun bool)
	// End makes what has come the whole answer, cut for its length. False: nothing of it can be kept.
	End() bool
}

// Post makes one call and reads its answer, which has so much room; one that is longer is cut there, and its connection given up. The
// error is a *llm.Error without Model, except for an address that cannot be used.
func (c *Client) Post(ctx context.Context, address string, header http.Header, body []byte, a Answer, room *Room) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(c.FirstByte, func() { cancel(errSilent) })
	defer timer.Stop()

	call, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return errors.New("base_url cannot be used")
	}
	call.Header = header
	resp, err := c.HTTP.Do(call)
	if err != nil {
		return c.Unreached(context.Cause(ctx), err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return c.Failed(resp)
	}
	all, _ := room.wire()
	room.begin(ctx, timer, c.Idle)
	limited := &io.LimitedReader{R: resp.Body, N: all}
	guarded := &guarded{Reader: limited, timer: timer, idle: c.Idle}
	r := c.readers.get(guarded)
	defer c.readers.put(r)
	if err := a.Read(r); err != nil {
		if limited.N <= 0 {
			err = ErrTooLong
		}
		if errors.Is(err, ErrTooLong) && ctx.Err() == nil && a.End() {
			return nil
		}
		return c.broken(context.Cause(ctx), a, err)
	}
	guarded.over = true
	timer.Reset(afterEnd)
	// The answer is complete; what follows matters to nobody.
	_, _ = io.Copy(io.Discard, r)
	return nil
}

// guarded is a body whose reads are watched: the timer ends the call's context when no byte comes.
type guarded struct {
	io.Reader
	timer *time.Timer
	idle  time.Duration
	over  bool // the answer is complete: no byte prolongs the call any more
}

func (g *guarded) Read(p []byte) (int, error) {
	n, err := g.Reader.Read(p)
	if n > 0 && !g.over {
		g.timer.Reset(g.idle)
	}
	return n, err
}

// Bare is c without what a model call must not have: a redirect would carry the key and the conversation to
// whoever the server names, and a timeout of the whole call would cut long answers.
func Bare(c *http.Client) *http.Client {
	return &http.Client{Transport: c.Transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
}

// ParseBase reads a base_url. The error names what is wrong with it, or with the key, and neither's value.
func ParseBase(base, key, example string) (*url.URL, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("base_url must be " + example)
	}
	if u.User != nil {
		return nil, errors.New("base_url holds a user; put the key into api_key")
	}
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("api_key has white space or a special character in it")
	}
	return u, nil
}
