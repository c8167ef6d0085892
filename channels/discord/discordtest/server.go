// Package discordtest is a fake of Discord: its REST API, its gateway over websocket and its CDN on one HTTP server, for
// the adapter's tests, for tests of the whole daemon and for load drivers. It is written from
// https://discord.com/developers/docs (versions 9 and 10), not from the adapter: it refuses what Discord refuses, in
// Discord's words and codes.
//
// It is no Discord client and stores nothing on disk. Voice, stickers, polls, webhooks of servers, audit logs and the
// permissions of roles are not played; a permission is refused where a test denies it (Deny).
//
// Goroutines: those of its stage.Host, two per gateway connection. Close ends them and waits for handlers that hang.
package discordtest

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"parley/channels/channeltest/stage"
)

// DefaultToken is the token of a Server that was not given one.
const DefaultToken = "MTE5ODYyMjQ4MzQ3MTkyNTI0OA.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs"

// Gateway intents, https://discord.com/developers/docs/events/gateway#list-of-intents.
const (
	IntentGuilds           = 1 << 0
	IntentMembers          = 1 << 1 // privileged
	IntentGuildMessages    = 1 << 9
	IntentGuildReactions   = 1 << 10
	IntentGuildTyping      = 1 << 11
	IntentDirectMessages   = 1 << 12
	IntentDirectReactions  = 1 << 13
	IntentDirectTyping     = 1 << 14
	IntentMessageContent   = 1 << 15 // privileged
	intentPresences        = 1 << 8  // privileged
	allIntents             = 1<<26 - 1
	flagMessageContent     = 1 << 18 // of an application: granted after verification
	flagMessageContentBeta = 1 << 19 // … or switched on by an app in fewer than 100 servers
)

// Options of a Server. The zero value is a bot with every privileged intent and Discord's published limits.
type Options struct {
	Token string
	Bot   User
	App   string // the application's id; empty: the bot's own id, as it is for newer applications
	Addr  string // to listen on; empty: a free port of 127.0.0.1
	Now   func() time.Time
	// NoContent and NoMembers switch a privileged intent off in the developer portal: who asks for it is closed with 4014.
	NoContent, NoMembers bool
	// NoLimits switches off rate limits and the limits of identifying.
	NoLimits bool
	// Heartbeat is the interval that Hello asks for; 0: 41.25 s.
	Heartbeat time.Duration
	// Starts is how many sessions may still be started today; 0: 1000. The next one costs the bot its token.
	Starts int
	// CDN is the base of attachment addresses; empty: the server's own.
	CDN string
	// Upload is the largest file in bytes; 0: 10 MiB.
	Upload int64
	// Seed of the random faults.
	Seed uint64
	// OnSent is called for every message that was taken from the bot, inside its request: it must be quick, and must not
	// call the Server.
	OnSent func(Message)
}

// Server is the fake. All methods are safe for concurrent use.
type Server struct {
	*stage.Host

	opts   Options
	routes []route
	faults *stage.Faults[Fault]
	watch  stage.Watch

	mu       sync.Mutex // of all below
	last     uint64     // the newest snowflake
	rng      *rand.Rand
	revoked  bool
	users    map[string]*User
	guilds   map[string]*Guild
	channels map[string]*channel
	files    map[string][]byte // by attachment id
	commands map[string][]obj  // by guild; "": global
	acts     map[string]*interaction
	buckets  map[string]*bucket
	calls    map[string]int
	gate     gate
}

// New makes the fake and listens at once, like httptest.NewServer; it panics when it cannot.
func New(opts Options) *Server {
	if opts.Token == "" {
		opts.Token = DefaultToken
	}
	if opts.Bot.ID == "" {
		opts.Bot = User{ID: "1198622483471925248", Name: "parley_test", Global: "Parley"}
	}
	opts.Bot.Bot = true
	if opts.App == "" {
		opts.App = opts.Bot.ID
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Heartbeat == 0 {
		opts.Heartbeat = 41250 * time.Millisecond
	}
	if opts.Starts == 0 {
		opts.Starts = 1000
	}
	if opts.Upload == 0 {
		opts.Upload = 10 << 20
	}
	s := &Server{opts: opts, rng: rand.New(rand.NewPCG(opts.Seed, 0x64697363)), users: map[string]*User{}, guilds: map[string]*Guild{},
		channels: map[string]*channel{}, files: map[string][]byte{}, commands: map[string][]obj{}, acts: map[string]*interaction{},
		buckets: map[string]*bucket{}, calls: map[string]int{}}
	s.Host = stage.New(opts.Addr, s.serve, s.DropAll)
	s.faults = stage.NewFaults[Fault](opts.Seed, s.Done())
	s.routes = table()
	s.gate = gate{sessions: map[string]*session{}, conns: map[*conn]bool{}, starts: opts.Starts}
	s.users[opts.Bot.ID] = &opts.Bot
	if err := s.Up(); err != nil {
		panic(fmt.Sprintf("discordtest: %v", err))
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

// URL is the REST base to give to a client as its api_url, such as http://127.0.0.1:4711/api/v10/.
func (s *Server) URL() string { return "http://" + s.Addr() + "/api/v10/" }

// Token is the token that the server takes, without "Bot ".
func (s *Server) Token() string { return s.opts.Token }

// Bot is the bot's own user; App is its application's id.
func (s *Server) Bot() User   { return s.opts.Bot }
func (s *Server) App() string { return s.opts.App }

// Transport is a RoundTripper that leads requests for Discord's own hosts to the fake: for clients whose addresses are
// constants.
func (s *Server) Transport(base http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		switch r.URL.Host {
		case "discord.com", "discordapp.com", "cdn.discordapp.com", "media.discordapp.net":
			r = r.Clone(r.Context())
			r.URL.Scheme, r.URL.Host, r.Host = "http", s.Addr(), ""
		}
		return base.RoundTrip(r)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Revoke makes the token invalid, as "Reset Token" in the portal does: REST answers 401, the gateway closes with 4004.
func (s *Server) Revoke() {
	s.mu.Lock()
	s.revoked = true
	s.gate.sessions = map[string]*session{}
	s.watch.Changed()
	s.mu.Unlock()
	s.CloseAll(closeAuth)
}

// Restore takes the token again.
func (s *Server) Restore() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revoked = false
}

// id is a new snowflake: milliseconds since 2015 and a counter (https://discord.com/developers/docs/reference#snowflakes).
// The caller holds s.mu.
func (s *Server) id() string {
	const epoch = 1420070400000
	n := uint64(s.opts.Now().UnixMilli()-epoch) << 22
	s.last = max(s.last+1, n)
	return fmt.Sprint(s.last)
}
