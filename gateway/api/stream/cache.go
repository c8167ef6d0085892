package stream

import (
	"sync"
	"time"

	"parley/gateway/control/session"
)

// sessionCache keeps each session as lists show it for a moment, so that all pages that are told of a change share one read. The
// feed drops what changed.
type sessionCache struct {
	mu    sync.Mutex
	items map[string]map[string]*sharedView // by session key and person
}

// sharedView is one session as one person sees it.
type sharedView struct {
	mu   sync.Mutex
	at   time.Time
	view session.Item
	err  error
}

const (
	sharedFor  = time.Second // unless the session changes
	sharedMost = 1000
)

// drop forgets a session.
func (c *sessionCache) drop(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.items, key)
}

// item reads a person's view of a session by read, or gives what another page has just read of it.
func (c *sessionCache) item(person, key string, now time.Time, read func() (session.Item, error)) (session.Item, error) {
	c.mu.Lock()
	one := c.items[key][person]
	fresh := one == nil || now.Sub(one.at) > sharedFor || now.Before(one.at)
	if fresh {
		if c.items == nil || len(c.items) >= sharedMost {
			c.items = map[string]map[string]*sharedView{}
		}
		if c.items[key] == nil {
			c.items[key] = map[string]*sharedView{}
		}
		one = &sharedView{at: now}
		c.items[key][person] = one
		one.mu.Lock() // who comes next waits for what is read here
	}
	c.mu.Unlock()
	if !fresh {
		one.mu.Lock()
	}
	defer one.mu.Unlock()
	if fresh || one.err != nil { // another page's trouble may be its own
		one.view, one.err = read()
	}
	return one.view, one.err
}
