package egress

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a proxy on a socket, between names that it looks up here and a server that stands for every address.
type world struct {
	t      *testing.T
	p      *Proxy
	socket string
	log    lockedBuffer

	mu     sync.Mutex
	names  map[string][][]string // answers, one after another; the last stays
	asked  []string
	dialed []string
	to     string // the server's real address
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

const (
	public  = "93.184.216.34"
	ownAddr = "45.33.32.156"
)

func hello(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	fmt.Fprintf(w, "reached %s %s %s %d %s", r.Method, r.Host, r.RequestURI, len(body), r.Header.Get("Proxy-Authorization"))
}

// newWorld has a.example, any.below.example and names that lead astray on its list. change is made before it serves.
func newWorld(t *testing.T, change func(*Proxy)) *world {
	t.Helper()
	w := &world{t: t, names: map[string][][]string{
		"a.example": {{public}}, "x.below.example": {{public}}, "slow.example": {{public}}, "evilbelow.example": {{public}}, "other.example": {{public}},
		"xn--7ca.example": {{public}}, "xn--other-9qa.example": {{public}},
		"own.example": {{ownAddr}}, "localhost": {{"127.0.0.1", "::1"}}, "rebind.example": {{public}, {"127.0.0.1"}}, "mixed.example": {{public, "10.0.0.1"}},
	}}
	srv := httptest.NewServer(http.HandlerFunc(hello))
	t.Cleanup(srv.Close)
	w.to = srv.Listener.Addr().String()
	p, err := New([]string{"a.example:443", "a.example:80", "*.below.example:443", "own.example:443", "localhost:443", "rebind.example:443", "mixed.example:443",
		"void.example:443", "bücher.example:443"}, slog.New(slog.NewTextHandler(&w.log, nil)), w)
	if err != nil {
		t.Fatal(err)
	}
	p.own = func() ([]net.Addr, error) {
		return []net.Addr{&net.IPNet{IP: net.ParseIP(ownAddr), Mask: net.CIDRMask(24, 32)}}, nil
	}
	p.Dial = w.dial
	if change != nil {
		change(p)
	}
	dir, err := os.MkdirTemp("", "eg") // short: a socket's path has at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // in the system's own folder for such
	w.p, w.socket = p, filepath.Join(dir, "s")
	l, err := net.Listen("unix", w.socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.ServeListener(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return w
}

// LookupNetIP answers as a lenient resolver does: also for what some take for an address.
func (w *world) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	host = strings.TrimSuffix(host, ".")
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, host)
	if list := w.names[host]; len(list) > 0 {
		if len(list) > 1 {
			w.names[host] = list[1:]
		}
		var out []netip.Addr
		for _, a := range list[0] {
			out = append(out, netip.MustParseAddr(a))
		}
		return out, nil
	}
	if a, err := netip.ParseAddr(strings.Trim(host, "[].")); err == nil {
		return []netip.Addr{a}, nil
	}
	if a, ok := aton(host); ok {
		return []netip.Addr{a}, nil
	}
	return nil, errors.New("no such host")
}

// aton reads addresses as inet_aton does: one to four numbers, each decimal, octal or hex.
func aton(s string) (netip.Addr, bool) {
	parts := strings.Split(strings.TrimSuffix(s, "."), ".")
	var v uint64
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 0, 32)
		if err != nil || len(parts) > 4 {
			return netip.Addr{}, false
		}
		if i == len(parts)-1 {
			v |= n
			break
		}
		v |= n << (24 - 8*i)
	}
	return netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)}), true
}

func (w *world) dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	w.mu.Lock()
	w.dialed = append(w.dialed, to.String())
	w.mu.Unlock()
	return new(net.Dialer).DialContext(ctx, "tcp", w.to)
}

func (w *world) wentTo() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.dialed)
}

func (w *world) lookedUp() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.asked)
}

func (w *world) connect() net.Conn {
	w.t.Helper()
	c, err := net.Dial("unix", w.socket)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	return c
}

// raw sends bytes as they are and returns the status of the answer; 0: there was none.
func (w *world) raw(request string) int {
	w.t.Helper()
	c := w.connect()
	defer c.Close()
	if _, err := io.WriteString(c, request); err != nil {
		return 0 // refused before all was read
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0
	}
	resp.Body.Close()
	return resp.StatusCode
}

// open asks for a tunnel and says whether it stands.
func (w *world) open(authority string) bool {
	return w.raw("CONNECT "+authority+" HTTP/1.1\r\nHost: "+authority+"\r\n\r\n") == 200
}
