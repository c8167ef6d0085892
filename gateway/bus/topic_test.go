package bus_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"parley/gateway/bus"
)

func TestATopicKeepsItsOrder(t *testing.T) {
	t.Parallel()
	b := bus.New(1)
	bus.Publish(b, "t", 0) // nobody watches: nothing is kept
	one, two, other := bus.Subscribe[int](b, "t", 8), bus.Subscribe[int](b, "t", 8), bus.Subscribe[int](b, "u", 8)
	for i := range 5 {
		bus.Publish(b, "t", i+1)
	}
	for _, s := range []*bus.Sub[int]{one, two} {
		s.Close()
		var got []int
		for e := range s.C { // what was published before the end is still there
			got = append(got, e)
		}
		if !slices.Equal(got, []int{1, 2, 3, 4, 5}) || s.Err() != nil {
			t.Errorf("read %v, %v", got, s.Err())
		}
	}
	if len(other.C) != 0 {
		t.Error("another topic got something")
	}
	other.Close()
	other.Close()
	for _, topic := range []string{"t", "u"} {
		if b.Watched(topic) {
			t.Errorf("%s is still watched", topic)
		}
	}
}

// A reader that falls behind is ended and told so; neither the publisher nor the others wait for it.
func TestSlowReaderIsEndedAndHoldsUpNobody(t *testing.T) {
	t.Parallel()
	b := bus.New(1)
	slow, quick := bus.Subscribe[int](b, "t", 2), bus.Subscribe[int](b, "t", 10)
	defer quick.Close()
	for i := range 5 {
		bus.Publish(b, "t", i)
	}
	n := 0
	for range slow.C {
		n++
	}
	if n != 2 || !errors.Is(slow.Err(), bus.ErrSlow) {
		t.Errorf("%d events, then %v", n, slow.Err())
	}
	if len(quick.C) != 5 || quick.Err() != nil || !b.Watched("t") {
		t.Errorf("the quick reader has %d events, %v", len(quick.C), quick.Err())
	}
	slow.Close() // its reader closes it as always
	if !errors.Is(slow.Err(), bus.ErrSlow) {
		t.Errorf("after Close: %v", slow.Err())
	}
}

func TestTopicsAreSafeForMany(t *testing.T) {
	t.Parallel()
	b := bus.New(1)
	var wg sync.WaitGroup
	for i := range 8 {
		topic := fmt.Sprint(i % 3)
		wg.Go(func() {
			for range 200 {
				s := bus.Subscribe[int](b, topic, 4)
				bus.Publish(b, topic, 1)
				select {
				case <-s.C:
				default:
				}
				b.Watched(topic)
				s.Close()
			}
		})
		wg.Go(func() {
			for range 50 {
				bus.Publish(b, topic, 2)
			}
		})
	}
	wg.Wait()
	for i := range 3 {
		if b.Watched(fmt.Sprint(i)) {
			t.Errorf("topic %d is still watched", i)
		}
	}
}

// A topic has one type of events; who waits for another gets none, and is not ended.
func TestReadersGetEventsOfTheirType(t *testing.T) {
	t.Parallel()
	b := bus.New(1)
	numbers, words := bus.Subscribe[int](b, "t", 1), bus.Subscribe[string](b, "t", 1)
	defer numbers.Close()
	defer words.Close()
	bus.Publish(b, "t", 1)
	bus.Publish(b, "t", "one")
	if n, w := <-numbers.C, <-words.C; n != 1 || w != "one" || numbers.Err() != nil || words.Err() != nil {
		t.Errorf("%d, %q, %v, %v", n, w, numbers.Err(), words.Err())
	}
}
