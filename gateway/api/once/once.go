// Package once has a write that carries an Idempotency-Key happen once: whoever comes again with the key is given the first answer,
// and whoever comes with it for something else is refused.
//
// It starts no goroutine.
package once

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync"

	"parley/gateway/api/wire"
	"parley/gateway/control"
	"parley/workspace"
)

// Answers keeps what writes were answered. *control.Answers does.
type Answers interface {
	// Of finds what the caller's key was answered; workspace.ErrNotFound: it is new.
	Of(call control.Call, key string) (control.Answered, error)
	// Keep returns after the commit; workspace.ErrConflict: the key has an answer.
	Keep(call control.Call, key string, a control.Answered) error
	// KeepSoon keeps it when the store takes it.
	KeepSoon(ctx context.Context, call control.Call, key string, a control.Answered)
}

// Keeping says what becomes of a write's answer.
type Keeping int

const (
	Kept Keeping = iota // it is stored before it is given
	Soon                // it is given at once, also while the store takes nothing
	Not                 // it is not kept: the write looks after repeats itself, changes nothing, or answers with a secret. The key is bound
)

// Write is a request with a key.
type Write struct {
	Call    control.Call
	Key     string
	Keeping Keeping
	Path    bool // it is known by its path: the body is a file
	Serve   func(http.ResponseWriter, *http.Request) error
}

// Keys lets one request of a key in at a time. Safe for concurrent use.
type Keys struct {
	answers Answers
	log     *slog.Logger

	mu   sync.Mutex
	busy map[string]chan struct{}
}

// New makes the keys of a server.
func New(answers Answers, log *slog.Logger) *Keys {
	return &Keys{answers: answers, log: log, busy: map[string]chan struct{}{}}
}

// Do does a write, or gives the answer of the first time again. The answer is stored behind the act: after a crash in between a
// repeat acts again, which every verb bears since it begins with a compare-and-set.
func (k *Keys) Do(w http.ResponseWriter, r *http.Request, q Write) error {
	hash, err := hashOf(w, r, q.Path)
	if err != nil {
		return err
	}
	leave, err := k.Enter(r.Context(), q.Call, q.Key)
	if err != nil {
		return err
	}
	defer leave()
	was, err := k.answers.Of(q.Call, q.Key)
	switch {
	case err == nil && was.Hash != hash:
		return wire.Fault(http.StatusConflict, "idempotency_conflict", "This idempotency key was used for another request.")
	case err == nil && was.Status != 0:
		return again(w, was)
	case err != nil && !errors.Is(err, workspace.ErrNotFound):
		return err
	}
	if q.Keeping == Not {
		if err != nil {
			err = k.answers.Keep(q.Call, q.Key, control.Answered{Hash: hash})
		}
		leave() // the key is bound: whoever comes with it acts by itself
		if err != nil && !errors.Is(err, workspace.ErrConflict) {
			return err
		}
		return q.Serve(w, r)
	}
	return k.first(w, r, q, hash)
}

// first does a write and keeps its answer, unless another try may go better.
func (k *Keys) first(w http.ResponseWriter, r *http.Request, q Write, hash string) error {
	kept := &keptAnswer{header: w.Header()}
	status := http.StatusOK
	if err := q.Serve(kept, r); err != nil {
		if status = wire.ProblemOf(err).Status; status >= http.StatusInternalServerError || status == http.StatusTooManyRequests {
			return err
		}
		wire.Fail(kept, r, err, k.log)
	}
	if kept.status != 0 {
		status = kept.status
	}
	answer := control.Answered{Hash: hash, Status: status, Body: kept.body.String()}
	if q.Keeping == Soon {
		k.answers.KeepSoon(r.Context(), q.Call, q.Key, answer)
	} else if err := k.answers.Keep(q.Call, q.Key, answer); err != nil && !errors.Is(err, workspace.ErrConflict) {
		return err
	}
	w.WriteHeader(status)
	_, _ = w.Write(kept.body.Bytes()) // a client that left needs no answer
	return nil
}

// Enter waits until nobody else is in with a person's key.
func (k *Keys) Enter(ctx context.Context, call control.Call, key string) (leave func(), err error) {
	name := string(call.Actor.Person) + "\x00" + key
	for {
		k.mu.Lock()
		before, taken := k.busy[name]
		if !taken {
			mine := make(chan struct{})
			k.busy[name] = mine
			k.mu.Unlock()
			return sync.OnceFunc(func() {
				k.mu.Lock()
				defer k.mu.Unlock()
				delete(k.busy, name)
				close(mine)
			}), nil
		}
		k.mu.Unlock()
		select {
		case <-before:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// KeyOf is the client's name for a write; empty: it has none.
func KeyOf(r *http.Request) (string, error) {
	keys := r.Header.Values("Idempotency-Key")
	switch {
	case len(keys) > 1:
		return "", wire.Invalid("Send one Idempotency-Key.")
	case len(keys) == 0:
		return "", nil
	case len(keys[0]) > control.MaxKey:
		return "", wire.Invalid("The Idempotency-Key is longer than 200 bytes.")
	}
	return keys[0], nil
}

// hashOf is of all that a request asks for: method, path with its query, and body. A file is known by its reference instead of
// its bytes. The body can be read again.
func hashOf(w http.ResponseWriter, r *http.Request, path bool) (string, error) {
	h := sha256.New()
	h.Write([]byte(r.Method + " " + r.URL.RequestURI() + "\n"))
	if path {
		return hex.EncodeToString(h.Sum(nil)), nil
	}
	body, err := wire.ReadBody(w, r)
	if err != nil {
		return "", err
	}
	h.Write(body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	return hex.EncodeToString(h.Sum(nil)), nil
}

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
