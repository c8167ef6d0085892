package api_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// How many connections strangers may have, of one address and in all.
const (
	maxFromAddress = 512
	maxStrangers   = 1024
)

// T26: strangers' connections are bounded, in all and by address, whatever they do with them, and never keep out who has the token, from
// the same address or another; a connection that was let in keeps its place.
func TestT26_StrangersConnectionsNeverStopThoseWithTheToken(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		addresses, most int
		begin           func(h *front, c net.Conn)
	}{
		"idle, one address":   {1, maxFromAddress, func(h *front, c net.Conn) { h.get(c, "/healthz", "") }},
		"idle, 64 addresses":  {64, maxStrangers, func(h *front, c net.Conn) { h.get(c, "/healthz", "") }},
		"refused, idle":       {64, maxStrangers, func(h *front, c net.Conn) { h.get(c, "/readyz", "") }},
		"silent, one address": {1, maxStrangers, func(*front, net.Conn) {}},
		"half a header": {64, maxStrangers, func(h *front, c net.Conn) {
			fmt.Fprintf(c, "GET /readyz HTTP/1.1\r\nHost: %s\r\nX-Slow: ", h.addr)
		}},
		"half a webhook": {64, maxStrangers, func(h *front, c net.Conn) {
			fmt.Fprintf(c, "POST /channels/x/y HTTP/1.1\r\nHost: %s\r\nContent-Length: 100\r\n\r\n{", h.addr)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := openFront(t)
			kept, err := h.dial(0)
			if err != nil {
				t.Fatal(err)
			}
			defer kept.Close()
			if got := h.get(kept, "/readyz", frontToken); got != http.StatusOK {
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
					if got := h.get(one, "/readyz", frontToken); got != http.StatusOK {
						t.Errorf("a request with the token, %d of them behind: %d", served, got)
					}
					one.Close()
					served++
				}
			})
			flood.Wait()
			stop()
			friends.Wait()
			all, strangers, shed := h.s.Conns.Count()
			if strangers > c.most || strings.HasPrefix(name, "idle") && shed == 0 {
				t.Errorf("%d connections, %d strangers' of at most %d, %d closed for others", all, strangers, c.most, shed)
			}
			if got := h.get(kept, "/readyz", frontToken); got != http.StatusOK {
				t.Errorf("the connection that was let in: %d", got)
			}
		})
	}
}

// T26: what a stranger may send is small.
func TestT26_AStrangersBodyIsSmall(t *testing.T) {
	t.Parallel()
	h := openFront(t)
	c, err := h.dial(0)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	body := `{"code":"` + strings.Repeat("x", 8<<10) + `"}`
	fmt.Fprintf(c, "POST /v1/sign-in HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n%s", h.addr, len(body), body)
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Fatalf("%+v, %v", resp, err)
	}
	resp.Body.Close()
}
