// Package api is the gateway over HTTP: it parses a request, calls the verb in package control, and renders the
// answer as JSON, or as server-sent events. It decides nothing; who may do what is control's business, and all that is
// judged before is whether a request may speak at all (package signin), and whether there is room for it (package limit).
//
// Goroutines: none of its own; a stream lives in its request's and ends with it, or with Close.
package api

import (
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"parley/gateway/api/limit"
	"parley/gateway/api/once"
	"parley/gateway/api/signin"
	"parley/gateway/api/stream"
	"parley/gateway/control"
	"parley/gateway/control/all"
	"parley/gateway/live"
	"parley/workspace"
)

// Options of the API. All are needed but Metrics and Now.
type Options struct {
	Control  *all.Nouns
	Feed     *live.Feed
	SignIn   signin.Options                 // who gets in; Now and Log are those below
	Owner    func() workspace.Actor         // for whom the token speaks
	Page     http.Handler                   // what browsers get outside the API: the page and its files; nil: nothing
	Systems  Systems                        // of domains, which answer questions; nil: none does
	Live     LiveLine                       // the live line; nil: there is none
	Network  func(name string) http.Handler // a channel's own calls, which it authenticates, below /channels/<name>/; nil: it takes none
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
	Conns   *limit.Conns    // keeps the listener's connections within bounds
	Streams *stream.Streams // what goes over a live line
	Guard   *signin.Guard

	close func()
}

// Close ends streams, with a word to their readers, and has those who wait go on without the end. Twice is fine.
func (s *Server) Close() { s.close() }

// New makes the API and does no IO.
func New(o Options) *Server {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.SignIn.Now, o.SignIn.Log = o.Now, o.Log
	closing := make(chan struct{})
	m := &middleware{guard: signin.New(o.SignIn), limits: limit.New(o.Now), keys: once.New(o.Control.Answers, o.Log),
		who: o.Owner, systems: o.Systems, writes: o.Writes, hide: o.Hide, log: o.Log}
	streams := stream.New(streamOptions(o, m.limits, closing))
	mux := http.NewServeMux()
	for _, rt := range table(groups(o, m, streams, closing)) {
		mux.Handle(rt.pattern, m.endpoint(rt))
	}
	mux.Handle("/channels/{name}/{rest...}", m.endpoint(route{traits: open | bare, serve: networks{o.Network, m.guard, m.limits}.serve}))
	mux.Handle("/", pageOr(o.Page, m, mux))
	return &Server{Handler: mux, Conns: m.limits.Conns, Streams: streams, Guard: m.guard, close: sync.OnceFunc(func() { close(closing) })}
}
