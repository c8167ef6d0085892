package delivery

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"parley/channels"
	"parley/gateway/transport"
	"parley/workspace"
)

// R05: right after a crash at most two answers are under way at once, until the burst is over; one that is stuck holds
// nobody up, and a network that can be asked, or dedupes, needs none of it.
func TestR05_FewAnswersAreUnderWayRightAfterACrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBurst(time.Now())
		l := &transport.Channel{Adapter: memChannel{&memNet{}}}
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

// R05: after a crash the answers that were left go out two at a time, each after the note of the one before; without one
// all at once.
func TestR05_WhatACrashLeftGoesOutTwoAtATime(t *testing.T) {
	t.Parallel()
	for crashed, want := range map[bool]int{true: 2, false: 10} {
		slow := func(channels.Post) error { <-time.After(burstStuck / 2); return nil }
		inBubble(t, func(n *memNet) { n.send = slow }, func(t *testing.T, w *world) {
			if crashed {
				w.AfterCrash(time.Now())
			}
			for i := range 10 {
				w.say(answerTo(workspace.RoomID(fmt.Sprint(i)), fmt.Sprint(i), "x"))
			}
			if got := len(w.wait(burstStuck/2 + time.Millisecond)); got != want {
				t.Errorf("crashed %v: %d of 10 were under way at once, want %d", crashed, got, want)
			}
		})
	}
}
