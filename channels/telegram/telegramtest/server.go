// Package telegramtest is a fake of Telegram's Bot API over HTTP, for the adapter's tests, for tests of the whole
// daemon and for load drivers. It is written from https://core.telegram.org/bots/api and from what the public server
// answers, not from the adapter: it refuses what Telegram refuses, in Telegram's words.
//
// It is not a Telegram client and stores nothing on disk. MarkdownV2 and Markdown texts are taken unparsed; only HTML
// is checked.
//
// Goroutines: one HTTP server per Server, ended by Close, which also waits for handlers that hang in a long poll or a
// fault.
package telegramtest

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// DefaultToken is the token of a Server that was not given one.
const DefaultToken = "110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"

const shards = 64

// Options of a Server. The zero value is a bot @parley_test_bot with Telegram's published limits.
type Options struct {
	Token string
	Bot   User
	Addr  string           // to listen on; empty: a free port of 127.0.0.1
	Now   func() time.Time // for dates and limits; long polls wait in real time
	// NoLimits switches off every flood limit, for load.
	NoLimits bool
	Limits   Limits
	// Keep is how many messages each chat remembers; 0: all. Load drivers set it, else memory grows.
	Keep int
	// FirstUpdate is the id of the first update; 0: 871000001.
	FirstUpdate int64
	// Seed of the random faults.
	Seed uint64
	// LooseAmp takes a bare "&" in HTML, as the public server does. The documents forbid it, so by default it is refused.
	LooseAmp bool
	// OnSent is called for every message that was taken from the bot, inside its request: it must be quick.
	OnSent func(Message)
	// OnEdited is the same for edits.
	OnEdited func(Message)
}

// Server is the fake. All methods are safe for concurrent use.
type Server struct {
	opts    Options
	token   atomic.Pointer[string]
	revoked atomic.Bool
	methods map[string]*method
	chats   [shards]shard
	queue   *queue
	flood   *flood
	faults  faults
	watch   watchers
	bufs    sync.Pool

	files     files
	commands  commandStore
	callbacks callbackStore
	albums    atomic.Int64

	mu     sync.Mutex
	addr   string
	srv    *http.Server
	active int
	closed bool
	done   chan struct{} // closed by Close: everything that hangs lets go
	idle   chan struct{} // closed when closed and no handler is left
}

// New makes the fake and listens at once, like httptest.NewServer; it panics when it cannot.
func New(opts Options) *Server {
	if opts.Token == "" {
		opts.Token = DefaultToken
	}
	if opts.Bot.ID == 0 {
		opts.Bot = User{ID: 110201543, First: "Parley", Username: "parley_test_bot"}
	}
	opts.Bot.Bot = true
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.FirstUpdate == 0 {
		opts.FirstUpdate = 871000001
	}
	s := &Server{opts: opts, done: make(chan struct{}), idle: make(chan struct{}), addr: opts.Addr}
	s.token.Store(&opts.Token)
	s.queue = newQueue(opts.FirstUpdate, opts.Seed, &s.watch)
	s.flood = newFlood(opts)
	s.faults.rng = newRand(opts.Seed + 1)
	s.methods = methodTable()
	s.bufs.New = func() any { b := make([]byte, 0, 2048); return &b }
	if s.addr == "" {
		s.addr = "127.0.0.1:0"
	}
	if err := s.Up(); err != nil {
		panic(fmt.Sprintf("telegramtest: %v", err))
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

// URL is the base to give to a client as its api_url.
func (s *Server) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return "http://" + s.addr
}

// Token is the token that the server takes.
func (s *Server) Token() string { return *s.token.Load() }

// Bot is the bot's own user.
func (s *Server) Bot() User { return s.opts.Bot }

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
}

// Cut drops every connection and keeps listening.
func (s *Server) Cut() error {
	s.Down()
	return s.Up()
}

// Close ends the server and waits for its handlers.
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

// Revoke makes the token invalid, as BotFather's /revoke does: every call answers 401, also a poll that waits.
func (s *Server) Revoke() {
	s.revoked.Store(true)
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	s.queue.end(errUnauthorized)
}

// Restore takes the token again.
func (s *Server) Restore() { s.revoked.Store(false) }

// ServeHTTP answers /bot<token>/<method> and /file/bot<token>/<path>.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		panic(http.ErrAbortHandler)
	}
	defer s.leave()
	path := r.URL.Path
	if rest, ok := strings.CutPrefix(path, "/file/bot"); ok {
		s.serveFile(w, r, rest)
		return
	}
	rest, ok := strings.CutPrefix(path, "/bot")
	token, name, ok2 := strings.Cut(rest, "/")
	if !ok || !ok2 {
		s.writeError(w, errNotFound)
		return
	}
	if !s.authorized(token) {
		s.writeError(w, errUnauthorized)
		return
	}
	m := s.methods[name]
	if m == nil {
		m = s.methods[strings.ToLower(name)]
	}
	if m == nil {
		s.writeError(w, errNotFound)
		return
	}
	m.calls.Add(1)
	defer s.watch.changed()
	s.run(w, r, m)
}

func (s *Server) authorized(token string) bool {
	return token == *s.token.Load() && !s.revoked.Load()
}

func (s *Server) run(w http.ResponseWriter, r *http.Request, m *method) {
	f, hit := s.faults.take(m.name)
	if hit && !s.before(w, r, f) {
		return
	}
	buf := s.bufs.Get().(*[]byte)
	defer s.bufs.Put(buf)
	c := &call{s: s, ctx: r.Context(), out: append((*buf)[:0], `{"ok":true,"result":`...)}
	fail := c.read(r)
	if fail == nil {
		fail = m.run(c)
	}
	if fail == errGone {
		panic(http.ErrAbortHandler) // the client left during a long poll
	}
	if hit {
		s.after(w, f, c.out)
	}
	if fail != nil {
		s.writeError(w, fail)
		return
	}
	c.out = append(c.out, '}')
	*buf = c.out
	writeJSON(w, http.StatusOK, c.out)
}

// method is one call of the API.
type method struct {
	name  string
	run   func(*call) *apiError
	calls atomic.Int64
}

func methodTable() map[string]*method {
	all := map[string]func(*call) *apiError{
		"getMe": getMe, "getUpdates": getUpdates, "sendMessage": sendMessage, "editMessageText": editMessageText,
		"editMessageCaption": editMessageCaption, "editMessageReplyMarkup": editMessageReplyMarkup,
		"deleteMessage": deleteMessage, "sendChatAction": sendChatAction, "sendDocument": sendDocument,
		"sendPhoto": sendPhoto, "sendMediaGroup": sendMediaGroup, "answerCallbackQuery": answerCallbackQuery,
		"setMyCommands": setMyCommands, "getMyCommands": getMyCommands, "deleteMyCommands": deleteMyCommands,
		"getFile": getFile, "getWebhookInfo": getWebhookInfo, "setWebhook": setWebhook,
		"deleteWebhook": deleteWebhook, "setMessageReaction": setMessageReaction, "getChat": getChat,
	}
	table := make(map[string]*method, 2*len(all))
	for name, run := range all {
		m := &method{name: name, run: run}
		table[name] = m
		table[strings.ToLower(name)] = m // Telegram ignores the case of method names
	}
	return table
}
