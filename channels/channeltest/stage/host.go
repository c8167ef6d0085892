// Package stage is what the fakes of all networks stand on: an HTTP server that can fall and rise again on its address
// (Host), waiting for what happens (Watch), and calls that are spoiled on purpose (Faults). It knows no network: what is
// asked and answered is the fakes' own.
//
// Goroutines: one per Host while it listens, and the handlers of its requests. Close ends them and waits.
package stage

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// TB is the part of testing.TB that a fake's Start needs.
type TB interface {
	Helper()
	Cleanup(func())
}

// Host serves a fake on one address, which stays the same when it goes down and comes up again. Fakes embed it. All methods
// are safe for concurrent use, also when the fake calls them with its own lock held.
type Host struct {
	serve http.HandlerFunc
	cut   func()

	done chan struct{}
	work sync.WaitGroup

	mu     sync.Mutex
	addr   string
	srv    *http.Server
	listen net.Listener
	closed bool
}

// New makes a host that does not listen yet. addr empty is a free port of 127.0.0.1. cut drops what serve has taken over
// from the HTTP server, such as websockets, which that one cannot cut; nil: nothing is.
func New(addr string, serve http.HandlerFunc, cut func()) *Host {
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	if cut == nil {
		cut = func() {}
	}
	return &Host{serve: serve, cut: cut, done: make(chan struct{}), addr: addr}
}

// Addr is host:port.
func (h *Host) Addr() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.addr
}

// URL is where it listens, without a slash at its end.
func (h *Host) URL() string { return "http://" + h.Addr() }

// Done is closed by Close: whatever hangs lets go then.
func (h *Host) Done() <-chan struct{} { return h.done }

// Listening is false after Down and after Close. What a handler takes over later than that, cut has missed.
func (h *Host) Listening() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.srv != nil
}

// Up listens, after Down on the same address as before. It does nothing while it listens, and after Close.
func (h *Host) Up() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.srv != nil || h.closed {
		return nil
	}
	l, err := net.Listen("tcp", h.addr)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", h.addr, err)
	}
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 30 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	h.addr, h.srv, h.listen = l.Addr().String(), srv, l
	h.work.Go(func() { _ = srv.Serve(l) }) // returns ErrServerClosed after Down or Close
	return nil
}

// Down stops listening and cuts every connection: clients get "connection refused" until Up.
func (h *Host) Down() {
	h.mu.Lock()
	srv, l := h.srv, h.listen
	h.srv = nil
	h.mu.Unlock()
	if srv != nil {
		_ = l.Close()   // the server knows its listener only once it serves
		_ = srv.Close() // cutting is the purpose
	}
	h.cut()
}

// Cut drops every connection and keeps listening.
func (h *Host) Cut() error {
	h.Down()
	return h.Up()
}

// Close ends the host and waits for its handlers. A second Close only waits.
func (h *Host) Close() {
	h.mu.Lock()
	if !h.closed {
		h.closed = true
		close(h.done)
	}
	h.mu.Unlock()
	h.Down()
	h.work.Wait()
}

// ServeHTTP is the fake's answer, for a server of the test's own, too. After Close every connection is cut.
func (h *Host) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !h.enter() {
		panic(http.ErrAbortHandler)
	}
	defer h.work.Done()
	h.serve(w, r)
}

// enter counts a handler in, unless it comes too late to be waited for.
func (h *Host) enter() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	h.work.Add(1)
	return true
}
