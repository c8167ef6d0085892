package api

import (
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"parley/agentloop"
	"parley/gateway/bus"
	"parley/workspace"
)

// Live is what is watched of a session while it happens. It is never the record: Stored says that the record grew, or
// may have; read again after your cursor.
type Live struct {
	Session workspace.SessionID // empty: the key may have a new generation
	Run     workspace.RunID
	Stored  bool
	Event   agentloop.Event
	// Step is the number that the model's answer will have in the run's journal, and Offset where an EventText begins in
	// it, in UTF-16 code units as browsers count.
	Step   int
	Offset int
}

// Feed hands live events to those who watch a session, and keeps the answer that is growing for those who come late.
// Safe for concurrent use; it starts no goroutine.
type Feed struct {
	feed    bus.Feed[Live]
	changes bus.Feed[Change]
	mu      sync.Mutex
	growing map[string]*growing           // by session key
	items   map[string]map[string]*shared // by session key and person
}

// shared is a session as lists show it, read once for all pages that want it.
type shared struct {
	mu   sync.Mutex
	at   time.Time
	view sessionView
	err  error
}

const (
	sharedFor  = time.Second // unless the session changes
	sharedMost = 1000
)

// item reads a person's view of a session by read, or gives what another page has just read of it.
func (f *Feed) item(person, key string, now time.Time, read func() (sessionView, error)) (sessionView, error) {
	f.mu.Lock()
	one := f.items[key][person]
	fresh := one == nil || now.Sub(one.at) > sharedFor || now.Before(one.at)
	if fresh {
		if f.items == nil || len(f.items) >= sharedMost {
			f.items = map[string]map[string]*shared{}
		}
		if f.items[key] == nil {
			f.items[key] = map[string]*shared{}
		}
		one = &shared{at: now}
		f.items[key][person] = one
		one.mu.Lock() // who comes next waits for what is read here
	}
	f.mu.Unlock()
	if !fresh {
		one.mu.Lock()
	}
	defer one.mu.Unlock()
	if fresh || one.err != nil { // another page's trouble may be its own
		one.view, one.err = read()
	}
	return one.view, one.err
}

type growing struct {
	Live
	text  strings.Builder
	units int
}

// storedTopic carries only that the record grew: who waits for an end is no reader of what is typed.
func storedTopic(key string) string { return "stored " + key }

// Publish hands the event to those who watch the session and never blocks.
func (f *Feed) Publish(key string, e Live) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case e.Stored:
		f.feed.Publish(storedTopic(key), e)
		delete(f.items, key)
		f.changes.Publish("", Change{Key: key})
	case e.Event.Type == agentloop.EventText:
		e.Offset = f.grow(key, e)
	case e.Event.Type == agentloop.EventDiscard || e.Event.Type == agentloop.EventModelStart:
		delete(f.growing, key)
	}
	f.feed.Publish(key, e)
}

// grow adds a delta and returns where it begins.
func (f *Feed) grow(key string, e Live) int {
	g := f.growing[key]
	if g == nil || g.Run != e.Run || g.Step != e.Step {
		g = &growing{Live: e}
		if f.growing == nil {
			f.growing = map[string]*growing{}
		}
		f.growing[key] = g
	}
	at := g.units
	g.text.WriteString(e.Event.Text)
	g.units += units(e.Event.Text)
	return at
}

// Settle forgets what was growing in a session: from now on the record says it.
func (f *Feed) Settle(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.growing, key)
}

// Watched says whether anybody reads the session's answers as they grow.
func (f *Feed) Watched(key string) bool { return f.feed.Watched(key) }

// watch begins to read a session. snapshot is the answer as far as it had grown; what comes after it is in the
// subscription, which the caller must close.
func (f *Feed) watch(key string, buffer int) (sub *bus.Sub[Live], snapshot *Live) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if g := f.growing[key]; g != nil {
		e := g.Live
		e.Offset, e.Event.Text = 0, g.text.String()
		snapshot = &e
	}
	return f.feed.Subscribe(key, buffer), snapshot
}

// stored begins to hear of the record alone.
func (f *Feed) stored(key string) *bus.Sub[Live] { return f.feed.Subscribe(storedTopic(key), 16) }

// units is the length of s in UTF-16 code units.
func units(s string) int {
	n := 0
	for _, r := range s {
		if r > 0xFFFF && r <= utf8.MaxRune {
			n++
		}
		n++
	}
	return n
}

// Change is what lists of sessions and counts of what waits must know.
type Change struct {
	Key   string // of a session that grew, or began anew
	Needs bool   // what waits for people is another number now
}

// Changed says that a session is called otherwise, has other settings, or is gone.
func (f *Feed) Changed(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.items, key)
	f.changes.Publish("", Change{Key: key})
}

// Needs says that something waits for people, or waits no more.
func (f *Feed) Needs() { f.changes.Publish("", Change{Needs: true}) }

// changed begins to hear of every session.
func (f *Feed) changed() *bus.Sub[Change] { return f.changes.Subscribe("", lineBuffer) }
