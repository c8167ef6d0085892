package live_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"parley/gateway/live"
)

func TestFeedKeepsTheOrderOfATopic(t *testing.T) {
	t.Parallel()
	var f live.Topics[int]
	f.Publish("t", 0) // nobody watches: nothing is kept
	a, b, other := f.Subscribe("t", 8), f.Subscribe("t", 8), f.Subscribe("u", 8)
	for i := range 5 {
		f.Publish("t", i+1)
	}
	for _, s := range []*live.Sub[int]{a, b} {
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
		if f.Watched(topic) {
			t.Errorf("%s is still watched", topic)
		}
	}
}

// A reader that falls behind is ended and told so; neither the publisher nor the others wait for it.
func TestSlowReaderIsEndedAndHoldsUpNobody(t *testing.T) {
	t.Parallel()
	var f live.Topics[int]
	slow, quick := f.Subscribe("t", 2), f.Subscribe("t", 10)
	defer quick.Close()
	for i := range 5 {
		f.Publish("t", i)
	}
	n := 0
	for range slow.C {
		n++
	}
	if n != 2 || !errors.Is(slow.Err(), live.ErrSlow) {
		t.Errorf("%d events, then %v", n, slow.Err())
	}
	if len(quick.C) != 5 || quick.Err() != nil || !f.Watched("t") {
		t.Errorf("the quick reader has %d events, %v", len(quick.C), quick.Err())
	}
	slow.Close() // its reader closes it as always
	if !errors.Is(slow.Err(), live.ErrSlow) {
		t.Errorf("after Close: %v", slow.Err())
	}
}

func TestFeedIsSafeForMany(t *testing.T) {
	t.Parallel()
	var f live.Topics[int]
	var wg sync.WaitGroup
	for i := range 8 {
		topic := fmt.Sprint(i % 3)
		wg.Go(func() {
			for range 200 {
				s := f.Subscribe(topic, 4)
				f.Publish(topic, 1)
				select {
				case <-s.C:
				default:
				}
				f.Watched(topic)
				s.Close()
			}
		})
		wg.Go(func() {
			for range 50 {
				f.Publish(topic, 2)
			}
		})
	}
	wg.Wait()
	for i := range 3 {
		if f.Watched(fmt.Sprint(i)) {
			t.Errorf("topic %d is still watched", i)
		}
	}
}
