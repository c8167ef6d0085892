// Package bus is how the rooms of the house meet inside one process. Its publishing side towards adapters is
// channels.Intake, whose Receive returns after the commit; this package holds the other two: wake-ups, which carry
// a kind and a key only and may be lost, since a scan stands behind them, and the feed of what is watched live.
//
// It starts no goroutine.
package bus

import (
	"errors"
	"sync"
)

// Kind of a wake-up.
type Kind string

const (
	Session Kind = "session" // inputs wait in the session with this key
	Room    Kind = "room"    // answers wait for the room with this id
)

// Wakes tells who listens that something waits. Safe for concurrent use.
type Wakes struct {
	mu   sync.Mutex
	subs map[Kind][]func(key string)
}

// On calls f, from the goroutine that wakes, for every wake-up of the kind. f must not block.
func (w *Wakes) On(kind Kind, f func(key string)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.subs == nil {
		w.subs = map[Kind][]func(string){}
	}
	w.subs[kind] = append(w.subs[kind], f)
}

// Wake tells everybody who listens.
func (w *Wakes) Wake(kind Kind, key string) {
	w.mu.Lock()
	list := w.subs[kind]
	w.mu.Unlock()
	for _, f := range list {
		f(key)
	}
}

// ErrSlow ends a subscription whose reader fell behind: it must begin again from the record.
var ErrSlow = errors.New("reader fell behind the feed")

// Feed hands live events to those who watch a topic. Events may be lost, but never silently: a reader that falls
// behind is ended with ErrSlow. Safe for concurrent use.
type Feed[E any] struct {
	mu   sync.Mutex
	subs map[string]map[*Sub[E]]struct{}
}

// Sub is one reader of a topic.
type Sub[E any] struct {
	C     <-chan E
	c     chan E
	feed  *Feed[E]
	topic string
	err   error
}

// Subscribe begins to watch a topic; Close must follow. buffer is how many events may wait for the reader.
func (f *Feed[E]) Subscribe(topic string, buffer int) *Sub[E] {
	s := &Sub[E]{c: make(chan E, buffer), feed: f, topic: topic}
	s.C = s.c
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.subs == nil {
		f.subs = map[string]map[*Sub[E]]struct{}{}
	}
	if f.subs[topic] == nil {
		f.subs[topic] = map[*Sub[E]]struct{}{}
	}
	f.subs[topic][s] = struct{}{}
	return s
}

// Watched says whether anybody watches the topic.
func (f *Feed[E]) Watched(topic string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.subs[topic]) > 0
}

// Publish hands the event to every reader of the topic and never blocks.
func (f *Feed[E]) Publish(topic string, e E) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for s := range f.subs[topic] {
		select {
		case s.c <- e:
		default:
			s.end(ErrSlow)
		}
	}
}

// Close ends the subscription. Twice is fine.
func (s *Sub[E]) Close() {
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	s.end(nil)
}

// Err is ErrSlow after C was closed for it.
func (s *Sub[E]) Err() error {
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	return s.err
}

func (s *Sub[E]) end(err error) {
	subs := s.feed.subs[s.topic]
	if _, ok := subs[s]; !ok {
		return
	}
	delete(subs, s)
	if len(subs) == 0 {
		delete(s.feed.subs, s.topic)
	}
	s.err = err
	close(s.c)
}
