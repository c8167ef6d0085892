// Package whatsapptest is a fake of WhatsApp's servers with people behind them, for tests only. It speaks the wire of the
// web client: a websocket with a Noise XX handshake and a certificate chain, binary stanzas, real Signal sessions for every
// simulated device, sender keys in groups, receipts, the queue that waits for a client that is away, media over HTTP, and
// linking by QR code or phone code.
//
// WhatsApp has no public document of this wire. It is written from the client library go.mau.fi/whatsmeow (its source says
// what it sends and what it takes), from the Signal and Noise specifications, and from public reports of refusals; where
// nobody knows what the network answers, the comment says that it is this fake's choice.
//
// It decrypts what it is sent on behalf of each device of each person, so that a test sees what people see, and complains
// (Server.Complaints) of everything that the network or a phone would not have taken.
//
// Goroutines: one HTTP server, one reader and one writer for each websocket; Close waits for them.
package whatsapptest

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/util/keys"
)

// Options of a fake. The zero value works.
type Options struct {
	Addr    string           // listen address; empty: a free port of 127.0.0.1
	Now     func() time.Time // empty: time.Now
	Account Person           // whose phone links the client; empty Phone: DefaultAccount
}

// DefaultAccount is the account that the client is linked to.
func DefaultAccount() Person {
	return Person{Phone: "4915112340000", LID: "180000000000001", Name: "Parley"}
}

// Server is the fake. Its methods may be called from several goroutines.
type Server struct {
	opts Options
	auth *authority

	mu         sync.Mutex
	addr       string
	srv        *http.Server
	active     int
	closed     bool
	done       chan struct{} // closed by Close
	idle       chan struct{} // closed when closed and nothing runs
	change     chan struct{} // closed and made anew at every change
	shift      time.Duration // of the clock
	complaints []string

	owner      *person
	people     map[string]*person // by phone and by LID
	groups     map[types.JID]*room
	companions map[uint16]*companion
	nextDevice uint16
	conns      map[*conn]bool
	pairings   map[string]*pairing // by ref
	primaryKey *keys.KeyPair       // identity of the account's phone

	taken    []*message // what was written, oldest first
	receipts []Receipt
	acks     []Nack
	typing   []Typing
	queries  map[string]int
	media    media
	state    appState
	faults   faults
}

// New makes the fake and listens at once, like httptest.NewServer; it panics when it cannot.
func New(opts Options) *Server {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Account.Phone == "" {
		opts.Account = DefaultAccount()
	}
	if opts.Addr == "" {
		opts.Addr = "127.0.0.1:0"
	}
	s := &Server{
		opts: opts, addr: opts.Addr, done: make(chan struct{}), idle: make(chan struct{}), change: make(chan struct{}),
		people: map[string]*person{}, groups: map[types.JID]*room{}, companions: map[uint16]*companion{}, nextDevice: 1,
		conns: map[*conn]bool{}, pairings: map[string]*pairing{}, queries: map[string]int{},
	}
	var err error
	if s.auth, err = newAuthority(); err != nil {
		panic(fmt.Sprintf("whatsapptest: %v", err))
	}
	s.primaryKey = primaryKey(opts.Account)
	s.owner = s.addPerson(opts.Account)
	if err := s.Up(); err != nil {
		panic(fmt.Sprintf("whatsapptest: %v", err))
	}
	return s
}

// TB is the part of testing.TB that Start needs.
type TB interface {
	Helper()
	Cleanup(func())
}

// Start is New for tests: the server is closed when the test ends.
func Start(t TB, opts Options) *Server {
	t.Helper()
	s := New(opts)
	t.Cleanup(s.Close)
	return s
}

// URL is the base address to which a client is led instead of web.whatsapp.com and the media hosts.
func (s *Server) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return "http://" + s.addr
}

// Client is an HTTP client that leads every host to the fake, for whatsmeow's SetWebsocketHTTPClient and its neighbours.
func (s *Server) Client() *http.Client {
	return &http.Client{Transport: &leading{s: s, base: &http.Transport{MaxIdleConnsPerHost: 8}}}
}

type leading struct {
	s    *Server
	base *http.Transport
}

func (l *leading) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Scheme = "http"
	r.URL.Host = strings.TrimPrefix(l.s.URL(), "http://")
	return l.base.RoundTrip(r)
}

// CloseIdleConnections serves http.Client.CloseIdleConnections.
func (l *leading) CloseIdleConnections() { l.base.CloseIdleConnections() }

// Up listens again on the same address after Down.
func (s *Server) Up() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.srv != nil || s.closed {
		return nil
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", s.addr)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", s.addr, err)
	}
	s.addr = l.Addr().String()
	srv := &http.Server{Handler: s, ReadHeaderTimeout: 30 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	s.srv = srv
	go func() { _ = srv.Serve(l) }() // returns ErrServerClosed after Down or Close
	return nil
}

// Down stops listening and cuts every connection: clients get "connection refused" until Up.
func (s *Server) Down() {
	s.mu.Lock()
	srv := s.srv
	s.srv = nil
	s.mu.Unlock()
	if srv != nil {
		_ = srv.Close() // cutting is the purpose
	}
	s.Cut() // websockets were taken over from the HTTP server, which does not know them any more
}

// Cut drops every websocket, without a goodbye, and keeps listening. It returns when the server has forgotten them.
func (s *Server) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.cancel()
		s.forget(c)
	}
}

// Close ends the server and waits for what runs in it.
func (s *Server) Close() {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		<-s.idle
		return
	}
	s.closed = true
	close(s.done)
	if s.active == 0 {
		close(s.idle)
	}
	s.mu.Unlock()
	s.Down()
	<-s.idle
}

func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.active++
	return true
}

func (s *Server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active--
	if s.closed && s.active == 0 {
		close(s.idle)
	}
}

// ServeHTTP serves the chat websocket and the media.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		panic(http.ErrAbortHandler)
	}
	defer s.leave()
	if !s.thawed(r.Context()) {
		panic(http.ErrAbortHandler)
	}
	switch {
	case r.URL.Path == "/ws/chat":
		s.serveChat(w, r)
	case r.Method == http.MethodPost && strings.HasPrefix(r.URL.Path, "/mms/"):
		s.serveUpload(w, r)
	case r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, mediaPrefix):
		s.serveDownload(w, r)
	default:
		s.complain("a request for %s %s", r.Method, r.URL.Path)
		http.NotFound(w, r)
	}
}

func (s *Server) join(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.srv == nil {
		return false
	}
	s.conns[c] = true
	s.changed()
	return true
}

func (s *Server) part(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(c)
}

// forget takes a connection off. Under the lock; a second time does nothing.
func (s *Server) forget(c *conn) {
	if !s.conns[c] {
		return
	}
	delete(s.conns, c)
	if d := c.device; d != nil && d.conn == c {
		d.conn, d.active, d.available = nil, false, false
	}
	if c.pairing != nil {
		c.pairing.drop(s)
	}
	s.changed()
}

// outgoing gives what is to be written now; ending says that the connection is to be closed after it.
func (s *Server) outgoing(c *conn) (frames [][]byte, ending bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.faults.frozen != nil {
		return nil, false
	}
	frames, c.out = c.out, nil
	return frames, c.ending
}

// now is the fake's clock, in the network's precision. Under the lock.
func (s *Server) now() time.Time { return s.opts.Now().Add(s.shift) }

// Advance moves the fake's clock.
func (s *Server) Advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shift += d
	s.expire()
	s.changed()
}

func (s *Server) complain(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.complainLocked(format, args...)
}

func (s *Server) complainLocked(format string, args ...any) {
	s.complaints = append(s.complaints, fmt.Sprintf(format, args...))
	s.changed()
}

// Complaints are all that a client did which the network or a phone would not have taken. A good client leaves none.
func (s *Server) Complaints() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.complaints...)
}

// changed wakes who waits. Under the lock.
func (s *Server) changed() {
	close(s.change)
	s.change = make(chan struct{})
}

// Wait blocks until cond, which reads the fake's views, holds, or ctx ends.
func (s *Server) Wait(ctx context.Context, cond func() bool) error {
	for {
		s.mu.Lock()
		change := s.change
		s.mu.Unlock()
		if cond() {
			return nil
		}
		select {
		case <-change:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// receive takes one stanza of a client.
func (s *Server) receive(c *conn, n *waBinary.Node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.conns[c] || c.ending || s.faults.frozen != nil {
		return
	}
	defer s.changed()
	switch n.Tag {
	case "iq":
		s.takeIQ(c, n)
		return
	case "message", "receipt", "presence", "chatstate":
		if c.device == nil {
			s.complainLocked("<%s> before login", n.Tag)
			return
		}
	}
	switch n.Tag {
	case "message":
		s.takeMessage(c, n)
	case "receipt":
		s.takeReceipt(c, n)
	case "ack":
		if c.device != nil { // while pairing, notifications are acknowledged too
			s.takeAck(c, n)
		}
	case "presence":
		s.takePresence(c, n)
	case "chatstate":
		s.takeChatState(c, n)
	default:
		s.complainLocked("an unknown stanza <%s>", n.Tag)
	}
}

// message is one message of a chat, as its writer wrote it.
type message struct {
	chat   types.JID // of a DM: the phone number of the person, whoever wrote
	id     string
	from   *person
	at     time.Time
	body   *waE2E.Message
	device uint16 // of the writer
}
