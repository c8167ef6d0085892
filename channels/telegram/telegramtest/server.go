// Package telegramtest is a fake of Telegram's Bot API over HTTP, for the adapter's tests, for tests of the whole
// daemon and for load drivers. It is written from https://core.telegram.org/bots/api and from what the public server
// answers, not from the adapter: it refuses what Telegram refuses, in Telegram's words.
//
// It is not a Telegram client and stores nothing on disk. MarkdownV2 and Markdown texts are taken unparsed; only HTML
// is checked.
//
// Goroutines: those of its stage.Host, ended by Close, which also waits for handlers that hang in a long poll or a fault.
package telegramtest

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley/channels/channeltest/stage"
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
	*stage.Host // its URL is the base to give to a client as its api_url

	opts    Options
	token   atomic.Pointer[string]
	revoked atomic.Bool
	methods map[string]*method
	chats   [shards]shard
	queue   *queue
	flood   *flood
	faults  *stage.Faults[Fault]
	watch   stage.Watch
	bufs    sync.Pool

	files     files
	commands  commandStore
	callbacks callbackStore
	albums    atomic.Int64
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
	s := &Server{opts: opts}
	s.Host = stage.New(opts.Addr, s.serve, nil)
	s.token.Store(&opts.Token)
	s.queue = newQueue(opts.FirstUpdate, opts.Seed, &s.watch)
	s.flood = newFlood(opts)
	s.faults = stage.NewFaults[Fault](opts.Seed+1, s.Done())
	s.methods = methodTable()
	s.bufs.New = func() any { b := make([]byte, 0, 2048); return &b }
	if err := s.Up(); err != nil {
		panic(fmt.Sprintf("telegramtest: %v", err))
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

// Token is the token that the server takes.
func (s *Server) Token() string { return *s.token.Load() }

// Bot is the bot's own user.
func (s *Server) Bot() User { return s.opts.Bot }

// Revoke makes the token invalid, as BotFather's /revoke does: every call answers 401, also a poll that waits.
func (s *Server) Revoke() {
	s.revoked.Store(true)
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	s.queue.end(errUnauthorized)
}

// Rotate has the server take another token in place of the one that it took: a poll that waits with that answers 401.
func (s *Server) Rotate(token string) {
	s.token.Store(&token)
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	s.queue.end(errUnauthorized)
}

// Restore takes the token again.
func (s *Server) Restore() { s.revoked.Store(false) }

// serve answers /bot<token>/<method> and /file/bot<token>/<path>.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
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
	defer s.watch.Changed()
	s.run(w, r, m)
}

func (s *Server) authorized(token string) bool {
	return token == *s.token.Load() && !s.revoked.Load()
}

func (s *Server) run(w http.ResponseWriter, r *http.Request, m *method) {
	buf := s.bufs.Get().(*[]byte)
	defer s.bufs.Put(buf)
	c := &call{s: s, ctx: r.Context(), out: append((*buf)[:0], `{"ok":true,"result":`...)}
	fail := c.read(r)
	hit := s.faults.TakeIn(c.get("chat_id"), m.name)
	if !hit.Before(r, func(f Fault) { s.answerFault(w, f) }) {
		return
	}
	if fail == nil {
		fail = m.run(c)
	}
	if fail == errGone {
		panic(http.ErrAbortHandler) // the client left during a long poll
	}
	hit.After(w, c.out)
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
