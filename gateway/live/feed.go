// Package live is what is watched while it happens: answers that grow, what a command writes, that the record of a session grew,
// that a list changed. It is never the record: events may be lost, and a reader that fell behind begins again from the store.
//
// It starts no goroutine.
package live

import (
	"strings"
	"sync"
	"unicode/utf8"

	"parley/agentloop"
	"parley/gateway/bus"
	"parley/workspace"
)

// Update is what is watched of a session while it happens. Stored says that the record grew, or may have; read again
// after your cursor.
type Update struct {
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
	bus     *bus.Bus
	mu      sync.Mutex
	growing map[string]*growing // by session key
	failing map[string]Update   // the newest trouble of its model, by session key
	asking  map[string]Update   // that its model was asked, and has sent nothing yet
	output  map[string]Update   // the newest end of what its command writes, by session key
	drop    func(key string)
}

// New makes a feed that is published on the bus.
func New(b *bus.Bus) *Feed { return &Feed{bus: b} }

// OnChange has drop called with the key of each session that grew or changed, under the feed's lock: for a cache of what is
// shown of sessions. It is called once, before anything is published.
func (f *Feed) OnChange(drop func(key string)) { f.drop = drop }

func (f *Feed) dropped(key string) {
	if f.drop != nil {
		f.drop(key)
	}
}

type growing struct {
	Update
	text  strings.Builder
	units int
}

// changesTopic carries what lists must know of all sessions; a session's key, what is watched of it.
const changesTopic = "changes"

// storedTopic carries only that the record grew: who waits for an end is not a reader of what is typed.
func storedTopic(key string) string { return "stored " + key }

// Publish hands the event to those who watch the session and never blocks.
func (f *Feed) Publish(key string, e Update) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case e.Stored:
		bus.Publish(f.bus, storedTopic(key), e)
		f.dropped(key)
		bus.Publish(f.bus, changesTopic, Change{Key: key})
	case e.Event.Type == agentloop.EventText:
		e.Offset = f.grow(key, e)
		f.answers(key)
	case e.Event.Type == agentloop.EventDiscard:
		delete(f.growing, key)
	case e.Event.Type == agentloop.EventOutput:
		keep(&f.output, key, e)
	case e.Event.Type == agentloop.EventToolEnd && f.output[key].Event.Call == e.Event.Call:
		delete(f.output, key)
	case e.Event.Type == agentloop.EventModelStart:
		delete(f.growing, key)
		f.answers(key)
	case e.Event.Type == agentloop.EventAsk:
		keep(&f.asking, key, e)
	case e.Event.Type == agentloop.EventWait && e.Event.Trouble != nil:
		keep(&f.failing, key, e)
		delete(f.asking, key)
	case e.Event.Type == agentloop.EventToolStart || e.Event.Type == agentloop.EventThinking:
		f.answers(key)
	}
	bus.Publish(f.bus, key, e)
}

func keep(list *map[string]Update, key string, e Update) {
	if *list == nil {
		*list = map[string]Update{}
	}
	(*list)[key] = e
}

// answers forgets what a session waited for.
func (f *Feed) answers(key string) {
	delete(f.failing, key)
	delete(f.asking, key)
}

// grow adds a delta and returns where it begins.
func (f *Feed) grow(key string, e Update) int {
	g := f.growing[key]
	if g == nil || g.Run != e.Run || g.Step != e.Step {
		g = &growing{Update: e}
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
	delete(f.output, key)
	f.answers(key)
}

// Watched says whether anybody reads the session's answers as they grow.
func (f *Feed) Watched(key string) bool { return f.bus.Watched(key) }

// Watch begins to read a session. snapshot is the answer as far as it had grown, the end of what its command has written, or what
// its model fails with and since when it is asked; what comes after it is in the subscription, which the caller must close.
func (f *Feed) Watch(key string, buffer int) (sub *bus.Sub[Update], snapshot []Update) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if g := f.growing[key]; g != nil {
		e := g.Update
		e.Offset, e.Event.Text = 0, g.text.String()
		snapshot = append(snapshot, e)
	}
	for _, waits := range []map[string]Update{f.output, f.failing, f.asking} {
		if e, ok := waits[key]; ok {
			snapshot = append(snapshot, e)
		}
	}
	return bus.Subscribe[Update](f.bus, key, buffer), snapshot
}

// Stored begins to hear of the record alone.
func (f *Feed) Stored(key string) *bus.Sub[Update] {
	return bus.Subscribe[Update](f.bus, storedTopic(key), 16)
}

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
	Key string // of a session that grew, or began again
	// Person is whose lists alone must know; empty: everybody's.
	Person workspace.PersonID
	Needs  bool // what waits for people is another number now
}

// Changed says that a session is called otherwise, has other settings, or is gone.
func (f *Feed) Changed(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dropped(key)
	bus.Publish(f.bus, changesTopic, Change{Key: key})
}

// Seen says that a person has read further in a session.
func (f *Feed) Seen(key string, person workspace.PersonID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dropped(key)
	bus.Publish(f.bus, changesTopic, Change{Key: key, Person: person})
}

// Needs says that something waits for people, or waits no more.
func (f *Feed) Needs() { bus.Publish(f.bus, changesTopic, Change{Needs: true}) }

// Changes begins to hear of every session. buffer is how many changes may wait for the reader.
func (f *Feed) Changes(buffer int) *bus.Sub[Change] {
	return bus.Subscribe[Change](f.bus, changesTopic, buffer)
}
