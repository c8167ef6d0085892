package egress

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func readAll(c net.Conn) string {
	b, _ := io.ReadAll(c) // what there was until it ended
	return string(b)
}

func TestPlainRequestsReachListedHosts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	client := &http.Client{Transport: &http.Transport{Proxy: func(*http.Request) (*url.URL, error) { return url.Parse("http://proxy.invalid") }, DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", w.socket)
		}}}
	for name, c := range map[string]struct {
		method, path string
		body         io.Reader
		want         string
	}{
		"get":     {"GET", "http://a.example/p%2Fq?x=1&y=%20", nil, "reached GET a.example /p%2Fq?x=1&y=%20 0 "},
		"post":    {"POST", "http://A.example:80/", strings.NewReader("12345"), "reached POST a.example / 5 "},
		"chunked": {"PUT", "http://a.example//two", io.MultiReader(strings.NewReader("123"), strings.NewReader("4567")), "reached PUT a.example //two 7 "},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, c.path, c.body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Proxy-Authorization", "Basic x")
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(name, err)
		}
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
		}
	}
	for _, to := range w.wentTo() {
		if to != public+":80" {
			t.Errorf("connected to %s", to)
		}
	}
}

// A tunnel carries both directions, and the end of one leaves the other open.
func TestATunnelClosesByHalves(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	w.to = l.Addr().String()
	served := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			defer c.Close()
			var all []byte
			all, err = io.ReadAll(c) // ends when the client's half does
			_, _ = fmt.Fprintf(c, "got %d", len(all))
		}
		served <- err
	}()
	c := w.connect()
	early := "CONNECT X.below.example:443 HTTP/1.1\r\nHost: x.below.example:443\r\n\r\nearly"
	if _, err := io.WriteString(c, early); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(c)
	if resp, err := http.ReadResponse(in, &http.Request{Method: "CONNECT"}); err != nil || resp.StatusCode != 200 {
		t.Fatalf("%+v %v", resp, err)
	}
	if _, err := io.WriteString(c, strings.Repeat("x", 200_000)); err != nil {
		t.Fatal(err)
	}
	if err := c.(*net.UnixConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(in); err != nil || string(got) != "got 200005" {
		t.Errorf("%q %v", got, err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// A second request behind the first would go to a host that nobody judged.
func TestE19_AConnectionCarriesOneRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.connect()
	one := "GET http://a.example/1 HTTP/1.1\r\nHost: a.example\r\n\r\n"
	if _, err := io.WriteString(c, one+strings.ReplaceAll(one, "/1", "/2")); err != nil {
		t.Fatal(err)
	}
	if got := readAll(c); strings.Count(got, "reached GET") != 1 || !strings.Contains(got, "Connection: close") {
		t.Errorf("%q", got)
	}
}

func TestLimitsEndConnections(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limit func(*Limits)
		try   func(*world) string
	}{
		"a head that never ends": {func(l *Limits) { l.Head = 50 * time.Millisecond }, func(w *world) string {
			c := w.connect()
			_, _ = io.WriteString(c, "CONNECT a.example:443 HTTP/1.1\r\n")
			return readAll(c)
		}},
		"a tunnel that is idle": {func(l *Limits) { l.Idle = 50 * time.Millisecond }, func(w *world) string {
			c := w.connect()
			_, _ = io.WriteString(c, "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n")
			return strings.TrimPrefix(readAll(c), "HTTP/1.1 200 Connection established\r\n\r\n") // nothing at all on a slow machine
		}},
		"a tunnel that lasts": {func(l *Limits) { l.Total = 50 * time.Millisecond }, func(w *world) string {
			c := w.connect()
			_, _ = io.WriteString(c, "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n")
			return strings.TrimPrefix(readAll(c), "HTTP/1.1 200 Connection established\r\n\r\n") // nothing at all on a slow machine
		}},
		"an answer that is too long": {func(l *Limits) { l.Bytes = 10 }, func(w *world) string {
			c := w.connect()
			_, _ = io.WriteString(c, "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n")
			_, body, _ := strings.Cut(readAll(c), "\r\n\r\n")
			return strings.TrimPrefix(body, "reached GE")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := c.try(newWorld(t, func(p *Proxy) { c.limit(&p.Limits) })); got != "" {
				t.Errorf("it went on: %q", got)
			}
		})
	}
}

func TestRefusalsAreToldWithTheirReason(t *testing.T) {
	t.Parallel()
	told := make(chan Refusal, 64)
	w := newWorld(t, func(p *Proxy) { p.Refused = func(r Refusal) { told <- r } })
	for _, c := range []struct {
		request, host, reason string
		status                int
	}{
		{"CONNECT other.example:443 HTTP/1.1\r\nHost: other.example:443\r\n\r\n", "other.example", ReasonList, 403},
		{"CONNECT 127.0.0.1:443 HTTP/1.1\r\nHost: 127.0.0.1:443\r\n\r\n", "127.0.0.1", ReasonLiteral, 403},
		{"CONNECT localhost:443 HTTP/1.1\r\nHost: localhost:443\r\n\r\n", "localhost", ReasonAddress, 403},
		{"CONNECT own.example:443 HTTP/1.1\r\nHost: own.example:443\r\n\r\n", "own.example", ReasonOwn, 403},
		{"CONNECT void.example:443 HTTP/1.1\r\nHost: void.example:443\r\n\r\n", "void.example", ReasonUnknown, 403},
		{"CONNECT a.example.:443 HTTP/1.1\r\nHost: a.example.:443\r\n\r\n", "a.example.", ReasonName, 403},
		{"CONNECT u@a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n", "", ReasonUser, 400},
		{"CONNECT a.example:443 HTTP/1.1\r\nHost: b\r\n\r\n", "a.example", ReasonHost, 400},
		{"CONNECT a.example HTTP/1.1\r\nHost: a.example\r\n\r\n", "", ReasonForm, 400},
		{"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n", "", ReasonForm, 400},
		{"GET https://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n", "", ReasonForm, 400},
		{"GET http://a.example/\x01 HTTP/1.1\r\nHost: a.example\r\n\r\n", "", ReasonBytes, 400},
		{"GET http://a.example/ HTTP/1.1\nHost: a.example\n\n", "", ReasonBytes, 400},
		{"GET http://a.example/ HTTP/2.0\r\nHost: a.example\r\n\r\n", "", ReasonHead, 400},
		{"GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n folded\r\n\r\n", "a.example", ReasonHead, 400},
		{"POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "a.example", ReasonBody, 400},
		{"POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: +1\r\n\r\n", "a.example", ReasonBody, 400},
		{"GET http://a.example/ HTTP/1.1\r\nX: " + strings.Repeat("x", maxHead) + "\r\n\r\n", "", ReasonLong, 400},
	} {
		if got := w.raw(c.request); got != c.status && c.reason != ReasonLong { // what is too long may be cut off before the answer is read
			t.Errorf("%.60q: %d, want %d", c.request, got, c.status)
		}
		if r := <-told; r.Reason != c.reason || r.Host != c.host {
			t.Errorf("%.60q: %+v, want %s for %q", c.request, r, c.reason, c.host)
		}
	}
	if text := w.log.String(); !strings.Contains(text, ReasonList) || strings.Contains(text, "\x01") {
		t.Error(text)
	}
}

func TestAddressesThatAreRefused(t *testing.T) {
	t.Parallel()
	p, err := New(nil, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []string{"0.0.0.0", "0.1.2.3", "10.1.1.1", "100.64.0.1", "100.100.100.200", "127.255.0.1", "169.254.169.254", "172.31.0.1", "192.0.0.192", "192.0.2.1",
		"192.88.99.1", "192.168.1.1", "198.19.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.251", "239.1.1.1", "240.0.0.1", "255.255.255.255", "168.63.129.16",
		"::", "::1", "::127.0.0.1", "::ffff:10.0.0.1", "::ffff:0:10.0.0.1", "64:ff9b::a00:1", "64:ff9b:1::a00:1", "100::1", "2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2",
		"2001:db8::1", "2002:a00:1::", "2002:7f00:1::1", "3fff::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "ff0e::1", "4000::1",
		"2606:4700::5efe:a00:1", "2606:4700::200:5efe:a00:1", "2606:4700:4700::1111%eth0"} {
		if p.judgeAddr(netip.MustParseAddr(a), nil) == "" {
			t.Errorf("%s passes", a)
		}
	}
	for _, a := range []string{"1.1.1.1", "8.8.8.8", "93.184.216.34", "172.32.0.1", "::ffff:8.8.8.8", "2606:4700:4700::1111", "2a00:1450:4001:800::200e"} {
		if reason := p.judgeAddr(netip.MustParseAddr(a), nil); reason != "" {
			t.Errorf("%s: %s", a, reason)
		}
	}
}

func TestListsThatAreRefused(t *testing.T) {
	t.Parallel()
	for _, entry := range []string{"", "a.example", "a.example:", "a.example:0", "a.example:080", "a.example:65536", "a.example:https", ":443", "127.0.0.1:443", "[::1]:443",
		"0x7f.1:80", "*:443", "*.:443", "a.*.example:443", "a b:443", "a.example.:443", "https://a.example:443", "u@a.example:443", "-a.example:443"} {
		if _, err := New([]string{entry}, slog.New(slog.DiscardHandler), nil); err == nil {
			t.Errorf("%q is taken", entry)
		}
	}
	w := newWorld(t, func(p *Proxy) {})
	w.names["xn--bcher-kva.example"] = [][]string{{public}}
	if !w.open("xn--bcher-kva.example:443") {
		t.Error("a listed name with other letters is not reached as IDNA writes it")
	}
}

func TestServeOpensASocketForCommandsAndReplacesAnOldOne(t *testing.T) {
	t.Parallel()
	p, err := New(nil, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "s")
	old, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	old.SetUnlinkOnClose(false)
	old.Close()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := p.Serve(ctx, path); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.Serve(t.Context(), path); err == nil {
		t.Error("a file that is no socket was replaced")
	}
}

// What parses is read the same way by the standard library, and is printable ASCII.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n", "GET http://a.example/x?y HTTP/1.1\r\nHost: a.example\r\nA: b\r\n\r\n",
		"POST http://a.example:81/ HTTP/1.0\r\nContent-Length: 3\r\n\r\n", "GET http://u@[::1]:80/ HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n"} {
		f.Add(s)
	}
	p, err := New([]string{"a.example:443"}, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, head string) {
		r, err := p.readRequest(bufio.NewReaderSize(strings.NewReader(head), maxHead))
		if err != nil {
			return
		}
		std, err := http.ReadRequest(bufio.NewReader(strings.NewReader(head)))
		if err != nil {
			if judgeHost(r.to.host, off{}) == "" && r.method != "PRI" { // it would be refused anyway
				t.Fatalf("%q is taken, the standard library says %v", head, err)
			}
			return
		}
		if p.judgeName(r.to) == "" && !strings.EqualFold(std.URL.Hostname(), r.to.host) {
			t.Fatalf("%q: to %q, by the standard library to %q", head, r.to.host, std.URL.Hostname())
		}
		if std.ContentLength != r.length && len(std.TransferEncoding) == 0 && r.method != "CONNECT" {
			t.Fatalf("%q: %d bytes, by the standard library %d", head, r.length, std.ContentLength)
		}
	})
}

func BenchmarkTunnel(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c); c.Close() }()
		}
	}()
	p, err := New([]string{"a.example:443"}, slog.New(slog.DiscardHandler), fixed{})
	if err != nil {
		b.Fatal(err)
	}
	p.Dial = func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
	}
	path := filepath.Join(b.TempDir(), "s")
	u, err := net.Listen("unix", path)
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- p.ServeListener(ctx, u) }()
	defer func() { stop(); <-done }()
	turn := func(dial func() (net.Conn, error), hello string, skip int) {
		c, err := dial()
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		buf := make([]byte, skip+4)
		if _, err := io.WriteString(c, hello+"ping"); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(c, buf); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("direct", func(b *testing.B) {
		for b.Loop() {
			turn(func() (net.Conn, error) { return net.Dial("tcp", l.Addr().String()) }, "", 0)
		}
	})
	b.Run("proxied", func(b *testing.B) {
		for b.Loop() {
			turn(func() (net.Conn, error) { return net.Dial("unix", path) }, "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n",
				len("HTTP/1.1 200 Connection established\r\n\r\n"))
		}
	})
}

type fixed struct{}

func (fixed) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr(public)}, nil
}
