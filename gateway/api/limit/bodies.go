package limit

import (
	"context"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"parley/gateway/api/wire"
)

// Bytes of requests' bodies that are in memory at once: of those who were let in, and of everybody else.
const (
	bodiesKnown     = 32 << 20
	bodiesStrangers = 8 << 20
)

// Bodies bounds them.
type Bodies struct{ known, strangers *semaphore.Weighted }

func newBodies() *Bodies {
	return &Bodies{semaphore.NewWeighted(bodiesKnown), semaphore.NewWeighted(bodiesStrangers)}
}

// size is how much a request's body may come to, at most a limit.
func size(r *http.Request, most int64) int64 {
	if r.ContentLength < 0 || r.ContentLength > most {
		return most
	}
	return r.ContentLength
}

// Reserve waits a little for room for the body of a request, of at most so many bytes; known says that who sends it was let in.
func (b *Bodies) Reserve(r *http.Request, known bool, most int64) (leave func(), err error) {
	sem, bytes := b.strangers, size(r, most)
	if known {
		sem = b.known
	}
	ctx, cancel := context.WithTimeout(r.Context(), time.Second)
	defer cancel()
	if sem.Acquire(ctx, bytes) != nil {
		return nil, wire.Busy("Too many requests are coming in. Try again in a few seconds.")
	}
	return sync.OnceFunc(func() { sem.Release(bytes) }), nil
}

// bodyKey carries the end of what a request's body takes.
type bodyKey struct{}

// Holding is the request with what gives back the room of its body.
func Holding(r *http.Request, leave func()) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), bodyKey{}, leave))
}

// BodyDone gives back early what the body of a request takes, where the request goes on for long.
func BodyDone(r *http.Request) {
	if leave, ok := r.Context().Value(bodyKey{}).(func()); ok {
		leave()
	}
}
