package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/channels"
	"parley/channels/telegram/telegramtest"
	"parley/gateway/control"
	"parley/gateway/control/outbound"
	"parley/workspace"
)

// What comes late, or seems to by a clock that is wrong, on one daemon; each test puts the clock back.
func TestR05_R06_R10_Late(t *testing.T) {
	t.Parallel()
	const year = 365 * 24 * time.Hour
	c, n := &clock{}, newMem()
	tests := map[string]func(*rig){
		"R05_a dead letter is listed, retried and dropped":     deadLetter,
		"R05_a retried doubt is marked":                        retriedDoubt,
		"R05_a wait of hours outlives a restart":               waitOutlivesARestart,
		"R06_late answers are parked and resumed":              func(r *rig) { lateAnswers(r, c) },
		"R06_late answers of others stay parked":               func(r *rig) { lateAnswersOfOthers(r, c) },
		"R10_a retry does not wait for a clock that went back": func(r *rig) { retryDoesNotWait(r, c) },
		"T08_what was taken back is not quoted":                func(r *rig) { takenBackIsNotQuoted(r, false) },
		"T08_what was taken back is not quoted after a start":  func(r *rig) { takenBackIsNotQuoted(r, true) },
		"a clock that is wrong from the start":                 func(r *rig) { clockIsWrongFromTheStart(r, c) },
	}
	for _, jump := range []time.Duration{time.Hour, -time.Hour, 10 * year, -10 * year} {
		tests["a clock that jumps by "+jump.String()] = func(r *rig) { jumpLosesNothing(r, c, jump) }
	}
	together(t, n.beside(setup{inTurn: true, opt: c.in, extra: "sessions: {queue: {mode: followup}}" + strings.Replace(quiet, "}", ", maybe_sent: drop}", 1)}), tests)
}

// undelivered are the letters of the slot's rooms in such a state.
func (r *rig) undelivered(state workspace.PartState) (own []outbound.Undelivered) {
	r.t.Helper()
	list, err := outbound.List.Call(r.t.Context(), r.g.Control().Outbound, operator(), outbound.ListIn{State: state})
	if err != nil {
		r.t.Fatal(err)
	}
	peers := r.rows(`SELECT peer FROM rooms`)
	for _, l := range list.Items {
		if slices.Contains(peers, l.Room[strings.LastIndexByte(l.Room, '/')+1:]) {
			own = append(own, l)
		}
	}
	return own
}

// R05: a dead letter is seen by its owner, sent when the way is open again, or dropped for good.
func deadLetter(r *rig) {
	ana := r.person(11)
	ctl := r.g.Control()
	die := func(text string) outbound.Undelivered {
		r.t.Helper()
		r.tg.Block(ana.ID)
		r.say(ana, 11, text)
		r.stored("the dead part", `SELECT count(*) FROM parts WHERE state = 'dead'`, "1")
		r.tg.Unblock(ana.ID)
		list := r.undelivered("dead")
		if len(list) != 1 {
			r.t.Fatalf("dead letters %+v", list)
		}
		return list[0]
	}
	l := die("hello")
	if l.Text != "echo: hello" || l.State != workspace.PartDead || !strings.Contains(l.Error, "blocked") || !strings.Contains(l.Room, fmt.Sprint(ana.ID)) || l.Parts != 1 || l.Sent != 0 {
		r.t.Errorf("dead letter %+v", l)
	}
	if _, err := outbound.List.Call(r.t.Context(), ctl.Outbound, control.Call{Actor: workspace.Actor{Person: "x", Role: workspace.Member}}, outbound.ListIn{}); !errors.Is(err, workspace.ErrDenied) {
		r.t.Errorf("a member reads other people's answers: %v", err)
	}
	if list := r.undelivered("parked"); len(list) != 0 {
		r.t.Errorf("parked: %+v", list)
	}
	if _, err := outbound.List.Call(r.t.Context(), ctl.Outbound, operator(), outbound.ListIn{State: "sent"}); !errors.Is(err, workspace.ErrInvalid) {
		r.t.Errorf("what was sent is not undelivered: %v", err)
	}
	if _, err := outbound.Retry.Call(r.t.Context(), ctl.Outbound, operator(), control.ByID{ID: l.Short}); err != nil {
		r.t.Fatal(err)
	}
	if got := texts(r.wait(ana, 1)); !slices.Equal(got, []string{"echo: hello"}) {
		r.t.Errorf("after the retry %q", got)
	}
	r.stored("the sent part", `SELECT state FROM parts`, "sent")
	if _, err := outbound.Retry.Call(r.t.Context(), ctl.Outbound, operator(), control.ByID{ID: string(l.ID)}); !errors.Is(err, workspace.ErrNotFound) {
		r.t.Errorf("sent twice: %v", err)
	}
	l = die("again")
	if _, err := outbound.Drop.Call(r.t.Context(), ctl.Outbound, operator(), control.ByID{ID: string(l.ID)}); err != nil {
		r.t.Fatal(err)
	}
	if list := r.undelivered(""); len(list) != 0 {
		r.t.Errorf("after the drop %+v", list)
	}
	r.say(ana, 11, "next")
	if got := texts(r.wait(ana, 2)); got[1] != "echo: next" {
		r.t.Errorf("in the end %q", got)
	}
}

// R05: an answer that may have been sent says so when an operator sends it again.
func retriedDoubt(r *rig) {
	ana, ben := r.person(11), r.person(12)
	r.say(ben, 12, "warm up")
	r.wait(ben, 1)
	r.tg.AddFault(telegramtest.Fault{Method: "sendMessage", Do: telegramtest.CutAfter, Times: 1})
	r.say(ana, 11, "hello")
	r.stored("the dropped part", `SELECT count(*) FROM parts WHERE state = 'dead'`, "1")
	list := r.undelivered("")
	if len(list) != 1 {
		r.t.Fatalf("%+v", list)
	}
	if _, err := outbound.Retry.Call(r.t.Context(), r.g.Control().Outbound, operator(), control.ByID{ID: list[0].Short}); err != nil {
		r.t.Fatal(err)
	}
	if got := texts(r.wait(ana, 2)); !slices.Equal(got, []string{"echo: hello", "(maybe a repeat) echo: hello"}) {
		r.t.Errorf("ana has %q", got)
	}
}

// floods has a network refuse what is sent, for such a time.
func floods(after time.Duration) func(channels.Post) error {
	return func(channels.Post) error {
		return &channels.Error{Class: channels.Retry, After: after, Err: errors.New("flood")}
	}
}

// R06: an answer that could not be sent for longer than stale_after is not blasted out: its room is told once, with the
// messages that came meanwhile, and gets it when it asks.
func lateAnswers(r *rig, c *clock) {
	const ana, ben = 31, 32
	n := r.mem
	n.judges(r.peer(ana), floods(50*time.Minute))
	n.judges(r.peer(ben), floods(50*time.Minute))
	n.offer(r.t, r.wrote(ana, "1", "hello"), r.wrote(ben, "1", "hi"))
	r.stored("what waits", `SELECT state, tries FROM parts`, "ready|1", "ready|1")
	r.restart(func() {
		c.Move(30 * time.Hour)
		n.judges(r.peer(ana), nil)
		n.judges(r.peer(ben), nil)
	})
	defer c.Move(-30 * time.Hour)
	n.offer(r.t, r.wrote(ana, "2", "are you there?")) // of 30 hours ago
	if got := r.sent(ana, 1); got[0] != "I was away; 1 message came meanwhile, and 1 answer could not be sent in time. Send /resume to have them answered and get what I had to say." {
		r.t.Errorf("ana was told %q", got)
	}
	if got := r.sent(ben, 1); got[0] != "I was away; 1 answer could not be sent in time. Send /resume to get what I had to say." {
		r.t.Errorf("ben was told %q", got)
	}
	if list := r.undelivered("parked"); len(list) != 2 || list[0].Error != "past its age" {
		r.t.Errorf("parked: %+v", list)
	}
	r.restart() // tells nobody again
	resumes := func(who int64, id string) {
		in := r.wrote(who, id, "/resume")
		in.Time = time.Now().Add(30 * time.Hour)
		n.offer(r.t, in)
	}
	resumes(ana, "3")
	if got := r.sent(ana, 4)[1:]; !slices.Equal(got, []string{"I send 1 late answer and answer 1 message now.", "echo: hello", "echo: are you there?"}) &&
		!slices.Equal(got, []string{"echo: hello", "I send 1 late answer and answer 1 message now.", "echo: are you there?"}) {
		r.t.Errorf("after /resume ana has %q", got)
	}
	r.stored("parts", `SELECT p.state, count(*) FROM parts p JOIN outbound o ON o.id = p.outbound_id WHERE o.kind = 'answer' GROUP BY p.state ORDER BY p.state`, "parked|1", "sent|2")
	if got := memTexts(n.have(r.peer(ben))); len(got) != 1 {
		r.t.Errorf("ben has %q: ana's /resume is not his", got)
	}
	resumes(ben, "2")
	n.until(r.t, "ben's answer", func(list []memPost) bool { return slices.Contains(memTexts(of(r.peer(ben), list)), "echo: hi") })
}

// In a group one asks for one's own late answers; an owner for all.
func lateAnswersOfOthers(r *rig, c *clock) {
	const group, ana, ben = -5001, 31, 32
	n := r.mem
	n.judges(r.peer(group), floods(50*time.Minute))
	n.offer(r.t, r.wroteIn(group, ana, "0", "question of ana"))
	n.offer(r.t, r.wroteIn(group, ben, "1", "question of ben"))
	r.stored("what waits", `SELECT count(*) FROM runs WHERE state = 'completed'`, "2")
	r.restart(func() {
		c.Move(30 * time.Hour)
		n.judges(r.peer(group), nil)
	})
	defer c.Move(-30 * time.Hour)
	r.sent(group, 1)
	resume := r.wroteIn(group, ben, "9", "/resume")
	resume.Time = time.Now().Add(30 * time.Hour)
	n.offer(r.t, resume)
	n.until(r.t, "ben's answer", func(list []memPost) bool {
		return slices.ContainsFunc(memTexts(of(r.peer(group), list)), func(s string) bool { return strings.HasPrefix(s, "echo:") && strings.Contains(s, "ben") })
	})
	r.stored("parts", `SELECT p.state, count(*) FROM parts p JOIN outbound o ON o.id = p.outbound_id WHERE o.kind = 'answer' GROUP BY p.state ORDER BY p.state`, "parked|1", "sent|1")
}

// R05: a wait of hours that a network asked for outlives a restart.
func waitOutlivesARestart(r *rig) {
	const ana, ben = 31, 32
	r.mem.judges(r.peer(ana), floods(3*time.Hour))
	r.mem.offer(r.t, r.wrote(ana, "1", "hello"))
	r.stored("what waits", `SELECT state, tries FROM parts`, "ready|1")
	r.restart()
	r.mem.offer(r.t, r.wrote(ben, "1", "hi"))
	r.sent(ben, 1)
	r.restart(func() { // whatever was under way has come to its end
		if got := r.rows(`SELECT state, tries FROM parts ORDER BY outbound_id LIMIT 1`); got[0] != "ready|1" {
			r.t.Errorf("the part is %q: it was sent before its time", got)
		}
	})
}

// R10: a clock that jumps changes neither order nor ids, loses nothing and holds nothing up, in a running gateway
// and over a restart.
func jumpLosesNothing(r *rig, c *clock, jump time.Duration) {
	ana := r.person(11)
	say := func(i int) {
		r.t.Helper()
		r.say(ana, 11, fmt.Sprintf("m%d", i)) // the network's clock stays as it is
		if got := texts(r.wait(ana, i+1)); got[i] != fmt.Sprintf("echo: m%d", i) {
			r.t.Fatalf("answer %d: %q", i, got)
		}
	}
	say(0)
	c.Move(jump)
	say(1)
	r.tg.Album(telegramtest.In{Chat: ana.ID, From: r.user(11), Text: "m2"}, telegramtest.File{Type: "photo", Data: []byte("a")})
	r.wait(ana, 3)
	r.restart(func() { c.Move(-jump) })
	say(3)
	c.Move(jump)
	defer c.Move(-jump)
	say(4)
	got := r.rows(`SELECT state FROM inputs ORDER BY seq`)
	if !slices.Equal(got, []string{"answered", "answered", "answered", "answered", "answered"}) {
		r.t.Errorf("inputs %q", got)
	}
	if got := r.rows(`SELECT count(DISTINCT id) FROM inputs`); got[0] != "5" {
		r.t.Errorf("%s ids, want 5", got[0])
	}
}

// R10: what waits for a time that lies in the future only because the clock was set back is not waited for.
func retryDoesNotWait(r *rig, c *clock) {
	const back = 10 * 365 * 24 * time.Hour
	ana := r.person(11)
	r.tg.AddFault(telegramtest.Fault{Method: "sendMessage", Do: telegramtest.Reply, Status: 429, After: 30 * time.Second})
	r.say(ana, 11, "hello")
	r.stored("the refused part", `SELECT state, tries FROM parts`, "ready|1")
	r.restart(func() {
		r.tg.ClearFaults()
		c.Move(-back)
	})
	defer c.Move(back)
	ctx, cancel := context.WithTimeout(r.t.Context(), 15*time.Second)
	defer cancel()
	if got, err := r.tg.WaitSent(ctx, ana.ID, 1); err != nil || got[0].Text != "echo: hello" {
		r.t.Errorf("%v: %q", err, texts(got))
	}
}

// R10: a clock that is a year ahead sets the backlog aside, and says so; what comes live is answered all the same.
func clockIsWrongFromTheStart(r *rig, c *clock) {
	const ahead = 365 * 24 * time.Hour
	r.restart(func() { c.Move(ahead) })
	defer c.Move(-ahead - 10*time.Minute)
	ana := r.person(11)
	r.say(ana, 11, "right after the start") // it may have waited: nobody can tell
	if got := r.wait(ana, 1)[0].Text; !strings.HasPrefix(got, "I was away; 1 message") {
		r.t.Errorf("told %q", got)
	}
	r.logged("old messages and answers are set aside", 1)
	c.Move(10 * time.Minute)
	r.say(ana, 11, "hello")
	if got := r.wait(ana, 2)[1].Text; got != "echo: hello" {
		r.t.Errorf("what comes live is %q", got)
	}
	r.logged("clock seems to be wrong", 1)
}
