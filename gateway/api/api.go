// Package api is the gateway over HTTP: it parses a request, calls the verb in package control, and renders the
// answer as JSON, or as server-sent events. It decides nothing; who may do what is control's business, and all that is
// judged here is whether a request may speak at all: Host, Origin, token.
//
// Goroutines: none of its own; a stream lives in its request's and ends with it, or with Close.
package api

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"parley/channels"
	"parley/gateway/control"
	"parley/gateway/live"
	"parley/workspace"
)

// Options of the API. All are needed but Metrics and Now.
type Options struct {
	Control  *control.Control
	Feed     *live.Feed
	Token    func() string          // in force now; empty: nobody gets in
	Hosts    func() []string        // names beside loopback by which it may be reached
	Owner    func() workspace.Actor // for whom the token speaks
	Addr     string                 // where it listens, host:port
	TLS      bool                   // it speaks TLS itself
	Version  string
	Page     http.Handler                   // what browsers get outside the API: the page and its files; nil: nothing
	Systems  Systems                        // of domains, which answer questions; nil: none does
	Live     LiveLine                       // the live line; nil: there is none
	Ended    Ended                          // keeps sign-ins that were ended over a restart; nil: nothing does
	Network  func(name string) http.Handler // a channel's own calls, below /channels/<name>/; nil: it takes none. It authenticates by itself
	Ready    func() error                   // nil: messages are taken and can be answered; the error's text is shown
	Commands func(control.Call) []Command   // what the caller may type; nil: nothing
	Metrics  func(io.Writer)                // writes further metrics as Prometheus text
	Writes   func() int                     // how many one person may send from one place in a second; 0: as many as they like
	Hide     *workspace.Redactor            // takes secrets out of answers; nil: none are known
	Log      *slog.Logger
	Now      func() time.Time
}

// Server serves the API until Close ends its streams and waiters.
type Server struct {
	http.Handler
	s    *server
	once sync.Once
}

// Close ends streams, with a word to their readers, and has those who wait go on without the end. Twice is fine.
func (s *Server) Close() { s.once.Do(func() { close(s.s.closing) }) }

type server struct {
	opt     Options
	guard   *guard
	pace    pace
	turns   turns
	items   sessionCache
	closing chan struct{}
	counts  counts
	uploads chan struct{} // a place for each that comes in
	conns   *conns
	held    places // requests that are held open
	waits   places // messages that wait for their answer
	follows places // sessions that live lines follow
	bodies  bodies
}

type counts struct{ requests, refused, streams, slow atomic.Int64 }

// route is one endpoint. Open ones need no token.
type route struct {
	pattern string
	open    bool
	serve   func(*server, http.ResponseWriter, *http.Request) error
}

// routes are all endpoints.
func routes() []route { return append(ownRoutes(), verbRoutes()...) }

// ownRoutes are those that no verb's value describes: streams, uploads, sign-in, and verbs that are functions.
func ownRoutes() []route {
	return []route{
		{"GET /healthz", true, (*server).healthz},
		{"GET /readyz", false, (*server).readyz},
		{"GET /metrics", false, (*server).metrics},
		{"POST /v1/sign-in", true, (*server).signIn},
		{"POST /v1/sign-in/codes", false, (*server).newCode},
		{"POST /v1/sign-out", false, (*server).signOut},
		{"GET /v1/me", false, (*server).me},
		{"GET /v1/live", false, (*server).live},
		{"POST /v1/messages", false, (*server).postMessage},
		{"POST /v1/files", false, (*server).putFile},
		{"GET /v1/files/{ref}", false, (*server).getFile},
		{"GET /v1/runs/{id}", false, (*server).getRun},
		{"GET /v1/runs/{id}/events", false, (*server).runEvents},
		{"GET /v1/runs/{id}/log", false, (*server).runLog},
		{"GET /v1/runs/{id}/steps/{call}/output", false, (*server).runOutput},
		{"GET /v1/approvals", false, (*server).listApprovals},
		{"GET /v1/approvals/{id}", false, (*server).getApproval},
		{decidePattern, false, (*server).decideApproval},
		{"GET /v1/sessions/{key}/files", false, (*server).workFiles},
		{clearPattern, false, (*server).removeFile},
		{"GET /v1/sessions/{key}/entries", false, (*server).sessionEntries},
		{"GET /v1/sessions/{key}/events", false, (*server).sessionEvents},
		{"GET /v1/status", false, (*server).status},
		{"POST /v1/agents/{id}/policy/explain", false, (*server).explainPolicy},
		{"GET /v1/commands", false, (*server).listCommands},
		{"GET /v1/channels/{name}/login", false, (*server).loginStep},
		{"POST /v1/routes/explain", false, (*server).explainRoute},
		{"GET /v1/logs", false, (*server).logs},
		{"GET /v1/logs/events", false, (*server).logEvents},
		{"GET /openapi.json", false, (*server).openapi},
		{"POST /v1/backup", false, (*server).backup},
	}
}

// New makes the API and does no IO.
func New(o Options) *Server {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &server{opt: o, guard: newGuard(o), pace: pace{now: o.Now, all: map[string]*rate.Limiter{}}, closing: make(chan struct{}), uploads: make(chan struct{}, uploadsAtOnce),
		conns: newConns(), held: places{own: heldByPerson, all: heldByAll}, waits: places{own: waitsByAll, all: waitsByAll},
		follows: places{own: followsByPerson, all: followsByAll}, bodies: newBodies()}
	if o.Feed != nil {
		o.Feed.OnChange(s.items.drop)
	}
	mux := http.NewServeMux()
	for _, rt := range routes() {
		mux.Handle(rt.pattern, s.endpoint(rt))
	}
	nothing := s.endpoint(route{serve: func(_ *server, w http.ResponseWriter, r *http.Request) error { return missing(mux, w, r) }})
	mux.Handle("/channels/{name}/{rest...}", s.endpoint(route{open: true, serve: (*server).network}))
	mux.Handle("/", s.pageOr(nothing))
	return &Server{Handler: mux, s: s}
}

// pageOr serves the page, which is open, where a browser asks for it, and the rest by next.
func (s *server) pageOr(next http.Handler) http.Handler {
	page := s.endpoint(route{open: true, serve: func(s *server, w http.ResponseWriter, r *http.Request) error {
		s.opt.Page.ServeHTTP(w, r)
		return nil
	}})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.opt.Page != nil && forPage(r) {
			page.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// forPage says whether a request is for the page, its files, or one of its own addresses such as /sessions/….
func forPage(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch first {
	case "v1", "healthz", "readyz", "metrics", "mcp", "hooks", "debug", "openapi.json":
		return false
	case "channels": // below it are networks' own calls
		if r.URL.Path != "/channels" {
			return false
		}
	case "", "assets", "favicon.ico", "favicon.svg", "manifest.webmanifest", "robots.txt":
		return true
	}
	return strings.Contains(r.Header.Get("Accept"), "text/html")
}

// endpoint is what stands before every route.
func (s *server) endpoint(rt route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.counts.requests.Add(1)
		defer s.conns.serve(connOf(r))()
		if rt.hides() {
			w = hiding{w, s.opt.Hide}
		}
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		err := s.guard.place(r)
		if err == nil && !rt.open {
			if r, err = s.letIn(rt, r); err == nil {
				s.conns.know(connOf(r))
			}
		}
		if err != nil {
			s.counts.refused.Add(1)
			h.Set("Connection", "close") // what else it wants to send is not read
			s.fail(w, r, err)
			return
		}
		if err := s.serve(rt, w, r); err != nil && r.Context().Err() == nil {
			s.fail(w, r, err)
		}
	})
}

// network hands a network's own call to the channel, which checks its signature: no token is asked for here.
func (s *server) network(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	if s.opt.Network != nil {
		if h := s.opt.Network(name); h != nil {
			leave, err := s.bodies.room(r.Context(), false, size(r, maxBody))
			if err != nil { // somebody sends slowly: who comes last may be a network
				s.conns.shedServed()
				if leave, err = s.bodies.room(r.Context(), false, size(r, maxBody)); err != nil {
					return err
				}
			}
			defer leave()
			http.StripPrefix("/channels/"+name, h).ServeHTTP(w, r)
			return nil
		}
	}
	if err := s.guard.allow(r); err != nil { // strangers do not learn which channels there are
		return err
	}
	return fault(http.StatusNotFound, "not_found", "There is nothing at this path.")
}

// missing tells a path that is nothing here from a method that is wrong there.
func missing(mux *http.ServeMux, w http.ResponseWriter, r *http.Request) error {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := mux.Handler(other); pattern != "/" && pattern != "" {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) > 0 {
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		return fault(http.StatusMethodNotAllowed, "method", fmt.Sprintf("Use %s.", strings.Join(allowed, " or ")))
	}
	return fault(http.StatusNotFound, "not_found", "There is nothing at this path.")
}

// call is who asks: the token speaks for the owner.
func (s *server) call(r *http.Request) control.Call {
	via, borrowed := control.ViaAPI, false
	switch {
	case r.Header.Get("Authorization") == "":
		via, borrowed = control.ViaPage, !s.guard.door.fresh(r) // a page that is signed in
	case strings.EqualFold(r.Header.Get("Parley-Surface"), "cli"):
		via = control.ViaTerminal
	}
	return control.Call{Actor: s.opt.Owner(), Kind: channels.DM, Via: via, Key: r.Header.Get("Idempotency-Key"), Borrowed: borrowed}
}

func (s *server) healthz(w http.ResponseWriter, _ *http.Request) error {
	reply(w, http.StatusOK, control.Done{Status: "ok"})
	return nil
}

func (s *server) readyz(w http.ResponseWriter, _ *http.Request) error {
	if err := s.opt.Ready(); err != nil {
		p := fault(http.StatusServiceUnavailable, "not_ready", err.Error())
		p.after = 5
		return p
	}
	reply(w, http.StatusOK, control.Done{Status: "ready"})
	return nil
}

// Route is an endpoint as tests and documents see it.
type Route struct {
	Pattern string // method and path, as net/http writes them
	Open    bool   // needs no token
}

// Routes lists all endpoints.
func Routes() []Route {
	var list []Route
	for _, rt := range routes() {
		list = append(list, Route{rt.pattern, rt.open})
	}
	return list
}
