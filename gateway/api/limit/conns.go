package limit

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// How many connections there are at once. A stranger's is one that has carried no request that was let in: those are closed, the
// oldest that do nothing first, so that they never keep anybody else out. Each costs some 16 KiB.
const (
	maxStrangers   = 1024
	maxFromAddress = 512 // strangers' of one address, an IPv6 one by its /64
	maxKnown       = 2048
	strangerIdle   = 10 * time.Second       // that a stranger's connection may rest between requests
	strangerGrace  = 500 * time.Millisecond // that a request's header surely has, however many come
	strangerServed = time.Second            // that a stranger's request surely has, such as a network's call
	lookForRoom    = 10 * time.Millisecond
)

// Conns keeps the listener's connections within their bounds. Safe for concurrent use.
type Conns struct {
	idle time.Duration

	mu        sync.Mutex
	all       map[*conn]struct{}
	strangers int
	from      map[string]int // strangers by address
	shed      int64
	done      chan struct{} // closed with the listener
	once      sync.Once
}

func newConns() *Conns {
	return &Conns{idle: strangerIdle, all: map[*conn]struct{}{}, from: map[string]int{}, done: make(chan struct{})}
}

// conn is one connection. What stands below net.Conn is under conns.mu.
type conn struct {
	net.Conn
	of      *Conns
	addr    string
	known   bool
	serving int       // requests that are being answered
	resting bool      // between two requests
	since   time.Time // it rests, or waits for a header
	timer   *time.Timer
	gone    bool
}

// Close ends the connection and counts it out. Twice is fine.
func (c *conn) Close() error {
	c.of.mu.Lock()
	c.of.remove(c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// remove counts a connection out. The lock is held.
func (k *Conns) remove(c *conn) {
	if c.gone {
		return
	}
	c.gone = true
	delete(k.all, c)
	if c.timer != nil {
		c.timer.Stop()
	}
	if !c.known {
		k.strange(c, -1)
	}
}

func (k *Conns) strange(c *conn, n int) {
	k.strangers += n
	if k.from[c.addr] += n; k.from[c.addr] == 0 {
		delete(k.from, c.addr)
	}
}

// bounded is a listener whose connections are counted.
type bounded struct {
	net.Listener
	k *Conns
}

// Listen bounds the connections of the listener that the server is served on. ConnState and ConnContext belong to it.
func (k *Conns) Listen(l net.Listener) net.Listener { return &bounded{l, k} }

// ConnContext lets a request find its connection.
func (k *Conns) ConnContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, counted(c))
}

// ConnState follows what a connection does.
func (k *Conns) ConnState(c net.Conn, state http.ConnState) {
	if one := counted(c); one != nil {
		k.turn(one, state)
	}
}

type connKey struct{}

func connOf(r *http.Request) *conn {
	c, _ := r.Context().Value(connKey{}).(*conn)
	return c
}

// counted is the connection below TLS; nil for one that the listener did not make.
func counted(c net.Conn) *conn {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	one, _ := c.(*conn)
	return one
}

// Accept takes the next connection. While there is no room, and nothing rests that could make some, it waits: what has just come
// may turn out to be known.
func (b *bounded) Accept() (net.Conn, error) {
	c, err := b.Listener.Accept()
	if err != nil {
		return nil, err
	}
	one := &conn{Conn: c, of: b.k, addr: Address(c.RemoteAddr().String()), since: time.Now()}
	for !b.k.add(one) {
		select {
		case <-b.k.done:
			_ = c.Close() // nobody will serve it
			return nil, net.ErrClosed
		case <-time.After(lookForRoom):
		}
	}
	return one, nil
}

func (b *bounded) Close() error {
	b.k.once.Do(func() { close(b.k.done) })
	return b.Listener.Close()
}

// add counts a connection in if there is room, or some can be made.
func (k *Conns) add(c *conn) bool {
	k.mu.Lock()
	var victims []*conn
	room := func(full bool, fits func(*conn) bool) bool {
		if !full {
			return true
		}
		v := k.oldest(fits)
		if v != nil {
			k.remove(v)
			k.shed++
			victims = append(victims, v)
		}
		return v != nil
	}
	// An address beyond its share makes room of what rests; all else may still be somebody known whose header is on its way.
	room(k.from[c.addr] >= maxFromAddress, func(o *conn) bool { return o.addr == c.addr && o.resting })
	ok := room(k.strangers >= maxStrangers, func(*conn) bool { return true })
	if ok {
		k.all[c] = struct{}{}
		k.strange(c, 1)
	}
	k.mu.Unlock()
	for _, v := range victims {
		_ = v.Conn.Close() // its server reads the end of it
	}
	return ok
}

// oldest is the stranger's connection that is missed least: one that rests, else one that is late with its header, else one that has been
// served for longer than any stranger's request takes. The lock is held.
func (k *Conns) oldest(fits func(*conn) bool) (found *conn) {
	now, best := time.Now(), 0
	for c := range k.all {
		rank := 0
		switch {
		case c.known || !fits(c):
		case c.resting:
			rank = 3
		case c.serving == 0 && now.Sub(c.since) > strangerGrace:
			rank = 2
		case c.serving > 0 && now.Sub(c.since) > strangerServed:
			rank = 1
		}
		if rank > best || rank == best && rank > 0 && c.since.Before(found.since) {
			found, best = c, rank
		}
	}
	return found
}

// ShedServed ends the stranger's request that has been served for longest, when that is longer than it surely has.
func (k *Conns) ShedServed() {
	k.mu.Lock()
	c := k.oldest(func(c *conn) bool { return c.serving > 0 })
	if c != nil {
		k.remove(c)
		k.shed++
	}
	k.mu.Unlock()
	if c != nil {
		_ = c.Conn.Close() // its handler reads the end of it
	}
}

// turn follows a connection into another state.
func (k *Conns) turn(c *conn, state http.ConnState) {
	if v := k.turned(c, state); v != nil {
		_ = v.Conn.Close() // its server reads the end of it
	}
}

// turned is turn but for the connection that makes room: more than an address's share came at once, and rest now.
func (k *Conns) turned(c *conn, state http.ConnState) (victim *conn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if c.gone || state != http.StateActive && state != http.StateIdle {
		return nil
	}
	c.resting, c.since = state == http.StateIdle, time.Now()
	if c.timer != nil {
		c.timer.Stop()
		c.timer = nil
	}
	if c.resting && !c.known {
		c.timer = time.AfterFunc(k.idle, func() { k.rested(c) })
		if k.from[c.addr] > maxFromAddress {
			if victim = k.oldest(func(o *conn) bool { return o.addr == c.addr && o.resting }); victim != nil {
				k.remove(victim)
				k.shed++
			}
		}
	}
	return victim
}

// rested ends a stranger's connection that still rests: nobody waits for anything.
func (k *Conns) rested(c *conn) {
	k.mu.Lock()
	ends := c.resting && !c.known && !c.gone
	if ends {
		k.remove(c)
	}
	k.mu.Unlock()
	if ends {
		_ = c.Conn.Close() // its server reads the end of it
	}
}

// Serve counts a request that is being answered; the function ends it.
func (k *Conns) Serve(r *http.Request) (end func()) {
	c := connOf(r)
	if c == nil {
		return func() {}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	c.serving++
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		c.serving--
	}
}

// Admit says that a connection has carried a request that was let in: it keeps its place. Of too many of those the one goes that has
// rested longest.
func (k *Conns) Admit(r *http.Request) {
	c := connOf(r)
	if c == nil {
		return
	}
	k.mu.Lock()
	if c.known || c.gone {
		k.mu.Unlock()
		return
	}
	c.known = true
	k.strange(c, -1)
	var victim *conn
	if len(k.all)-k.strangers > maxKnown {
		for o := range k.all {
			if o.known && o.resting && (victim == nil || o.since.Before(victim.since)) {
				victim = o
			}
		}
	}
	if victim != nil {
		k.remove(victim)
		k.shed++
	}
	k.mu.Unlock()
	if victim != nil {
		_ = victim.Conn.Close() // its client connects again
	}
}

// Count is how many connections there are, how many of them are strangers', and how many were closed for others.
func (k *Conns) Count() (all, strangers int, shed int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.all), k.strangers, k.shed
}
