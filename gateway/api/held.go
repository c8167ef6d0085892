package api

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"parley/workspace"
)

// How many requests may be held open at once, whatever for: event streams, live lines, logs that are followed, steps that are waited for.
// Each costs up to 100 KiB.
const (
	heldByPerson = 256
	heldByAll    = 512
	// Messages that wait for their answer have a count of their own: what is beyond it is journalled and not waited for.
	waitsByAll = 1024
	// Sessions that live lines follow.
	followsByPerson = 1024
	followsByAll    = 2048
)

// places are how many of something there may be, of one person and in all. Safe for concurrent use.
type places struct {
	own, all int

	mu   sync.Mutex
	sum  int
	each map[workspace.PersonID]int
}

// take takes a place; leave must follow, and may twice. False: there is none.
func (p *places) take(who workspace.PersonID) (leave func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sum >= p.all || p.each[who] >= p.own {
		return nil, false
	}
	if p.each == nil {
		p.each = map[workspace.PersonID]int{}
	}
	p.sum++
	p.each[who]++
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.sum--
		if p.each[who]--; p.each[who] == 0 {
			delete(p.each, who)
		}
	}), true
}

func (p *places) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sum
}

// hold takes a place for a request that is held open.
func (s *server) hold(who workspace.PersonID) (leave func(), err error) {
	leave, ok := s.held.take(who)
	if !ok {
		return nil, tooMany(fmt.Sprintf("Too many streams and pages are open: %d of one person, %d in all. Close some.", heldByPerson, heldByAll))
	}
	return leave, nil
}

func tooMany(words string) error {
	p := fault(http.StatusServiceUnavailable, "busy", words)
	p.after = 5
	return p
}

// Bytes of requests' bodies that are in memory at once: of those who were let in, and of everybody else.
const (
	bodiesKnown     = 32 << 20
	bodiesStrangers = 8 << 20
	maxOpenBody     = 4 << 10 // of a sign-in
)

// bodies bounds them.
type bodies struct{ known, strangers *semaphore.Weighted }

func newBodies() bodies {
	return bodies{semaphore.NewWeighted(bodiesKnown), semaphore.NewWeighted(bodiesStrangers)}
}

// size is how much a request's body may come to, at most a limit.
func size(r *http.Request, most int64) int64 {
	if r.ContentLength < 0 || r.ContentLength > most {
		return most
	}
	return r.ContentLength
}

// room waits a little for room for a body of at most so many bytes.
func (b bodies) room(ctx context.Context, known bool, bytes int64) (leave func(), err error) {
	sem := b.strangers
	if known {
		sem = b.known
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if sem.Acquire(ctx, bytes) != nil {
		return nil, tooMany("Too many requests are coming in. Try again in a few seconds.")
	}
	return sync.OnceFunc(func() { sem.Release(bytes) }), nil
}

// bodyKey carries the end of what a request's body takes.
type bodyKey struct{}

// bodyDone gives back early what the body of a request takes, where the request goes on for long.
func bodyDone(r *http.Request) {
	if leave, ok := r.Context().Value(bodyKey{}).(func()); ok {
		leave()
	}
}
