package channeltest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/channels"
)

// memNet is a small network in memory that can do everything the suite knows, and its own World.
type memNet struct {
	bad        string // what the adapter does wrong; empty: nothing
	idempotent bool
	cannot     Deed // a deed that this harness does not offer

	mu      sync.Mutex
	changed chan struct{}
	next    map[Place]int
	events  []*memEvent
	sent    []*memSent
	react   map[string]string
	typing  map[Place]int
	menu    []channels.MenuItem
	group   channels.PeerID
	fault   Event
	gone    map[Place]bool
	down    bool
	frozen  bool
	revoked bool
	linked  bool
	conn    int // raised by a cut: polls of older connections fail
}

// memEvent is something that the network offers until it is acknowledged.
type memEvent struct {
	Event
	id    channels.MessageID
	own   bool
	album string
	acked bool
	at    time.Time
	quote *memQuote
}

type memQuote struct {
	who  Who
	text string
}

type memSent struct {
	place Place
	Seen
	token string
}

const (
	ourselves  = Who("bot")
	memSecret  = "s3cr3t-t0ken"
	memMax     = 400
	memNetwork = channels.Network("mem")
)

var (
	errDown    = errors.New("connection refused")
	errCut     = errors.New("connection cut")
	errRevoked = errors.New("account refused")
	errBlocked = errors.New("blocked")
	errServer  = errors.New("server error")
	errLong    = errors.New("too long")
	errMarkup  = errors.New("bad markup")
	errMissing = errors.New("no such message")
	errMoved   = errors.New("room moved")
)

// errFlood is a wait.
type errFlood time.Duration

func (e errFlood) Error() string { return "wait " + time.Duration(e).String() }

type memHarness struct {
	bad        string
	idempotent bool
	cannot     Deed
	wrap       func(*memAdapter) channels.Channel
}

func (h memHarness) Network() channels.Network { return memNetwork }

func (h memHarness) World(T) World {
	return &memWorld{memNet: &memNet{bad: h.bad, idempotent: h.idempotent, cannot: h.cannot, changed: make(chan struct{}),
		next: map[Place]int{}, react: map[string]string{}, typing: map[Place]int{}, group: "g1", gone: map[Place]bool{}, linked: true}, wrap: h.wrap}
}

type memWorld struct {
	*memNet
	wrap func(*memAdapter) channels.Channel
}

func (w *memWorld) Open(d channels.Deps) (channels.Channel, error) {
	a := &memAdapter{net: w.memNet, bad: w.bad, d: d}
	if w.wrap != nil {
		return w.wrap(a), nil
	}
	return a, nil
}

func (n *memNet) Close()                      { n.update(func() { n.frozen, n.revoked, n.conn = false, true, n.conn+1 }) }
func (n *memNet) Account() channels.AccountID { return "b0t" }
func (n *memNet) Secrets() []string           { return []string{memSecret} }
func (n *memNet) User(w Who) channels.UserID  { return channels.UserID("u-" + w) }
func (n *memNet) Broken() string              { return "<broken" }

func (n *memNet) Address(p Place) channels.Address {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.address(p)
}

func (n *memNet) address(p Place) channels.Address {
	a := channels.Address{Network: memNetwork, Account: "b0t", Kind: channels.DM, Peer: "ana"}
	switch p {
	case OtherDM:
		a.Peer = "ben"
	case Group:
		a.Kind, a.Peer = channels.Group, n.group
	case Echo:
		a.Kind, a.Peer = channels.Room, "echo"
	case Thread:
		a.Kind, a.Peer, a.Thread = channels.Group, n.group, "t1"
	}
	return a
}

func (n *memNet) place(a channels.Address) (Place, bool) {
	for _, p := range []Place{DM, OtherDM, Group, Thread, Echo} {
		if n.address(p) == a {
			return p, true
		}
	}
	return "", false
}

// update changes the network and wakes whoever waits.
func (n *memNet) update(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
	close(n.changed)
	n.changed = make(chan struct{})
}

// await blocks until f says true; f is called with the lock.
func (n *memNet) await(ctx context.Context, f func() bool) error {
	for {
		n.mu.Lock()
		ok, changed := f(), n.changed
		n.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (n *memNet) Wait(ctx context.Context, cond func() bool) error {
	for {
		n.mu.Lock()
		changed := n.changed
		n.mu.Unlock()
		if cond() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (n *memNet) Act(e Event) (id channels.MessageID, ok bool) {
	if e.Do == n.cannot {
		return "", false
	}
	n.update(func() { id = n.act(e) })
	return id, true
}

func (n *memNet) act(e Event) channels.MessageID {
	switch e.Do {
	case Write, Fence:
		return n.write(e)
	case EditIt, DeleteIt, ReactTo, PressOn, Command, Garbage:
		return n.offer(e, "")
	case MoveRoom:
		n.offer(e, "")
		n.group = "g2"
	case Flood, Trouble, Swallow, BadAnswer:
		n.fault = e
	case Block:
		n.gone[e.Place] = true
	case Revoke:
		n.revoked = true
	case Down:
		n.down, n.conn = true, n.conn+1
	case Up:
		n.down = false
	case Cut:
		n.conn++
	case Freeze:
		n.frozen = true
	case Unlink:
		n.linked = false
	}
	return ""
}

func (n *memNet) write(e Event) (id channels.MessageID) {
	if len(e.Files) < 2 {
		return n.offer(e, "")
	}
	files := e.Files
	for _, f := range files {
		e.Files = []File{f}
		id = n.offer(e, "album-1")
		e.Text = ""
	}
	return id
}

func (n *memNet) offer(e Event, album string) channels.MessageID {
	ev := &memEvent{Event: e, id: n.newID(e.Place), album: album, at: time.Now()}
	if e.ReplyTo != "" {
		ev.quote = n.quote(e.Place, e.ReplyTo)
	}
	n.events = append(n.events, ev)
	return ev.id
}

// newID counts per room, so that messages of two rooms share their ids.
func (n *memNet) newID(p Place) channels.MessageID {
	if p == Thread {
		p = Group
	}
	n.next[p]++
	return channels.MessageID(fmt.Sprint(n.next[p]))
}

func (n *memNet) quote(p Place, id channels.MessageID) *memQuote {
	for _, ev := range n.events {
		if ev.Place == p && ev.id == id {
			return &memQuote{ev.Who, ev.Text}
		}
	}
	for _, s := range n.sent {
		if s.place == p && s.ID == id {
			return &memQuote{ourselves, s.Text}
		}
	}
	return nil
}

func (n *memNet) Sent(p Place) []Seen {
	n.mu.Lock()
	defer n.mu.Unlock()
	var all []Seen
	for _, s := range n.sent {
		if s.place == p {
			all = append(all, s.Seen)
		}
	}
	return all
}

func (n *memNet) Reaction(p Place, id channels.MessageID) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.react[string(p)+string(id)]
}

func (n *memNet) Typing(p Place) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.typing[p]
}

func (n *memNet) Menu() []channels.MenuItem {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.menu
}

func (n *memNet) Acked(p Place, id channels.MessageID) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, ev := range n.events {
		if ev.Place == p && ev.id == id {
			return ev.acked
		}
	}
	return false
}

// From here on: what the adapter may call.

// health is what every call meets first.
func (n *memNet) health() error {
	switch {
	case n.down:
		return errDown
	case n.revoked:
		return errRevoked
	}
	return nil
}

func (n *memNet) connect(ctx context.Context) (conn int, err error) {
	waited := n.await(ctx, func() bool {
		conn, err = n.conn, n.health()
		return !n.frozen
	})
	return conn, errors.Join(waited, err)
}

// poll blocks until something is not acknowledged.
func (n *memNet) poll(ctx context.Context, conn int) (batch []*memEvent, err error) {
	waited := n.await(ctx, func() bool {
		if n.frozen {
			return false
		}
		if err = n.health(); err == nil && conn != n.conn {
			err = errCut
		}
		batch = nil
		for _, ev := range n.events {
			if !ev.acked {
				c := *ev
				batch = append(batch, &c)
			}
		}
		return err != nil || len(batch) > 0
	})
	return batch, errors.Join(waited, err)
}

func (n *memNet) ack(batch []*memEvent) {
	n.update(func() {
		for _, b := range batch {
			for _, ev := range n.events {
				if ev.id == b.id && ev.Place == b.Place && ev.Do == b.Do {
					ev.acked = true
				}
			}
		}
	})
}

// post is a send. The fault that is set is used up.
func (n *memNet) post(ctx context.Context, p channels.Post, text string, files []File) (id channels.MessageID, err error) {
	waited := n.await(ctx, func() bool { return !n.frozen })
	if waited != nil {
		return "", waited
	}
	n.update(func() { id, err = n.accept(p, text, files) })
	return id, err
}

func (n *memNet) accept(p channels.Post, text string, files []File) (channels.MessageID, error) {
	if err := n.health(); err != nil {
		return "", err
	}
	fault := n.fault
	n.fault = Event{}
	switch fault.Do {
	case Flood:
		return "", errFlood(fault.After)
	case Trouble, BadAnswer:
		return "", errServer
	}
	place, ok := n.place(p.To)
	switch {
	case !ok:
		return "", errMoved
	case n.gone[place]:
		return "", errBlocked
	case len(text) > memMax && len([]rune(text)) > memMax:
		return "", errLong
	case strings.HasPrefix(text, "<broken"):
		return "", errMarkup
	}
	if n.idempotent {
		for _, s := range n.sent {
			if s.token == p.Token {
				return s.ID, nil
			}
		}
	}
	s := &memSent{place: place, token: p.Token, Seen: Seen{ID: n.newID(place), Text: text,
		ReplyTo: p.ReplyTo, Actions: p.Actions, Files: files, Previews: n.bad == "previews links"}}
	if n.bad == "rings everyone" {
		s.Rings = []string{"everyone"}
	}
	n.sent = append(n.sent, s)
	if place == Echo {
		n.events = append(n.events, &memEvent{Event: Event{Do: Write, Place: Echo, Text: text}, id: s.ID, own: true, at: time.Now()})
	}
	if fault.Do == Swallow {
		return "", errCut
	}
	return s.ID, nil
}

// change applies f to a message of the bot; f says whether to keep it.
func (n *memNet) change(p channels.Address, id channels.MessageID, f func(*memSent) bool) error {
	err := errMissing
	n.update(func() {
		place, _ := n.place(p)
		n.sent = slices.DeleteFunc(n.sent, func(s *memSent) bool {
			if s.place != place || s.ID != id {
				return false
			}
			err = nil
			return !f(s)
		})
	})
	return err
}

// issued says whether an attachment came with a message.
func (n *memNet) issued(id string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, e := range n.events {
		for _, f := range e.Files {
			if string(f.Data) == id {
				return true
			}
		}
	}
	return false
}
