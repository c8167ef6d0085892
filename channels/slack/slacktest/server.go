// Package slacktest is a fake of Slack for the adapter's tests, for tests of the whole daemon and for load drivers: the
// Web API, Socket Mode and the Events API over HTTP, with several workspaces. It is written from https://docs.slack.dev
// and from what the public servers answer, not from the adapter: it refuses what Slack refuses, in Slack's words.
//
// It is not a Slack client and stores nothing on disk. It knows no Enterprise Grid, no canvases, lists or workflows, and
// it renders nothing: a message keeps the text, Markdown and blocks that it was given.
//
// Goroutines: those of its stage.Host, one more per socket, one that posts to the request URL, and timers for what was not
// acknowledged. Close ends them all and waits.
package slacktest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"parley/channels/channeltest/stage"
)

// Options of a Server. The zero value is one workspace with Slack's published limits.
type Options struct {
	Addr string           // to listen on; empty: a free port of 127.0.0.1
	Now  func() time.Time // for timestamps and limits; retries and pings wait in real time
	// Teams are the workspaces where the app is installed; none: one with DefaultTeam's values. Empty fields are filled.
	Teams []Team
	// NoLimits switches off every rate limit, for load.
	NoLimits bool
	// Keep is how many messages each channel remembers; 0: all. Load drivers set it, else memory grows.
	Keep int
	// PingEvery is how often a socket is pinged; 0: 2 s.
	PingEvery time.Duration
	// AckWithin is how long an event may wait for its acknowledgement; 0: 3 s
	// (https://docs.slack.dev/apis/events-api/#responding).
	AckWithin time.Duration
	// Retries are the waits before each further attempt of an event; nil: at once, 1 and 5 minutes
	// (https://docs.slack.dev/apis/events-api/#retries). After the last one the event is lost.
	Retries []time.Duration
	// Events are the bot events that the app subscribed to; nil: all that the fake knows.
	Events []string
	// SlowShares is how many calls of files.info are answered before a shared file tells where it was shared: Slack
	// shares in the background.
	SlowShares int
	// EditWindow is after how long a message cannot be updated any more (a workspace's setting); 0: never.
	EditWindow time.Duration
	// NoMarkdown is a Web API from before 2025: it knows neither markdown_text nor markdown blocks.
	NoMarkdown bool
	// HangUp has every socket closed behind its hello, as Slack's servers do in trouble: refresh_requested.
	HangUp bool
	// Seed of everything that is left to chance.
	Seed uint64
	// OnPosted is called for every message that was taken from the bot, inside its request: it must be quick.
	OnPosted func(Message)
	// OnEdited is the same for edits and appended text.
	OnEdited func(Message)
}

// Server is the fake. All methods are safe for concurrent use.
type Server struct {
	*stage.Host

	opts    Options
	methods map[string]*method
	faults  *stage.Faults[Fault]
	watch   stage.Watch
	limits  *limits

	mu       sync.Mutex // guards all below
	rng      *rand.Rand
	teams    []*Team
	app      App
	users    map[string]*User
	chans    map[string]*Channel
	files    map[string]*File
	urls     map[string]*responseURL
	tickets  map[string]*ticket
	links    map[string]bool // socket addresses that were given out and not used
	socketN  int
	lastTS   int64
	ids      int
	sockets  []*socket
	events   deliveries
	statuses []Status
	frozen   bool
	pings    int // that sockets have had
	post     poster

	stop func() // ends the posting loop
	work sync.WaitGroup
}

// New makes the fake and listens at once, like httptest.NewServer; it panics when it cannot.
func New(opts Options) *Server {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.PingEvery == 0 {
		opts.PingEvery = 2 * time.Second
	}
	if opts.AckWithin == 0 {
		opts.AckWithin = 3 * time.Second
	}
	if opts.Retries == nil {
		opts.Retries = []time.Duration{0, time.Minute, 5 * time.Minute}
	}
	s := &Server{
		opts: opts, rng: stage.Rand(opts.Seed), app: defaultApp(), methods: methodTable(),
		users: map[string]*User{}, chans: map[string]*Channel{}, files: map[string]*File{}, urls: map[string]*responseURL{},
		tickets: map[string]*ticket{}, links: map[string]bool{},
	}
	s.Host = stage.New(opts.Addr, s.serve, s.CutSockets)
	s.limits = newLimits(opts)
	s.faults = stage.NewFaults[Fault](opts.Seed+1, s.Done())
	s.events.all = map[string]*Delivery{}
	s.post.wake = make(chan struct{}, 1)
	if len(opts.Teams) == 0 {
		opts.Teams = []Team{{}}
	}
	for _, t := range opts.Teams {
		s.install(t)
	}
	if err := s.Up(); err != nil {
		panic(fmt.Sprintf("slacktest: %v", err))
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	s.work.Go(func() { s.postLoop(ctx) })
	return s
}

// Start is New for tests: the server is closed when the test ends.
func Start(t stage.TB, opts Options) *Server {
	t.Helper()
	s := New(opts)
	t.Cleanup(s.Close)
	return s
}

// APIURL is the base to give to a client as its api_url.
func (s *Server) APIURL() string { return s.URL() + "/api/" }

// Close ends the server and waits for everything it started.
func (s *Server) Close() {
	s.stop()
	s.Host.Close()
	s.mu.Lock()
	for _, d := range s.events.all { // no timer is set any more
		d.stopTimers()
	}
	s.mu.Unlock()
	s.work.Wait()
}

// closed says that Close has begun: nothing is offered any more.
func (s *Server) closed() bool {
	select {
	case <-s.Done():
		return true
	default:
		return false
	}
}

// serve answers the Web API, sockets, files, uploads and response URLs.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	defer s.watch.Changed()
	path := r.URL.Path
	switch {
	case strings.HasPrefix(path, "/api/"):
		s.serveMethod(w, r, strings.TrimPrefix(path, "/api/"))
	case strings.HasPrefix(path, "/link/"):
		s.serveSocket(w, r)
	case strings.HasPrefix(path, "/files-pri/"):
		s.serveFile(w, r)
	case strings.HasPrefix(path, "/upload/"):
		s.serveUpload(w, r)
	case strings.HasPrefix(path, "/actions/"), strings.HasPrefix(path, "/commands/"):
		s.serveResponse(w, r)
	default:
		http.NotFound(w, r)
	}
}

// method is one call of the Web API.
type method struct {
	name   string
	run    func(*call) (reply, *failure)
	scopes []string // one of them is needed; nil: none
	app    bool     // wants the app-level token
	tier   int      // calls a minute in one workspace; 0: not limited here
	calls  int64
}

func methodTable() map[string]*method {
	const tier2, tier3, tier4 = 20, 50, 100
	write := []string{"chat:write"}
	history := []string{"channels:history", "groups:history", "im:history", "mpim:history"}
	read := []string{"channels:read", "groups:read", "im:read", "mpim:read"}
	all := []method{
		{name: "api.test", run: apiTest},
		{name: "auth.test", run: authTest},
		{name: "apps.connections.open", run: connectionsOpen, app: true},
		{name: "chat.postMessage", run: postMessage, scopes: write},
		{name: "chat.postEphemeral", run: postEphemeral, scopes: write, tier: tier4},
		{name: "chat.update", run: updateMessage, scopes: write, tier: tier3},
		{name: "chat.delete", run: deleteMessage, scopes: write, tier: tier3},
		{name: "chat.startStream", run: startStream, scopes: write, tier: tier2},
		{name: "chat.appendStream", run: appendStream, scopes: write, tier: tier4},
		{name: "chat.stopStream", run: stopStream, scopes: write, tier: tier2},
		{name: "chat.getPermalink", run: permalink},
		{name: "conversations.history", run: conversationHistory, scopes: history, tier: tier3},
		{name: "conversations.replies", run: replies, scopes: history, tier: tier3},
		{name: "conversations.info", run: conversationInfo, scopes: read, tier: tier3},
		{name: "conversations.open", run: conversationOpen, scopes: []string{"im:write", "mpim:write"}, tier: tier3},
		{name: "conversations.list", run: conversationList, scopes: read, tier: tier2},
		{name: "conversations.members", run: conversationMembers, scopes: read, tier: tier4},
		{name: "users.conversations", run: conversationList, scopes: read, tier: tier3},
		{name: "users.info", run: usersInfo, scopes: []string{"users:read"}, tier: tier4},
		{name: "bots.info", run: botsInfo, scopes: []string{"users:read"}, tier: tier3},
		{name: "team.info", run: teamInfo, scopes: []string{"team:read"}, tier: tier3},
		{name: "reactions.add", run: reactionAdd, scopes: []string{"reactions:write"}, tier: tier3},
		{name: "reactions.remove", run: reactionRemove, scopes: []string{"reactions:write"}, tier: tier2},
		{name: "files.info", run: fileInfo, scopes: []string{"files:read"}, tier: tier4},
		{name: "files.delete", run: fileDelete, scopes: []string{"files:write"}, tier: tier3},
		{name: "files.getUploadURLExternal", run: uploadURL, scopes: []string{"files:write"}, tier: tier4},
		{name: "files.completeUploadExternal", run: uploadComplete, scopes: []string{"files:write"}, tier: tier4},
		{name: "assistant.threads.setStatus", run: setStatus, scopes: []string{"assistant:write", "chat:write"}, tier: 600},
	}
	table := make(map[string]*method, len(all))
	for _, m := range all {
		table[m.name] = &m
	}
	return table
}
