package api_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"parley/channels/webchat"
	"parley/gateway/api"
	"parley/gateway/api/signin"
	"parley/gateway/control"
	"parley/gateway/control/all"
	"parley/workspace"
)

// front is a server of the API with nothing behind it: what stands before the verbs is the same.
type front struct {
	t    *testing.T
	s    *api.Server
	addr string
}

const frontToken = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

func newFront(t *testing.T, addr string, change func(*api.Options)) *front {
	t.Helper()
	slow := func(name string) http.Handler {
		if name != "x" {
			return nil
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	}
	o := api.Options{Control: &all.Nouns{}, Network: slow, Page: webchat.Page(), Ready: func() error { return nil }, Writes: func() int { return 0 },
		Owner: func() workspace.Actor { return workspace.Actor{Person: "ana", Role: workspace.Owner} },
		Live: func(w http.ResponseWriter, _ *http.Request, _ control.Call, _ func() error) {
			w.WriteHeader(http.StatusSwitchingProtocols)
		},
		SignIn: signin.Options{Token: func() string { return frontToken }, Hosts: func() []string { return nil }, Addr: addr}}
	if change != nil {
		change(&o)
	}
	h := &front{t: t, s: api.New(o), addr: addr}
	t.Cleanup(h.s.Close)
	return h
}

// openFront is one on a real listener.
func openFront(t *testing.T) *front {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := newFront(t, l.Addr().String(), nil)
	srv := &http.Server{Handler: h.s, ReadHeaderTimeout: 5 * time.Second, ConnContext: h.s.Conns.ConnContext, ConnState: h.s.Conns.ConnState}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(h.s.Conns.Listen(l)) // until Close
	}()
	t.Cleanup(func() {
		_ = srv.Close() // twice is fine
		<-done
	})
	return h
}

// ask sends a request with the right token from loopback; edit may change it.
func (h *front) ask(method, path, body string, edit func(*http.Request)) answer {
	h.t.Helper()
	r := httptest.NewRequestWithContext(h.t.Context(), method, "/", strings.NewReader(body))
	target, err := r.URL.Parse("http://" + h.addr + path)
	if err != nil {
		h.t.Fatal(err)
	}
	r.URL, r.RequestURI, r.Host, r.RemoteAddr = target, path, h.addr, "127.0.0.1:40000"
	r.Header.Set("Authorization", "Bearer "+frontToken)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if edit != nil {
		edit(r)
	}
	rec := httptest.NewRecorder()
	h.s.ServeHTTP(rec, r)
	a := answer{rec.Result(), rec.Body.String()}
	if to := a.Header.Get("Location"); a.StatusCode == http.StatusTemporaryRedirect && to != path {
		return h.ask(method, to, body, edit) // as clients do
	}
	keepsToDocument(h.t, method, path, r.Header.Get("Content-Type"), body, a)
	return a
}

// origin is that of the page.
func (h *front) origin() string { return "http://" + h.addr }

// signIn is a browser's cookie.
func (h *front) signIn() *http.Cookie {
	h.t.Helper()
	code, _ := h.s.Guard.Invite(nil)
	r := httptest.NewRequestWithContext(h.t.Context(), http.MethodPost, "/v1/sign-in", nil)
	r.RemoteAddr = "127.0.0.1:40000"
	c, err := h.s.Guard.Redeem(r, code)
	if err != nil {
		h.t.Fatal(err)
	}
	return c
}

// as makes requests those of a page that is signed in.
func (h *front) as(c *http.Cookie) func(*http.Request) { return asPage(c, h.origin()) }

// dial is a connection from one of 127/8.
func (h *front) dial(from int) (net.Conn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, byte(1+from), 1)}, Timeout: 10 * time.Second}
	return d.Dial("tcp", h.addr)
}

// get sends a request over a connection and returns the status; 0: the connection has ended.
func (h *front) get(c net.Conn, path, token string) int {
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
