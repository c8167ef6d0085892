package live

import (
	"errors"
	"sync"
)

// ErrSlow ends a subscription whose reader fell behind: it must begin again from the record.
var ErrSlow = errors.New("reader fell behind the feed")

// Topics hands events to those who watch a topic. Events may be lost, but never silently: a reader that falls
// behind is ended with ErrSlow. Safe for concurrent use.
type Topics[E any] struct {
	mu   sync.Mutex
	subs map[string]map[*Sub[E]]struct{}
}

// Sub is one reader of a topic.
type Sub[E any] struct {
	C     <-chan E
	c     chan E
	all   *Topics[E]
	topic string
	err   error
}

// Subscribe begins to watch a topic; Close must follow. buffer is how many events may wait for the reader.
func (t *Topics[E]) Subscribe(topic string, buffer int) *Sub[E] {
	s := &Sub[E]{c: make(chan E, buffer), all: t, topic: topic}
	s.C = s.c
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.subs == nil {
		t.subs = map[string]map[*Sub[E]]struct{}{}
	}
	if t.subs[topic] == nil {
		t.subs[topic] = map[*Sub[E]]struct{}{}
	}
	t.subs[topic][s] = struct{}{}
	return s
}

// Watched says whether anybody watches the topic.
func (t *Topics[E]) Watched(topic string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.subs[topic]) > 0
}

// Publish hands the event to every reader of the topic and never blocks.
func (t *Topics[E]) Publish(topic string, e E) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for s := range t.subs[topic] {
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
