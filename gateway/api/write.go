package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"parley/gateway/control"
	"parley/workspace"
)

// safe says whether a method changes nothing.
func safe(method string) bool { return method == http.MethodGet || method == http.MethodHead }

// unkept are writes whose answer is not kept: they look after repeats themselves, change nothing, or answer with a secret. Their key
// belongs to them all the same.
func unkept(pattern string) bool {
	switch pattern {
	case filesPattern, "POST /v1/backup", "POST /v1/routes/explain", "POST /v1/agents/{id}/policy/explain", "POST /v1/sign-in", "POST /v1/sign-in/codes", "POST /v1/sign-out", "POST /v1/channels/{name}/login":
		return true
	}
	return false
}

// serve is a route with what all of them have in common: how often one may write, that a write with a key happens
// once, and that HEAD has no body and no end to wait for.
func (s *server) serve(rt route, w http.ResponseWriter, r *http.Request) error {
	if r.Method == http.MethodHead {
		return s.head(rt, w, r)
	}
	if safe(r.Method) {
		return rt.serve(s, w, r)
	}
	who := "address"
	if !rt.open {
		who = string(s.call(r).Actor.Person)
	}
	if err := s.pace.take(who+" "+normalised(r.RemoteAddr)+" "+wayOf(r), s.opt.Writes()); err != nil {
		return err
	}
	key, err := idempotencyKey(r)
	if err != nil {
		return err
	}
	if !rt.open && rt.pattern != filesPattern {
		leave, err := s.bodies.room(r.Context(), true, size(r, maxBody))
		if err != nil {
			return err
		}
		defer leave()
		r = r.WithContext(context.WithValue(r.Context(), bodyKey{}, leave))
	}
	if key == "" || rt.open || rt.pattern == messagesPattern { // a message is journalled under its key
		return rt.serve(s, w, r)
	}
	return s.once(rt, w, r, key)
}

const (
	messagesPattern = "POST /v1/messages"
	filesPattern    = "POST /v1/files"
	clearPattern    = "DELETE /v1/sessions/{key}/files"
)

// wayOf keeps a program that runs wild from stopping the page of the same person.
func wayOf(r *http.Request) string {
	if r.Header.Get("Authorization") != "" {
		return "token"
	}
	return "page"
}

// idempotencyKey is the client's name for a write; empty: it has none.
func idempotencyKey(r *http.Request) (string, error) {
	keys := r.Header.Values("Idempotency-Key")
	switch {
	case len(keys) > 1:
		return "", fault(http.StatusBadRequest, "invalid", "Send one Idempotency-Key.")
	case len(keys) == 0:
		return "", nil
	case len(keys[0]) > control.MaxKey:
		return "", fault(http.StatusBadRequest, "invalid", "The Idempotency-Key is longer than 200 bytes.")
	}
	return keys[0], nil
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

func (s *server) head(rt route, w http.ResponseWriter, r *http.Request) error {
	ctx, done := context.WithCancel(r.Context())
	defer done()
	err := rt.serve(s, headWriter{w, done}, r.WithContext(ctx))
	if ctx.Err() != nil { // the answer is out
		return nil
	}
	return err
}

// once does a write that has a key, or gives the answer of the first time again. The answer is stored behind the act:
// after a crash in between a repeat acts again, which every verb bears since it begins with a compare-and-set.
func (s *server) once(rt route, w http.ResponseWriter, r *http.Request, key string) error {
	call := s.call(r)
	hash, err := requestHash(rt, w, r)
	if err != nil {
		return err
	}
	leave, err := s.turns.enter(r.Context(), turnOf(call, key))
	if err != nil {
		return err
	}
	defer leave()
	was, err := s.opt.Control.AnswerOf(call, key)
	switch {
	case err == nil && was.Hash != hash:
		return fault(http.StatusConflict, "idempotency_conflict", "This idempotency key was used for another request.")
	case err == nil && was.Status != 0:
		return again(w, was)
	case err != nil && !errors.Is(err, workspace.ErrNotFound):
		return err
	}
	if unkept(rt.pattern) {
		if err != nil {
			err = s.opt.Control.KeepAnswer(call, key, control.Answered{Hash: hash})
		}
		leave() // the key is bound: whoever comes with it acts by itself
		if err != nil && !errors.Is(err, workspace.ErrConflict) {
			return err
		}
		return rt.serve(s, w, r)
	}
	kept := &keptAnswer{header: w.Header()}
	status := http.StatusOK
	if err := rt.serve(s, kept, r); err != nil {
		p := problemOf(err)
		if status = p.Status; status >= http.StatusInternalServerError || status == http.StatusTooManyRequests {
			return err // another try may go better
		}
		s.fail(kept, r, err)
	}
	if kept.status != 0 {
		status = kept.status
	}
	answer := control.Answered{Hash: hash, Status: status, Body: kept.body.String()}
	if rt.pattern == clearPattern { // it is done, and answered, also while the store takes nothing
		s.opt.Control.KeepAnswerSoon(r.Context(), call, key, answer)
	} else if err := s.opt.Control.KeepAnswer(call, key, answer); err != nil && !errors.Is(err, workspace.ErrConflict) {
		return err
	}
	w.WriteHeader(status)
	_, _ = w.Write(kept.body.Bytes()) // a client that left needs no answer
	return nil
}

// requestHash is of all that a request asks for: method, path with its query, and body. A file is known by its reference instead of
// its bytes. The body can be read again.
func requestHash(rt route, w http.ResponseWriter, r *http.Request) (string, error) {
	h := sha256.New()
	h.Write([]byte(r.Method + " " + r.URL.RequestURI() + "\n"))
	if rt.pattern == filesPattern {
		return hex.EncodeToString(h.Sum(nil)), nil
	}
	body, err := readBody(w, r)
	if err != nil {
		return "", err
	}
	h.Write(body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	return hex.EncodeToString(h.Sum(nil)), nil
}

// turnOf names a key among those of all people.
func turnOf(call control.Call, key string) string { return string(call.Actor.Person) + "\x00" + key }

// again is the first answer once more.
func again(w http.ResponseWriter, was control.Answered) error {
	switch {
	case was.Status >= http.StatusBadRequest:
		w.Header().Set("Content-Type", "application/problem+json")
	case was.Body != "":
		w.Header().Set("Content-Type", "application/json")
	}
	w.Header().Set("Idempotency-Replayed", "true")
	w.WriteHeader(was.Status)
	_, _ = io.WriteString(w, was.Body) // a client that left needs no answer
	return nil
}

// keptAnswer holds an answer back until it is stored.
type keptAnswer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (k *keptAnswer) Header() http.Header { return k.header }

func (k *keptAnswer) WriteHeader(status int) {
	if k.status == 0 {
		k.status = status
	}
}

func (k *keptAnswer) Write(p []byte) (int, error) { return k.body.Write(p) }

// turns lets one request of a key in at a time. Its zero value is ready.
type turns struct {
	mu   sync.Mutex
	busy map[string]chan struct{}
}

func (t *turns) enter(ctx context.Context, key string) (leave func(), err error) {
	for {
		t.mu.Lock()
		before, taken := t.busy[key]
		if !taken {
			if t.busy == nil {
				t.busy = map[string]chan struct{}{}
			}
			mine := make(chan struct{})
			t.busy[key] = mine
			t.mu.Unlock()
			return sync.OnceFunc(func() {
				t.mu.Lock()
				defer t.mu.Unlock()
				delete(t.busy, key)
				close(mine)
			}), nil
		}
		t.mu.Unlock()
		select {
		case <-before:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// pace is how often one may write: so often a second, and for a while twenty times that.
type pace struct {
	now func() time.Time

	mu  sync.Mutex
	all map[string]*rate.Limiter
}

const paceBurst = 20

// take refuses a write that comes too soon; perSecond 0: none does.
func (p *pace) take(who string, perSecond int) error {
	if perSecond <= 0 {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	one := p.all[who]
	if one == nil {
		for old, l := range p.all {
			if len(p.all) < maxAddresses {
				break
			}
			if l.TokensAt(now) >= float64(l.Burst()) {
				delete(p.all, old)
			}
		}
		one = rate.NewLimiter(rate.Limit(perSecond), perSecond*paceBurst)
		if len(p.all) < maxAddresses {
			p.all[who] = one
		}
	}
	if one.Limit() != rate.Limit(perSecond) { // a reload
		one.SetLimitAt(now, rate.Limit(perSecond))
		one.SetBurstAt(now, perSecond*paceBurst)
	}
	if one.AllowN(now, 1) {
		return nil
	}
	f := fault(http.StatusTooManyRequests, "rate_limited", "That is too much at once. Wait a second.")
	f.after = 1
	return f
}

// tooLarge says that a body or a text is longer than is taken.
func tooLarge() error {
	return fault(http.StatusRequestEntityTooLarge, "too_large", "The body is longer than 1048576 bytes.")
}
