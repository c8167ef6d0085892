package api

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/workspace"
)

// hall is a server of the API without a gateway behind it, on a real listener.
type hall struct {
	t    *testing.T
	s    *Server
	addr string
}

const hallToken = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

func openHall(t *testing.T) *hall {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	slow := func(string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	}
	s := New(Options{Token: func() string { return hallToken }, Hosts: func() []string { return nil }, Addr: l.Addr().String(), Network: slow, Writes: func() int { return 0 },
		Owner: func() workspace.Actor { return workspace.Actor{Person: "ana", Role: workspace.Owner} }, Ready: func() error { return nil }})
	srv := &http.Server{Handler: s, ReadHeaderTimeout: 5 * time.Second, ConnContext: s.ConnContext, ConnState: s.ConnState}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(s.Listen(l)) // until Close
	}()
	t.Cleanup(func() {
		s.Close()
		_ = srv.Close() // twice is fine
		<-done
	})
	return &hall{t: t, s: s, addr: l.Addr().String()}
}

// dial is a connection from one of 127/8.
func (h *hall) dial(from int) (net.Conn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, byte(1+from), 1)}, Timeout: 10 * time.Second}
	return d.Dial("tcp", h.addr)
}

// ask sends a request over a connection and returns the status; 0: the connection has ended.
func (h *hall) ask(c net.Conn, path, token string) int {
	if token != "" {
		token = "Authorization: Bearer " + token + "\r\n"
	}
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return 0
	}
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", path, h.addr, token); err != nil {
		return 0
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body) // its status is what counts
	return resp.StatusCode
}

// T26: strangers' connections are bounded, in all and by address, whatever they do with them, and never keep out who has the token, from
// the same address or another; a connection that was let in keeps its place.
func TestT26_StrangersConnectionsNeverStopThoseWithTheToken(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		addresses, most int
		begin           func(h *hall, c net.Conn)
	}{
		"idle, one address":   {1, maxFromAddress, func(h *hall, c net.Conn) { h.ask(c, "/healthz", "") }},
		"idle, 64 addresses":  {64, maxStrangers, func(h *hall, c net.Conn) { h.ask(c, "/healthz", "") }},
		"refused, idle":       {64, maxStrangers, func(h *hall, c net.Conn) { h.ask(c, "/readyz", "") }},
		"silent, one address": {1, maxStrangers, func(*hall, net.Conn) {}},
		"half a header": {64, maxStrangers, func(h *hall, c net.Conn) {
			fmt.Fprintf(c, "GET /readyz HTTP/1.1\r\nHost: %s\r\nX-Slow: ", h.addr)
		}},
		"half a webhook": {64, maxStrangers, func(h *hall, c net.Conn) {
			fmt.Fprintf(c, "POST /channels/x/y HTTP/1.1\r\nHost: %s\r\nContent-Length: 100\r\n\r\n{", h.addr)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := openHall(t)
			kept, err := h.dial(0)
			if err != nil {
				t.Fatal(err)
			}
			defer kept.Close()
			if got := h.ask(kept, "/readyz", hallToken); got != http.StatusOK {
				t.Fatal(got)
			}
			var mu sync.Mutex
			var open []net.Conn
			defer func() {
				for _, c := range open {
					c.Close()
				}
			}()
			ctx, stop := context.WithCancel(t.Context())
			var flood, friends sync.WaitGroup
			for w := range 16 {
				flood.Go(func() {
					for i := w; i < maxStrangers*5/4 && ctx.Err() == nil; i += 16 {
						one, err := h.dial(i % c.addresses)
						if err != nil {
							continue
						}
						mu.Lock()
						open = append(open, one)
						mu.Unlock()
						c.begin(h, one)
					}
				})
			}
			served := 0
			friends.Go(func() {
				for ctx.Err() == nil || served < 3 { // with a new connection each
					one, err := h.dial(served % c.addresses)
					if err != nil {
						t.Error(err)
						return
					}
					if got := h.ask(one, "/readyz", hallToken); got != http.StatusOK {
						t.Errorf("a request with the token, %d of them behind: %d", served, got)
					}
					one.Close()
					served++
				}
			})
			flood.Wait()
			stop()
			friends.Wait()
			all, strangers, shed := h.s.s.conns.count()
			if strangers > c.most || strings.HasPrefix(name, "idle") && shed == 0 {
				t.Errorf("%d connections, %d strangers' of at most %d, %d closed for others", all, strangers, c.most, shed)
			}
			if got := h.ask(kept, "/readyz", hallToken); got != http.StatusOK {
				t.Errorf("the connection that was let in: %d", got)
			}
		})
	}
}

// T26: a stranger's connection does not rest for long.
func TestT26_StrangersConnectionsDoNotRest(t *testing.T) {
	t.Parallel()
	h := openHall(t)
	h.s.s.conns.idle = 20 * time.Millisecond
	known, err := h.dial(0)
	if err != nil {
		t.Fatal(err)
	}
	defer known.Close()
	stranger, err := h.dial(1)
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	if a, b := h.ask(known, "/readyz", hallToken), h.ask(stranger, "/healthz", ""); a != 200 || b != 200 {
		t.Fatal(a, b)
	}
	if _, err := stranger.Read(make([]byte, 1)); err != io.EOF { // ends with the deadline of ask, else
		t.Errorf("a stranger's connection: %v", err)
	}
	if got := h.ask(known, "/readyz", hallToken); got != 200 {
		t.Errorf("one that was let in: %d", got)
	}
}

// T26: whatever is held open counts once, by person and in all.
func TestT26_HeldRequestsHaveOneCount(t *testing.T) {
	t.Parallel()
	p := places{own: 3, all: 5}
	var leave []func()
	take := func(who workspace.PersonID, want bool) {
		t.Helper()
		l, ok := p.take(who)
		if ok != want {
			t.Errorf("%s: %t with %d taken", who, ok, p.count())
		}
		if ok {
			leave = append(leave, l)
		}
	}
	for range 3 {
		take("ana", true)
	}
	take("ana", false)
	take("ben", true)
	take("ben", true)
	take("cid", false)
	leave[0]()
	leave[0]()
	take("cid", true)
	take("ana", false)
	for _, l := range leave {
		l()
	}
	if p.count() != 0 || len(p.each) != 0 {
		t.Errorf("%d are left, of %v", p.count(), p.each)
	}
}

// T26: bodies of strangers are small, and do not take the room of those who were let in.
func TestT26_StrangersBodiesAreBounded(t *testing.T) {
	t.Parallel()
	h := openHall(t)
	c, err := h.dial(0)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	body := `{"code":"` + strings.Repeat("x", 2*maxOpenBody) + `"}`
	fmt.Fprintf(c, "POST /v1/sign-in HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n%s", h.addr, len(body), body)
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Fatalf("%+v, %v", resp, err)
	}
	resp.Body.Close()
	b := newBodies()
	for range bodiesStrangers / maxBody {
		if _, err := b.room(t.Context(), false, maxBody); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.room(t.Context(), false, maxBody); problemOf(err).Status != http.StatusServiceUnavailable {
		t.Errorf("beyond the room: %v", err)
	}
	if _, err := b.room(t.Context(), true, maxBody); err != nil {
		t.Errorf("who was let in: %v", err)
	}
}
