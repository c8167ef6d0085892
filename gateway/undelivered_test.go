package gateway_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/channels"
	"parley/channels/telegram/telegramtest"
	"parley/gateway"
	"parley/gateway/control"
	"parley/gateway/control/outbound"
	"parley/workspace"
)

// R05: a dead letter is seen by its owner, sent when the way is open again, or dropped for good.
func TestR05_DeadLetterIsListedRetriedAndDropped(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{extra: quiet})
	ana := r.person(11)
	ctl := r.g.Control()
	die := func(text string) outbound.Undelivered {
		t.Helper()
		r.tg.Block(ana.ID)
		r.say(ana, 11, text)
		r.stored("the dead part", `SELECT count(*) FROM parts WHERE state = 'dead'`, "1")
		r.tg.Unblock(ana.ID)
		list, err := outbound.List.Call(t.Context(), ctl.Outbound, operator(), outbound.ListIn{State: "dead"})
		if err != nil || len(list.Items) != 1 {
			t.Fatalf("dead letters %+v, %v", list, err)
		}
		return list.Items[0]
	}
	l := die("hello")
	if l.Text != "echo: hello" || l.State != workspace.PartDead || !strings.Contains(l.Error, "blocked") || !strings.Contains(l.Room, "11") || l.Parts != 1 || l.Sent != 0 {
		t.Errorf("dead letter %+v", l)
	}
	if _, err := outbound.List.Call(t.Context(), ctl.Outbound, control.Call{Actor: workspace.Actor{Person: "x", Role: workspace.Member}}, outbound.ListIn{}); !errors.Is(err, workspace.ErrDenied) {
		t.Errorf("a member reads other people's answers: %v", err)
	}
	if list, err := outbound.List.Call(t.Context(), ctl.Outbound, operator(), outbound.ListIn{State: "parked"}); err != nil || len(list.Items) != 0 {
		t.Errorf("parked: %+v, %v", list, err)
	}
	if _, err := outbound.List.Call(t.Context(), ctl.Outbound, operator(), outbound.ListIn{State: "sent"}); !errors.Is(err, workspace.ErrInvalid) {
		t.Errorf("what was sent is not undelivered: %v", err)
	}
	if _, err := outbound.Retry.Call(t.Context(), ctl.Outbound, operator(), control.ByID{ID: l.Short}); err != nil {
		t.Fatal(err)
	}
	if got := texts(r.wait(ana, 1)); !slices.Equal(got, []string{"echo: hello"}) {
		t.Errorf("after the retry %q", got)
	}
	r.stored("the sent part", `SELECT state FROM parts`, "sent")
	if _, err := outbound.Retry.Call(t.Context(), ctl.Outbound, operator(), control.ByID{ID: string(l.ID)}); !errors.Is(err, workspace.ErrNotFound) {
		t.Errorf("sent twice: %v", err)
	}
	l = die("again")
	if _, err := outbound.Drop.Call(t.Context(), ctl.Outbound, operator(), control.ByID{ID: string(l.ID)}); err != nil {
		t.Fatal(err)
	}
	if list, err := outbound.List.Call(t.Context(), ctl.Outbound, operator(), outbound.ListIn{}); err != nil || len(list.Items) != 0 {
		t.Errorf("after the drop %+v, %v", list, err)
	}
	r.say(ana, 11, "next")
	if got := texts(r.wait(ana, 2)); got[1] != "echo: next" {
		t.Errorf("in the end %q", got)
	}
}

// R05: an answer that may have been sent says so when an operator sends it again.
func TestR05_RetriedDoubtIsMarked(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{extra: strings.Replace(quiet, "}", ", maybe_sent: drop}", 1)})
	ana, ben := r.person(11), r.person(12)
	r.say(ben, 12, "warm up")
	r.wait(ben, 1)
	r.tg.AddFault(telegramtest.Fault{Method: "sendMessage", Do: telegramtest.CutAfter, Times: 1})
	r.say(ana, 11, "hello")
	r.stored("the dropped part", `SELECT count(*) FROM parts WHERE state = 'dead'`, "1")
	list, err := outbound.List.Call(t.Context(), r.g.Control().Outbound, operator(), outbound.ListIn{})
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	if _, err := outbound.Retry.Call(t.Context(), r.g.Control().Outbound, operator(), control.ByID{ID: list.Items[0].Short}); err != nil {
		t.Fatal(err)
	}
	if got := texts(r.wait(ana, 2)); !slices.Equal(got, []string{"echo: hello", "(maybe a repeat) echo: hello"}) {
		t.Errorf("ana has %q", got)
	}
}

// R06: an answer that could not be sent for longer than stale_after is not blasted out: its room is told once, with the
// messages that came meanwhile, and gets it when it asks.
func TestR06_LateAnswersAreParkedAndResumed(t *testing.T) {
	t.Parallel()
	c := &clock{}
	n := newMem()
	down := true
	n.fail = func(channels.Post) error { // under n.mu
		if down {
			return &channels.Error{Class: channels.Retry, After: 50 * time.Minute, Err: errors.New("flood")}
		}
		return nil
	}
	r := memRig(t, n, setup{opt: c.in, extra: "sessions: {queue: {mode: followup}}" + quiet})
	n.offer(t, dm("ana", "1", "hello"), dm("ben", "1", "hi"))
	r.stored("what waits", `SELECT state, tries FROM parts`, "ready|1", "ready|1")
	r.halt()
	c.Move(30 * time.Hour)
	n.mu.Lock()
	down = false
	n.mu.Unlock()
	both := func(o *gateway.Options) { n.with(o); c.in(o) }
	r.start(both)
	n.offer(t, dm("ana", "2", "are you there?")) // of 30 hours ago
	if got := memTexts(n.wait(t, "ana", 1)); got[0] != "I was away; 1 message came meanwhile, and 1 answer could not be sent in time. Send /resume to have them answered and get what I had to say." {
		t.Errorf("ana was told %q", got)
	}
	if got := memTexts(n.wait(t, "ben", 1)); got[0] != "I was away; 1 answer could not be sent in time. Send /resume to get what I had to say." {
		t.Errorf("ben was told %q", got)
	}
	list, err := outbound.List.Call(t.Context(), r.g.Control().Outbound, operator(), outbound.ListIn{State: "parked"})
	if err != nil || len(list.Items) != 2 || list.Items[0].Error != "past its age" {
		t.Errorf("parked: %+v, %v", list, err)
	}
	r.halt()
	r.start(both) // tells nobody again
	resume := dm("ana", "3", "/resume")
	resume.Time = time.Now().Add(30 * time.Hour)
	n.offer(t, resume)
	if got := memTexts(n.wait(t, "ana", 4))[1:]; !slices.Equal(got, []string{"I send 1 late answer and answer 1 message now.", "echo: hello", "echo: are you there?"}) &&
		!slices.Equal(got, []string{"echo: hello", "I send 1 late answer and answer 1 message now.", "echo: are you there?"}) {
		t.Errorf("after /resume ana has %q", got)
	}
	r.stored("parts", `SELECT p.state, count(*) FROM parts p JOIN outbound o ON o.id = p.outbound_id WHERE o.kind = 'answer' GROUP BY p.state ORDER BY p.state`, "parked|1", "sent|2")
	if got := memTexts(n.have("ben")); len(got) != 1 {
		t.Errorf("ben has %q: ana's /resume is not his", got)
	}
	resume = dm("ben", "2", "/resume")
	resume.Time = time.Now().Add(30 * time.Hour)
	n.offer(t, resume)
	n.until(t, "ben's answer", func(list []memPost) bool { return slices.Contains(memTexts(of("ben", list)), "echo: hi") })
}

// In a group one asks for one's own late answers; an owner for all.
func TestR06_LateAnswersOfOthersStayParked(t *testing.T) {
	t.Parallel()
	c := &clock{}
	n := newMem()
	down := true
	n.fail = func(channels.Post) error {
		if down {
			return &channels.Error{Class: channels.Retry, After: 50 * time.Minute, Err: errors.New("flood")}
		}
		return nil
	}
	r := memRig(t, n, setup{opt: c.in, extra: "sessions: {queue: {mode: followup}}" + quiet})
	for i, who := range []string{"ana", "ben"} {
		in := inbound(channels.Group, "g", who, fmt.Sprint(i), "question of "+who)
		in.Mentioned = true
		n.offer(t, in)
	}
	r.stored("what waits", `SELECT count(*) FROM runs WHERE state = 'completed'`, "2")
	r.halt()
	c.Move(30 * time.Hour)
	n.mu.Lock()
	down = false
	n.mu.Unlock()
	r.start(func(o *gateway.Options) { n.with(o); c.in(o) })
	n.wait(t, "g", 1)
	resume := inbound(channels.Group, "g", "ben", "9", "/resume")
	resume.Mentioned, resume.Time = true, time.Now().Add(30*time.Hour)
	n.offer(t, resume)
	n.until(t, "ben's answer", func(list []memPost) bool {
		return slices.ContainsFunc(memTexts(of("g", list)), func(s string) bool { return strings.HasPrefix(s, "echo:") && strings.Contains(s, "ben") })
	})
	r.stored("parts", `SELECT p.state, count(*) FROM parts p JOIN outbound o ON o.id = p.outbound_id WHERE o.kind = 'answer' GROUP BY p.state ORDER BY p.state`, "parked|1", "sent|1")
}

// R05: a wait of hours that a network asked for outlives a restart.
func TestR05_LongRetryAfterOutlivesARestart(t *testing.T) {
	t.Parallel()
	n := newMem()
	n.fail = func(p channels.Post) error {
		if p.To.Peer == "ana" {
			return &channels.Error{Class: channels.Retry, After: 3 * time.Hour, Err: errors.New("flood")}
		}
		return nil
	}
	r := memRig(t, n, setup{extra: quiet})
	n.offer(t, dm("ana", "1", "hello"))
	r.stored("what waits", `SELECT state, tries FROM parts`, "ready|1")
	r.halt()
	r.start(n.with)
	n.offer(t, dm("ben", "1", "hi"))
	n.wait(t, "ben", 1)
	r.halt() // whatever was under way has come to its end
	if got := r.rows(`SELECT state, tries FROM parts ORDER BY outbound_id LIMIT 1`); got[0] != "ready|1" {
		t.Errorf("the part is %q: it was sent before its time", got)
	}
	r.start(n.with)
}
