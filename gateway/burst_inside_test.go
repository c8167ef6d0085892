package gateway

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"parley/channels"
	"parley/gateway/transport"
)

// R05: right after a crash at most two answers are under way at once, until the burst is over; one that is stuck holds
// nobody up, and a network that can be asked, or dedupes, needs none of it.
func TestR05_FewAnswersAreUnderWayRightAfterACrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBurst(time.Now())
		l := &transport.Channel{Adapter: newPuppet(t, "a")}
		first, _ := b.enter(t.Context(), l)
		second, ok := b.try(l)
		if first == nil || second == nil || !ok {
			t.Fatal("no places in an empty burst")
		}
		if p, ok := b.try(l); ok || p != nil {
			t.Error("a third answer is under way")
		}
		entered := make(chan *pass, 1)
		go func() {
			p, _ := b.enter(t.Context(), l)
			entered <- p
		}()
		synctest.Wait()
		select {
		case <-entered:
			t.Error("a third answer does not wait")
		default:
		}
		first.begin()
		first.leave()
		first.leave() // twice gives one place back
		third := <-entered
		if third == nil {
			t.Fatal("who waits got no place")
		}
		second.begin()
		<-time.After(burstStuck + time.Millisecond)
		fourth, ok := b.try(l)
		if !ok {
			t.Error("a stuck send holds its place for ever")
		}
		second.leave()
		if _, ok := b.try(l); ok {
			t.Error("a stuck send gave its place back twice")
		}
		third.leave()
		fourth.leave()
		if p, ok := b.try(&transport.Channel{Traits: channels.Traits{Idempotent: true}}); p != nil || !ok {
			t.Error("a network that dedupes waits")
		}
		p1, _ := b.try(l)
		p2, _ := b.try(l)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, ok := b.enter(ctx, l); ok {
			t.Error("entered after the end")
		}
		began := time.Now()
		if p, ok := b.enter(t.Context(), l); p != nil || !ok || time.Since(began) > burstTime {
			t.Error("the burst is never over")
		}
		if p, ok := b.try(l); p != nil || !ok {
			t.Error("it goes on after it was over")
		}
		p1.leave()
		p2.leave()
		var none *burst
		if p, ok := none.enter(t.Context(), l); p != nil || !ok {
			t.Error("without a crash somebody waits")
		}
	})
}

// Only a crash makes a burst.
func TestBurstFollowsACrashOnly(t *testing.T) {
	t.Parallel()
	g := startPuppets(t, "{dm: open}", "", nil, newPuppet(t, "a"))
	if g.deliver.burst != nil || g.store.Crashed() {
		t.Error("a first start counts as one after a crash")
	}
}

// R08: a room that the network holds back for longer is not waited for at the end; its answer is ready at the next start.
func TestR08_StopDoesNotWaitForARoomThatIsHeldBack(t *testing.T) {
	t.Parallel()
	p := newPuppet(t, "a")
	refused := make(chan struct{}, 10)
	p.send = func(channels.Post) (channels.MessageID, error) {
		refused <- struct{}{}
		return "", &channels.Error{Class: channels.Retry, After: 3 * time.Hour, Err: fmt.Errorf("flood")}
	}
	g := startPuppets(t, "{dm: open}", "", nil, p)
	p.hear(p.says("7", "1", "hello"))
	<-refused
	for query(t, g, `SELECT state FROM parts`)[0] != "ready" {
		<-time.After(5 * time.Millisecond)
	}
	began := time.Now()
	g.deliver.drain(t.Context(), time.Hour, func() {})
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("the end took %v", took)
	}
	if got := query(t, g, `SELECT state FROM parts`); got[0] != "ready" {
		t.Errorf("the part is %q", got)
	}
}
