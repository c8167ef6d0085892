package egress

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// tunnel carries bytes both ways until both ends are done, one is idle for too long, or too much was carried.
func (p *Proxy) tunnel(ctx context.Context, conn net.Conn, in *bufio.Reader, to addresses) {
	far, err := p.dial(ctx, to)
	if err != nil {
		p.failed(conn, to, err)
		return
	}
	defer far.Close()
	defer context.AfterFunc(ctx, func() { _ = far.Close() })() // as in serve
	if _, err := io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	idle := newIdle(p.Limits.Idle, conn, far)
	var wg sync.WaitGroup
	wg.Go(func() { p.carry(far, in, conn, far, idle) })
	p.carry(conn, far, conn, far, idle)
	wg.Wait()
}

// carry copies one direction; at its end it says so to the other side and leaves the other direction open. What goes
// wrong ends both.
func (p *Proxy) carry(to net.Conn, from io.Reader, a, b net.Conn, idle *idle) {
	n, err := io.Copy(touching{to, nil, idle}, io.LimitReader(from, p.Limits.Bytes))
	half, ok := to.(interface{ CloseWrite() error })
	if err != nil || n == p.Limits.Bytes || !ok || half.CloseWrite() != nil {
		_, _ = a.Close(), b.Close() // the other direction ends with them
	}
}

// idle moves the deadline of both connections with every byte that is carried.
type idle struct {
	after time.Duration
	conns []net.Conn
	last  atomic.Int64 // nanoseconds since 1970 when the deadlines were moved
}

func newIdle(after time.Duration, conns ...net.Conn) *idle {
	i := &idle{after: after, conns: conns}
	i.touch()
	return i
}

// touch costs system calls, so it is done once in a while.
func (i *idle) touch() {
	now := time.Now()
	if last := i.last.Load(); now.UnixNano()-last < int64(i.after/16) || !i.last.CompareAndSwap(last, now.UnixNano()) {
		return
	}
	for _, c := range i.conns {
		_ = c.SetDeadline(now.Add(i.after)) // closed meanwhile: its copy ends by itself
	}
}

// touching is a connection that is not idle while it is read or written.
type touching struct {
	io.Writer
	from io.Reader
	idle *idle
}

func (t touching) Read(b []byte) (int, error) {
	t.idle.touch()
	return t.from.Read(b)
}

func (t touching) Write(b []byte) (int, error) {
	t.idle.touch()
	return t.Writer.Write(b)
}

// forward carries one plain request and its answer. The connection ends with it, so that a further request cannot
// ride on it to a host that nobody judged.
func (p *Proxy) forward(ctx context.Context, conn net.Conn, in *bufio.Reader, r request, to addresses) {
	at, err := url.ParseRequestURI(r.path)
	if err != nil || r.length > p.Limits.Bytes {
		p.refuse(r.to, ReasonBody)
		answer(conn, http.StatusBadRequest, ReasonBody, true)
		return
	}
	at.Scheme, at.Host = "http", hostPort(r.to)
	out := &http.Request{Method: r.method, URL: at, Host: at.Host, Header: r.header, ProtoMajor: 1, ProtoMinor: 1, ContentLength: r.length, Close: true}
	idle := newIdle(p.Limits.Idle, conn)
	switch {
	case r.length > 0:
		out.Body = io.NopCloser(io.LimitReader(touching{conn, in, idle}, r.length))
	case r.length < 0:
		out.Body = io.NopCloser(&limited{httputil.NewChunkedReader(touching{conn, in, idle}), p.Limits.Bytes})
	}
	if strings.EqualFold(out.Header.Get("Expect"), "100-continue") {
		if _, err := io.WriteString(conn, "HTTP/1.1 100 Continue\r\n\r\n"); err != nil {
			return
		}
	}
	dropHop(out.Header)
	resp, err := p.http.RoundTrip(out.WithContext(context.WithValue(ctx, checkedKey{}, to)))
	if err != nil {
		p.failed(conn, to, err)
		return
	}
	defer resp.Body.Close()
	dropHop(resp.Header)
	resp.Close = true
	resp.ProtoMajor, resp.ProtoMinor, resp.Proto = 1, 1, "HTTP/1.1"
	resp.Body = struct {
		io.Reader
		io.Closer
	}{&limited{resp.Body, p.Limits.Bytes}, resp.Body}
	_ = resp.Write(touching{conn, in, idle}) // cut: the client sees that it is
}

// limited fails beyond n bytes instead of ending, so that nobody takes a part for the whole.
type limited struct {
	from io.Reader
	n    int64
}

func (l *limited) Read(b []byte) (int, error) {
	n, err := l.from.Read(b)
	if l.n -= int64(n); l.n < 0 {
		return 0, errors.New("too many bytes")
	}
	return n, err
}

func hostPort(t target) string {
	if t.port == 80 {
		return t.host
	}
	return net.JoinHostPort(t.host, strconv.Itoa(int(t.port)))
}

// dropHop takes away what is said to the next machine only (RFC 9110, 7.6.1).
func dropHop(h http.Header) {
	for _, list := range h.Values("Connection") {
		for name := range strings.SplitSeq(list, ",") {
			h.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range []string{"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer",
		"Transfer-Encoding", "Upgrade", "Expect", "Host", "Content-Length"} {
		h.Del(name)
	}
}

// failed answers for a host that could not be reached. Why is the operator's to know: it tells of the network.
func (p *Proxy) failed(conn net.Conn, to addresses, err error) {
	if p.loud.Allow() {
		p.log.Info("egress host does not answer", "host", to.host, "port", to.port, "err", err)
	}
	answer(conn, http.StatusBadGateway, ReasonDial, true)
}
