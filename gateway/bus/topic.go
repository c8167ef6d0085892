package bus

import (
	"errors"
	"sync"
)

// ErrSlow ends a subscription whose reader fell behind: it must begin again from the record.
var ErrSlow = errors.New("reader fell behind the bus")

// topics are those that somebody watches.
type topics struct {
	mu   sync.Mutex
	subs map[string]map[reader]struct{}
}

// reader is a subscription to events of any type.
type reader interface{ end(err error) }

// Sub is one reader of a topic.
type Sub[E any] struct {
	C     <-chan E
	c     chan E
	all   *topics
	topic string
	err   error
}

// Subscribe begins to watch a topic whose events are of type E; Close must follow. buffer is how many events may wait for
// the reader.
func Subscribe[E any](b *Bus, topic string, buffer int) *Sub[E] {
	s := &Sub[E]{c: make(chan E, buffer), all: &b.topics, topic: topic}
	s.C = s.c
	t := &b.topics
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.subs == nil {
		t.subs = map[string]map[reader]struct{}{}
	}
	if t.subs[topic] == nil {
		t.subs[topic] = map[reader]struct{}{}
	}
	t.subs[topic][s] = struct{}{}
	return s
}

// Watched says whether anybody in this process watches the topic.
func (b *Bus) Watched(topic string) bool {
	b.topics.mu.Lock()
	defer b.topics.mu.Unlock()
	return len(b.topics.subs[topic]) > 0
}

// Publish hands the event to every reader of the topic and never blocks. Events may be lost, but never silently: a reader
// that falls behind is ended with ErrSlow. A topic has one type of events; readers of another get none.
func Publish[E any](b *Bus, topic string, e E) {
	b.topics.mu.Lock()
	defer b.topics.mu.Unlock()
	for r := range b.topics.subs[topic] {
		s, ok := r.(*Sub[E])
		if !ok {
			continue
		}
		select {
		case s.c <- e:
		default:
			s.end(ErrSlow)
		}
	}
}

// Close ends the subscription. Twice is fine.
func (s *Sub[E]) Close() {
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	s.end(nil)
}

// Err is ErrSlow after C was closed for it.
func (s *Sub[E]) Err() error {
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	return s.err
}

// end closes the subscription. The lock is held.
func (s *Sub[E]) end(err error) {
	subs := s.all.subs[s.topic]
	if _, ok := subs[s]; !ok {
		return
	}
	delete(subs, s)
	if len(subs) == 0 {
		delete(s.all.subs, s.topic)
	}
	s.err = err
	close(s.c)
}
