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
// Goroutines: those of its stage.Host, a reader and a writer for each websocket; Close waits for them.
package whatsapptest

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"parley/channels/channeltest/stage"

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
	*stage.Host // its URL is the address to which a client is led instead of web.whatsapp.com and the media hosts

	opts  Options
	auth  *authority
	watch stage.Watch

	mu         sync.Mutex    // guards all below
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
	s := &Server{
		opts: opts, people: map[string]*person{}, groups: map[types.JID]*room{}, companions: map[uint16]*companion{}, nextDevice: 1,
		conns: map[*conn]bool{}, pairings: map[string]*pairing{}, queries: map[string]int{}, faults: faults{retried: map[string]int{}},
	}
	s.Host = stage.New(opts.Addr, s.serve, s.Cut)
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

// Start is New for tests: the server is closed when the test ends.
func Start(t stage.TB, opts Options) *Server {
	t.Helper()
	s := New(opts)
	t.Cleanup(s.Close)
	return s
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
	r.URL.Host = l.s.Addr()
	return l.base.RoundTrip(r)
}

// CloseIdleConnections serves http.Client.CloseIdleConnections.
func (l *leading) CloseIdleConnections() { l.base.CloseIdleConnections() }

// Cut drops every websocket, without a goodbye, and keeps listening. It returns when the server has forgotten them.
func (s *Server) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.cancel()
		s.forget(c)
	}
}

// serve serves the chat websocket and the media.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
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
	if !s.Listening() {
		return false
	}
	s.conns[c] = true
	s.watch.Changed()
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
	s.watch.Changed()
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
	s.watch.Changed()
}

func (s *Server) complain(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.complainLocked(format, args...)
}

func (s *Server) complainLocked(format string, args ...any) {
	s.complaints = append(s.complaints, fmt.Sprintf(format, args...))
	s.watch.Changed()
}

// Complaints are all that a client did which the network or a phone would not have taken. A good client leaves none.
func (s *Server) Complaints() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.complaints...)
}

// Wait blocks until cond, which reads the fake's views, holds, or ctx ends.
func (s *Server) Wait(ctx context.Context, cond func() bool) error { return s.watch.Wait(ctx, cond) }

// receive takes one stanza of a client.
func (s *Server) receive(c *conn, n *waBinary.Node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.conns[c] || c.ending || s.faults.frozen != nil {
		return
	}
	defer s.watch.Changed()
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
	bare   bool
	list   string
}
