package api

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"

	"parley/channels"
	"parley/gateway/api/limit"
	"parley/gateway/api/once"
	"parley/gateway/api/signin"
	"parley/gateway/api/wire"
	"parley/gateway/control"
	"parley/workspace"
)

// middleware is what stands before every endpoint.
type middleware struct {
	guard   *signin.Guard
	limits  *limit.Limits
	keys    *once.Keys
	who     func() workspace.Actor // for whom the token speaks
	systems Systems
	writes  func() int
	hide    *workspace.Redactor
	log     *slog.Logger
	counts  counts
}

type counts struct{ requests, refused atomic.Int64 }

// endpoint is a route with what stands before it: who may not speak does not reach it.
func (m *middleware) endpoint(rt route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.counts.requests.Add(1)
		defer m.limits.Conns.Serve(r)()
		if !rt.traits.has(bare) {
			w = wire.Hide(w, m.hide)
		}
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		err := m.guard.CheckOrigin(r)
		if err == nil && !rt.traits.has(open) {
			if r, err = m.letIn(rt, r); err == nil {
				m.limits.Conns.Admit(r)
			}
		}
		if err != nil {
			m.counts.refused.Add(1)
			h.Set("Connection", "close") // what else it wants to send is not read
			wire.Fail(w, r, err, m.log)
			return
		}
		if err := m.serve(rt, w, r); err != nil && r.Context().Err() == nil {
			wire.Fail(w, r, err, m.log)
		}
	})
}

// letIn checks who asks. Only the answer to a question may come with that question's own token.
func (m *middleware) letIn(rt route, r *http.Request) (*http.Request, error) {
	if rt.traits.has(system) {
		if r, ok := bySystem(m.systems, r); ok {
			return r, nil
		}
	}
	return r, m.guard.Authenticate(r)
}

// serve is a route with what all of them have in common: how often one may write, that a write with a key happens
// once, and that HEAD has no body and no end to wait for.
func (m *middleware) serve(rt route, w http.ResponseWriter, r *http.Request) error {
	if r.Method == http.MethodHead {
		return head(rt, w, r)
	}
	if safe(r.Method) {
		return rt.serve(w, r)
	}
	who := "address"
	if !rt.traits.has(open) {
		who = string(m.call(r).Actor.Person)
	}
	if err := m.limits.Pace.Take(who+" "+limit.Address(r.RemoteAddr)+" "+wayOf(r), m.writes()); err != nil {
		return err
	}
	key, err := once.KeyOf(r)
	if err != nil {
		return err
	}
	if !rt.traits.has(open | upload) {
		leave, err := m.limits.Bodies.Reserve(r, true, wire.MaxBody)
		if err != nil {
			return err
		}
		defer leave()
		r = limit.Holding(r, leave)
	}
	if key == "" || rt.traits.has(open|journaled) {
		return rt.serve(w, r)
	}
	return m.keys.Do(w, r, once.Write{Call: m.call(r), Key: key, Keeping: rt.traits.keeping(), Path: rt.traits.has(upload),
		Serve: rt.serve})
}

// call is who asks: the token speaks for the owner.
func (m *middleware) call(r *http.Request) control.Call {
	via, borrowed := control.ViaAPI, false
	switch {
	case r.Header.Get("Authorization") == "":
		via, borrowed = control.ViaPage, !m.guard.Fresh(r) // a page that is signed in
	case strings.EqualFold(r.Header.Get("Parley-Surface"), "cli"):
		via = control.ViaTerminal
	}
	return control.Call{Actor: m.who(), Kind: channels.DM, Via: via, Key: r.Header.Get("Idempotency-Key"), Borrowed: borrowed}
}

// wayOf keeps a program that runs wild from stopping the page of the same person.
func wayOf(r *http.Request) string {
	if r.Header.Get("Authorization") != "" {
		return "token"
	}
	return "page"
}

// headWriter ends the request's work when its headers are out: a stream would go on for nobody.
type headWriter struct {
	http.ResponseWriter
	done context.CancelFunc
}

func (h headWriter) WriteHeader(status int) {
	h.ResponseWriter.WriteHeader(status)
	h.done()
}

func (h headWriter) Unwrap() http.ResponseWriter { return h.ResponseWriter }

func head(rt route, w http.ResponseWriter, r *http.Request) error {
	ctx, done := context.WithCancel(r.Context())
	defer done()
	err := rt.serve(headWriter{w, done}, r.WithContext(ctx))
	if ctx.Err() != nil { // the answer is out
		return nil
	}
	return err
}
