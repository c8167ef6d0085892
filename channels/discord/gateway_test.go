package discord

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"parley/channels"
	"parley/channels/discord/discordtest"
)

// TestEveryWayToLoseTheConnectionIsHealed: what was said around each of them is taken, once and in order.
func TestEveryWayToLoseTheConnectionIsHealed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		o          discordtest.Options
		break_     func(*rig)
		identifies int // beside the first; -1: not looked at
	}{
		"dropped":                      {break_: func(r *rig) { r.fake.DropAll() }},
		"dropped in the middle":        {break_: func(r *rig) { r.fake.Gateway(func(f *discordtest.GatewayFault) { f.HalfFrame = 1 }) }},
		"op 7":                         {break_: func(r *rig) { r.fake.Reconnect() }},
		"op 9, the session holds":      {break_: func(r *rig) { r.fake.Invalidate(true) }},
		"op 9, the session is gone":    {break_: func(r *rig) { r.fake.Invalidate(false) }, identifies: 1},
		"closed with 4000":             {break_: func(r *rig) { r.fake.CloseAll(4000) }},
		"closed with 4009":             {break_: func(r *rig) { r.fake.CloseAll(4009) }, identifies: 1},
		"closed with 1000":             {break_: func(r *rig) { r.fake.CloseAll(1000) }, identifies: -1},
		"session lost with the socket": {break_: func(r *rig) { r.loseSession() }, identifies: -1},
		"everything away for a while":  {break_: func(r *rig) { r.fake.Down(); _ = r.fake.Up() }},
		"half dead": {o: discordtest.Options{Heartbeat: 250 * time.Millisecond}, break_: func(r *rig) {
			r.fake.Gateway(func(f *discordtest.GatewayFault) { f.NoAck = true })
			r.lost()
			r.fake.Gateway(func(f *discordtest.GatewayFault) { f.NoAck = false })
		}, identifies: -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.o.NoLimits = true
			r := newRig(t, c.o)
			r.run()
			r.says(ana, dm, "before")
			r.says(ana, general, "in the channel")
			r.hears("before", "in the channel")
			began := r.fake.Line()
			c.break_(r)
			r.says(ana, dm, "meanwhile")
			r.says(ben, thread, "in a thread")
			r.hears("meanwhile", "in a thread")
			r.says(ana, dm, "after")
			r.hears("after")
			if got := r.j.texts(); len(got) != 5 {
				t.Errorf("taken %q, want each once", got)
			}
			switch {
			case c.identifies > 0:
				r.until("a new session", func(l discordtest.Line) bool { return l.Identifies == began.Identifies+c.identifies })
			case c.identifies == 0:
				r.until("to resume, where Discord said", func(l discordtest.Line) bool { return l.Resumed > 0 && l.ResumeURL > 0 })
			}
			if n := r.fake.Line().Identifies - began.Identifies; c.identifies >= 0 && n != c.identifies {
				t.Errorf("identified %d times more, want %d", n, c.identifies)
			}
		})
	}
}

// loseSession drops the connection with its session.
func (r *rig) loseSession() {
	r.t.Helper()
	r.until("a session", func(l discordtest.Line) bool { return l.Ready > 0 })
	before := r.fake.Line()
	r.fake.Gateway(func(f *discordtest.GatewayFault) { f.Lost = true })
	r.fake.DropAll()
	r.until("the next session", func(l discordtest.Line) bool { return l.Identifies+l.Resumed > before.Identifies+before.Resumed })
	r.fake.Gateway(func(f *discordtest.GatewayFault) { f.Lost = false })
}

func (r *rig) until(what string, cond func(discordtest.Line) bool) {
	r.t.Helper()
	if err := r.fake.WaitFor(r.ctx(), func() bool { return cond(r.fake.Line()) }); err != nil {
		r.t.Fatalf("%s: %v", what, err)
	}
}

// lost waits until the adapter tells that it has no connection.
func (r *rig) lost() {
	r.t.Helper()
	n := len(r.j.told())
	r.wait("the loss to be told", func() bool {
		return slices.ContainsFunc(r.j.told()[n:], func(s channels.Status) bool { return s.State == channels.Connecting })
	})
}

func TestServerThatSaysNothingIsLeft(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(*discordtest.GatewayFault, bool){
		"no hello": func(f *discordtest.GatewayFault, on bool) { f.NoHello = on },
		"no ready": func(f *discordtest.GatewayFault, on bool) { f.NoReady = on },
		"refused":  func(f *discordtest.GatewayFault, on bool) { f.Refuse = map[bool]int{true: 503}[on] },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, discordtest.Options{NoLimits: true})
			r.c.pace.hello, r.c.pace.ready = 300*time.Millisecond, 300*time.Millisecond
			r.fake.Gateway(func(f *discordtest.GatewayFault) { fault(f, true) })
			r.launch()
			r.wait("the reason", func() bool { return has(fmt.Sprint(r.j.told()), "discord gateway") })
			r.fake.Gateway(func(f *discordtest.GatewayFault) { fault(f, false) })
			r.wait("ready", func() bool { return r.j.last().State == channels.Ready })
		})
	}
}

func TestFatalClosesEndWithWhatToDo(t *testing.T) {
	t.Parallel()
	for code, word := range map[int]string{4004: "token", 4011: "servers", 4012: "update", 4014: "Message Content"} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, discordtest.Options{NoLimits: true})
			r.run()
			r.fake.CloseAll(code)
			select {
			case err := <-r.over:
				r.stop()
				r.stop = nil
				if channels.ClassOf(err) != channels.Fatal {
					t.Errorf("Run ended with %v, want fatal", err)
				}
			case <-r.ctx().Done():
				t.Fatal("Run goes on")
			}
			if s := r.j.last(); s.State != channels.Failed || !has(s.Hint, word) {
				t.Errorf("told %+v, want what to do about %q", s, word)
			}
		})
	}
}

func TestMissingMessageContentIsSaidAtStart(t *testing.T) {
	t.Parallel()
	r := newRig(t, discordtest.Options{NoLimits: true, NoContent: true})
	r.run()
	if s := r.j.last(); !has(s.Cause, "MESSAGE_CONTENT") || !has(s.Hint, "Message Content Intent") {
		t.Errorf("told %+v", s)
	}
	r.says(ana, general, "nobody is meant")
	r.says(ana, general, "<@"+r.fake.Bot().ID+"> you are")
	r.says(ana, dm, "in private")
	r.hears("you are", "in private")
	if got := r.j.texts(); len(got) != 2 {
		t.Errorf("taken %q", got)
	}
	var bad []channels.Finding
	for _, f := range r.c.Check(r.ctx()) {
		if !f.OK {
			bad = append(bad, f)
		}
	}
	if len(bad) != 1 || !has(bad[0].Hint, "Message Content Intent") {
		t.Errorf("doctor finds %+v", bad)
	}
}

func TestSessionsAreNotWasted(t *testing.T) {
	t.Parallel()
	r := newRig(t, discordtest.Options{Starts: 300})
	r.c.pace.identify = usualPace().identify
	r.run()
	for range 4 {
		r.fake.Invalidate(false) // each asks for a new session; Discord takes one in five seconds
	}
	r.until("the next session", func(l discordtest.Line) bool { return l.Identifies > 1 && l.Ready > 0 })
	if n := r.fake.Line().Identifies; n != 2 {
		t.Errorf("identified %d times, want the second only after its five seconds", n)
	}
}

func TestNoSessionsLeftIsSaidAndWaitedFor(t *testing.T) {
	t.Parallel()
	r := newRig(t, discordtest.Options{Starts: 1})
	r.run()
	r.end()
	r.c, r.logs = adapter(t, r.fake)
	r.launch()
	r.wait("what is the matter", func() bool { return r.j.last().State == channels.Needs })
	if s := r.j.last(); !has(s.Hint, "no more sessions", "4h0m") || r.fake.Line().Identifies != 1 {
		t.Errorf("told %+v after %d identifies; one more would have cost the token", s, r.fake.Line().Identifies)
	}
}

// TestTheEndOfASessionIsNotAFailure: whatever broke before, the next session begins when Discord asks for it.
func TestTheEndOfASessionIsNotAFailure(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*rig){
		"op 9": func(r *rig) { r.loseSession() },
		"closed": func(r *rig) {
			r.fake.Gateway(func(f *discordtest.GatewayFault) { f.CloseResume = 4009 })
			r.fake.DropAll()
			r.until("another session", func(l discordtest.Line) bool { return l.Identifies == 2 })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, discordtest.Options{NoLimits: true})
			// What is counted as a failure is waited for longer than this test can.
			r.c.pace.first, r.c.pace.longest, r.c.pace.settled, r.c.pace.greeted = time.Hour, time.Hour, time.Hour, time.Millisecond
			r.run()
			for i := range 8 { // none of these holds for long
				r.fake.DropAll()
				r.until("to resume", func(l discordtest.Line) bool { return l.Resumed > i })
				r.says(ana, dm, fmt.Sprint(i))
				r.hears(fmt.Sprint(i)) // so it is up
			}
			lose(r)
			r.until("another session", func(l discordtest.Line) bool { return l.Identifies == 2 && l.Ready > 0 })
		})
	}
}

func TestPauseFollowsHowItEnded(t *testing.T) {
	t.Parallel()
	p := usualPace()
	for _, c := range []struct {
		name     string
		e        end
		failures int
		gone     bool
		from, to time.Duration
	}{
		{"a refused session", end{kind: endInvalid}, 0, true, time.Second, 5 * time.Second},
		{"a refused session behind an outage", end{kind: endInvalid, resuming: true}, 20, true, time.Second, 5 * time.Second},
		{"refused for now", end{kind: endInvalid, resumable: true}, 20, false, time.Second, 5 * time.Second},
		{"timed out while resuming", end{kind: endClosed, code: 4009, resuming: true}, 20, true, time.Second, 5 * time.Second},
		{"asked to reconnect", end{kind: endReconnect, up: time.Hour}, 0, false, 0, 0},
		{"dropped after a while", end{kind: endDropped, up: 3 * time.Second}, 20, false, 0, 2 * time.Second},
		{"not reached", end{kind: endUnreached}, 0, false, 250 * time.Millisecond, 500 * time.Millisecond},
		{"not reached for long", end{kind: endUnreached}, 20, false, 30 * time.Second, time.Minute},
		{"asked to wait", end{kind: endUnreached, after: 2 * time.Minute}, 0, false, 2 * time.Minute, 2 * time.Minute},
	} {
		for range 200 {
			if got := p.pause(c.e, c.failures, c.gone); got < c.from || got > c.to {
				t.Fatalf("%s: %s, want %s to %s", c.name, got, c.from, c.to)
			}
		}
	}
}

// TestALoopNeverUsesUpTheSessions: a day in which every session ends as soon as it is begun, by a clock of its own.
func TestALoopNeverUsesUpTheSessions(t *testing.T) {
	t.Parallel()
	const day, total = 24 * time.Hour, 1000
	p := usualPace()
	left, last, quick, longest := total, -day, 0, time.Duration(0)
	for now := time.Duration(0); now < day; {
		l := startLimit{Total: total, Remaining: left, After: float64((day - now).Milliseconds())}
		if wait := l.wait(now - last); wait > 0 {
			if left > total/10 {
				t.Fatalf("with %d left it waits %s", left, wait)
			}
			longest, now = max(longest, wait), now+wait
			continue
		}
		if since := now - last; since < time.Minute {
			quick++
		}
		left, last = left-1, now
		now += p.pause(end{kind: endInvalid}, total, true)
	}
	if left < 0 || quick < total/2 || longest > 30*time.Minute { // else they were used up long before the day's end
		t.Errorf("%d are left, %d began within a minute of another, the longest wait was %s", left, quick, longest)
	}
	if (startLimit{Total: total, After: 1000}).wait(day) != time.Minute || (startLimit{}).wait(0) != 0 || (startLimit{Total: total, Remaining: 1, After: 3.6e6}).wait(2*time.Hour) != 0 {
		t.Error("none left, none told, or held for long enough")
	}
}

func TestFewSessionsLeftAreSpread(t *testing.T) {
	t.Parallel()
	r := newRig(t, discordtest.Options{Starts: 5})
	r.run()
	r.fake.Invalidate(false)
	r.wait("what is the matter", func() bool { return r.j.last().State == channels.Needs })
	if s := r.j.last(); !has(s.Hint, "only 4 more sessions", "1h0m") || r.fake.Line().Identifies != 1 {
		t.Errorf("told %+v after %d identifies", s, r.fake.Line().Identifies)
	}
}

// TestR03_DisturbedEventsAreTakenOnce: a third is dispatched twice, a third in the wrong order, and sockets break all the time.
func TestR03_DisturbedEventsAreTakenOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, discordtest.Options{NoLimits: true, Seed: 7})
	r.run()
	r.says(ana, dm, "hello")
	r.says(ana, general, "hello all")
	r.hears("hello", "hello all")
	r.fake.Gateway(func(f *discordtest.GatewayFault) { f.Repeat, f.Reorder = 0.3, 0.3 })
	const n = 120
	for i := range n {
		switch i % 24 {
		case 5:
			r.fake.DropAll()
		case 11:
			r.fake.Gateway(func(f *discordtest.GatewayFault) { f.HalfFrame = 1 })
		case 17:
			r.fake.Reconnect()
		case 23:
			r.loseSession()
		}
		where := []string{dm, general, thread}[i%3]
		r.says(ana, where, fmt.Sprintf("%s %d", where, i))
		if i%6 == 3 { // so that breaks meet events that are on their way, and there is something to resume
			r.wait("what was said before", func() bool { return r.j.count(channels.KindMessage) >= i-6 })
		}
	}
	r.fake.Gateway(func(f *discordtest.GatewayFault) { *f = discordtest.GatewayFault{} })
	r.says(ana, dm, "the end") // gives out what is held for reordering
	r.says(ana, dm, "the very end")
	r.wait("all messages", func() bool { return r.j.count(channels.KindMessage) >= n+4 })
	if got := r.j.count(channels.KindMessage); got != n+4 {
		t.Errorf("%d messages taken, want %d", got, n+4)
	}
	for _, in := range r.j.all() {
		var where string
		var i int
		if c, _ := fmt.Sscanf(in.Text, "%s %d", &where, &i); c == 2 && r.at(where) != in.To {
			t.Errorf("%q was taken at %s", in.Text, in.To)
		}
	}
	r.j.mu.Lock() // the connection still lives
	defer r.j.mu.Unlock()
	t.Logf("%d offers, %d of them again, %+v", r.j.offers, r.j.again, r.fake.Line())
}

// TestR14_ADayOfReconnectsLeavesNothingBehind: one a minute for 24 hours, of every kind, with a message after each.
func TestR14_ADayOfReconnectsLeavesNothingBehind(t *testing.T) {
	const minutes = 24 * 60
	var clock atomic.Int64
	began := time.Now()
	r := newRig(t, discordtest.Options{NoLimits: true, Now: func() time.Time { return began.Add(time.Duration(clock.Load()) * time.Minute) }})
	r.run()
	r.says(ana, dm, "hello")
	r.hears("hello")
	var first usage
	for i := range minutes {
		clock.Add(1)
		n := r.j.count(channels.KindMessage)
		switch i % 6 {
		case 0:
			r.fake.DropAll()
		case 1:
			r.fake.Reconnect()
		case 2:
			r.fake.Invalidate(i%4 == 0)
		case 3:
			r.fake.CloseAll(4000)
		case 4:
			r.fake.Gateway(func(f *discordtest.GatewayFault) { f.HalfFrame = 1 })
		case 5:
			r.loseSession()
		}
		r.says(ana, dm, "minute")
		r.wait("the message of the minute", func() bool { return r.j.count(channels.KindMessage) > n })
		r.fake.Expire() // it keeps what a session that was left may still ask for
		if i == minutes/4 {
			first = r.measure()
		}
	}
	last := r.measure()
	t.Logf("%d reconnects: a quarter in %+v, at the end %+v", minutes, first, last)
	if last.goroutines > first.goroutines+5 || last.fds > first.fds+5 {
		t.Errorf("grew from %+v to %+v", first, last)
	}
	// The fake and this journal keep every message; the adapter must not.
	if grown := last.heap - first.heap; grown > 24<<20 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
	if got := r.j.count(channels.KindMessage); got != minutes+1 {
		t.Errorf("%d messages taken, want %d", got, minutes+1)
	}
}

type usage struct {
	goroutines, fds int
	heap            int64
}

func (r *rig) measure() usage {
	r.t.Helper()
	r.wait("ready", func() bool { return r.j.last().State == channels.Ready })
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		r.t.Skip("no /proc")
	}
	return usage{runtime.NumGoroutine(), len(fds), int64(m.HeapAlloc)}
}
