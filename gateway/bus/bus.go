// Package bus is how the rooms of the house meet inside one process. Its publishing side towards adapters is
// channels.Intake, whose Receive returns after the commit; lanes and rooms are told directly of what was committed, and
// the sweeper's scan of the journal stands behind a word that is lost. This package holds the third side: the feed of
// what is watched live.
//
// It starts no goroutine.
package bus

import (
	"errors"
	"sync"
)

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
