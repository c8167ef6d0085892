// Package egress is the only way out of a sandbox: an HTTP proxy on a unix socket that reaches the hosts of a list and
// nothing else. It takes CONNECT, and plain http:// requests one a connection. Everything that a client writes is
// hostile: the request is read by a strict parser, the name is held against the list before anything is looked up, the
// name is resolved once, each address it has is judged, and exactly one of those is dialled. What flows through an
// opened tunnel is not looked at.
//
// It decides nothing about who may run commands, and knows no sandbox: whoever can open the socket may use it, so the
// folder of the socket is what guards it.
//
// Goroutines: Serve owns one per connection and two per tunnel, and ends them before it returns.
package egress

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Resolver finds the addresses of a name; *net.Resolver is one. network is "ip".
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Limits of a Proxy; New sets the defaults.
type Limits struct {
	Connections int           // at once; more are answered 503
	Head        time.Duration // for a request's head to arrive
	Resolve     time.Duration
	Dial        time.Duration
	Idle        time.Duration // without a byte in either direction
	Total       time.Duration // of one connection
	Bytes       int64         // of one connection, each direction
}

// Refusal is a request that was not carried out.
type Refusal struct {
	Host   string // as far as it could be read, printable; empty: it could not
	Port   uint16
	Reason string // one of the Reason constants
}

// Proxy is one allow-list. Its exported fields are set before Serve, which may be called for several sockets at once.
type Proxy struct {
	Limits Limits
	// Dial connects to an address that was checked; nil: TCP.
	Dial func(ctx context.Context, to netip.AddrPort) (net.Conn, error)
	// Refused is told of refusals, as often as the log is: at most some in a second, each from its connection's goroutine.
	// nil: nobody is.
	Refused func(Refusal)

	allow    list
	resolver Resolver
	log      *slog.Logger
	own      func() ([]net.Addr, error) // addresses of this machine
	loud     *rate.Limiter              // of the log
	http     *http.Transport
	special  []netip.Prefix
	off      off // empty in the program that ships
}

// New makes a proxy for hosts given as name:port, where *.name is any name below. resolver nil: the machine's own.
func New(allow []string, log *slog.Logger, resolver Resolver) (*Proxy, error) {
	hosts, err := parseList(allow)
	if err != nil {
		return nil, err
	}
	if resolver == nil {
		resolver = net.DefaultResolver
	}
	p := &Proxy{allow: hosts, resolver: resolver, log: log, own: net.InterfaceAddrs, loud: rate.NewLimiter(5, 20), special: special(),
		Limits: Limits{Connections: 64, Head: 10 * time.Second, Resolve: 5 * time.Second, Dial: 10 * time.Second,
			Idle: 2 * time.Minute, Total: time.Hour, Bytes: 1 << 30}}
	p.Dial = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", to.String())
	}
	p.http = &http.Transport{DialContext: p.dialChecked, DisableKeepAlives: true, DisableCompression: true,
		MaxResponseHeaderBytes: 64 << 10, ResponseHeaderTimeout: 2 * time.Minute}
	return p, nil
}

// Serve listens on a unix socket, whose connections are bounded by themselves, so that sockets do not starve each other,
// and goes on until ctx ends. What stands at the path is replaced if it is a socket.
func (p *Proxy) Serve(ctx context.Context, path string) error {
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSocket != 0 {
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("replace the proxy's socket: %w", err)
		}
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return fmt.Errorf("open the proxy's socket: %w", err)
	}
	if err := os.Chmod(path, 0o666); err != nil { // commands may run as another user; the folder is what guards it
		return errors.Join(fmt.Errorf("open the proxy's socket to commands: %w", err), l.Close())
	}
	return p.ServeListener(ctx, l)
}

// ServeListener is Serve on a listener, which it closes.
func (p *Proxy) ServeListener(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	places := make(chan struct{}, p.Limits.Connections)
	var wg sync.WaitGroup
	wg.Go(func() {
		<-ctx.Done()
		_ = l.Close() // ends Accept; the error of a second close says nothing
	})
	for {
		conn, err := l.Accept()
		if err != nil {
			gone := ctx.Err() != nil
			cancel()
			wg.Wait()
			if gone {
				return nil
			}
			return fmt.Errorf("accept on the proxy's socket: %w", err)
		}
		select {
		case places <- struct{}{}:
		default:
			if !p.off.has(boundConnections) {
				p.refuse(target{}, ReasonBusy)
				answer(conn, http.StatusServiceUnavailable, ReasonBusy, false)
				continue
			}
		}
		wg.Go(func() {
			defer func() {
				select {
				case <-places:
				default: // only with the bound switched off
				}
			}()
			p.serve(ctx, conn)
		})
	}
}

// serve is one connection: one request.
func (p *Proxy) serve(ctx context.Context, conn net.Conn) {
	ctx, cancel := context.WithTimeout(ctx, p.Limits.Total)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })() // whatever blocks on it ends
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(p.Limits.Head)) // a connection that takes none is closed by Total
	in := bufio.NewReaderSize(conn, maxHead)
	req, err := p.readRequest(in)
	if err != nil {
		var bad *badRequest
		if errors.As(err, &bad) {
			p.refuse(bad.to, bad.reason)
			answer(conn, http.StatusBadRequest, bad.reason, true)
		}
		return
	}
	to, reason := p.admit(ctx, req.to)
	if reason != "" {
		p.refuse(req.to, reason)
		answer(conn, http.StatusForbidden, reason, true)
		return
	}
	_ = conn.SetReadDeadline(time.Time{}) // as above
	if req.method == http.MethodConnect {
		p.tunnel(ctx, conn, in, to)
		return
	}
	p.forward(ctx, conn, in, req, to)
}

// admit says which addresses may be dialled for a target, or why none.
func (p *Proxy) admit(ctx context.Context, to target) (addresses, string) {
	if p.off.has(checkBeforeLookup) { // broken: names that are refused are looked up all the same
		_, _ = p.lookup(ctx, to.host)
	}
	if reason := p.judgeName(to); reason != "" {
		return addresses{}, reason
	}
	found, err := p.lookup(ctx, to.host)
	if err != nil || len(found) == 0 {
		return addresses{}, ReasonUnknown
	}
	own, err := p.ownAddresses()
	if err != nil {
		return addresses{}, ReasonAddress // fail closed
	}
	for i, a := range found {
		found[i] = a.Unmap()
		if reason := p.judgeAddr(a, own); reason != "" {
			return addresses{}, reason // all of them: a name that mixes is a trick
		}
	}
	return addresses{host: to.host, list: found, port: to.port}, ""
}

func (p *Proxy) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, p.Limits.Resolve)
	defer cancel()
	return p.resolver.LookupNetIP(ctx, "ip", host+".") // with the dot, so that no search list is tried
}

// addresses were checked.
type addresses struct {
	host string
	list []netip.Addr
	port uint16
}

// dial connects to the first address that answers.
func (p *Proxy) dial(ctx context.Context, to addresses) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, p.Limits.Dial)
	defer cancel()
	if p.off.has(pinAddress) { // broken: asks again
		again, err := p.lookup(ctx, to.host)
		if err != nil {
			return nil, err
		}
		to.list = again
	}
	var errs []error
	for _, a := range to.list {
		conn, err := p.Dial(ctx, netip.AddrPortFrom(a, to.port))
		if err == nil {
			return conn, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

type checkedKey struct{}

// dialChecked serves the transport: the addresses travel in the request's context, never by its name.
func (p *Proxy) dialChecked(ctx context.Context, _, _ string) (net.Conn, error) {
	to, ok := ctx.Value(checkedKey{}).(addresses)
	if !ok {
		return nil, errors.New("nothing was checked")
	}
	return p.dial(ctx, to)
}

// refuse tells of it, not more often than a person could read.
func (p *Proxy) refuse(to target, reason string) {
	if !p.loud.Allow() {
		return
	}
	r := Refusal{Host: printable(to.host), Port: to.port, Reason: reason}
	p.log.Warn("egress refused", "host", r.Host, "port", r.Port, "reason", reason)
	if p.Refused != nil {
		p.Refused(r)
	}
}

// printable bounds what a client wrote, for the log.
func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
	return s[:min(len(s), 253)]
}

// answer ends a connection with a status and one sentence. With wait it lets the client read it first.
func answer(conn net.Conn, status int, reason string, wait bool) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Second)) // without one the write cannot block either: it is small
	text := "egress proxy: " + reason + "\n"
	_, _ = fmt.Fprintf(conn, "HTTP/1.1 %d %s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		status, http.StatusText(status), len(text), text) // whoever left does not read it
	if half, ok := conn.(interface{ CloseWrite() error }); wait && ok && half.CloseWrite() == nil {
		_, _ = io.CopyN(io.Discard, conn, maxHead) // so that the answer is not lost behind what was not read
	}
}
