package lane_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"parley/agentloop"
	"parley/agentloop/lane"
	"parley/workspace"
)

// suspends holds each turn that was not woken yet, and notes what it sees.
func suspends(w *worker, after int64) func(*lane.Turn) {
	return func(t *lane.Turn) {
		switch cause := context.Cause(t.Context()); {
		case cause != nil:
			w.note("%s ended: %v", texts(t.Inputs), cause)
		case t.Begun == "again":
			more := t.Boundary()
			w.note("%s goes on%s", texts(t.Inputs[:len(t.Inputs)-len(more)]), map[bool]string{true: " with " + texts(more)}[len(more) > 0])
		case t.Inputs[0].Text == "ask":
			w.note("ask waits")
			t.Hold("again", "it waits", after)
		default:
			w.note("%s", texts(t.Inputs))
		}
	}
}

func other(seq int64, text string) workspace.Input {
	i := in(seq, text)
	i.Person = "ben"
	return i
}

func TestAHeldTurnKeepsItsSessionAndNoPlace(t *testing.T) {
	w := &worker{}
	w.do = suspends(w, lane.Never)
	bubble(t, 1, w, settings(lane.Steer), func(t *testing.T, ls *lane.Lanes) {
		ls.Offer("k", in(1, "ask"))
		want(t, w, "ask waits")
		if _, busy := ls.Count(); busy != 0 {
			t.Errorf("it has %d places", busy)
		}
		if v := ls.Look("k"); !v.Running || !v.Asleep || v.Held != "it waits" || v.Requester != "ana" {
			t.Errorf("it looks like %+v", v)
		}
		ls.Offer("other", in(2, "x")) // the one place is free
		synctest.Wait()
		ls.Offer("k", other(3, "b"))
		ls.Offer("k", other(4, "c")) // told once
		ls.Offer("k", in(1, "ask"))  // the scan tells again
		want(t, w, "ask waits", "x", "b is behind: it waits")
		ls.Wake("k")
		want(t, w, "ask waits", "x", "b is behind: it waits", "ask goes on", "b", "c")
		ls.Wake("k")
		ls.Wake("nobody")
	})
}

func TestANewMessageOfItsRequesterWakesAHeldTurn(t *testing.T) {
	for name, c := range map[string]struct {
		after int64
		in    workspace.Input
		want  []string
	}{
		"later":            {2, in(3, "no"), []string{"ask waits", "ask goes on with no"}},
		"before":           {3, in(3, "no"), []string{"ask waits", "no is behind: it waits"}},
		"never":            {lane.Never, in(3, "no"), []string{"ask waits", "no is behind: it waits"}},
		"a command":        {2, command(3, "/new"), []string{"ask waits", "ask goes on", "command /new"}},
		"somebody else's":  {2, other(3, "no"), []string{"ask waits", "no is behind: it waits"}},
		"an older message": {2, in(2, "no"), []string{"ask waits", "no is behind: it waits"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := &worker{}
			w.do = suspends(w, c.after)
			bubble(t, 2, w, settings(lane.Steer), func(t *testing.T, ls *lane.Lanes) {
				ls.Offer("k", in(1, "ask"))
				synctest.Wait()
				ls.Offer("k", c.in)
				want(t, w, c.want...)
			})
		})
	}
}

// A wake-up, a stop and a message that come before the turn is held are not lost.
func TestNothingThatComesBeforeTheHoldIsLost(t *testing.T) {
	for name, do := range map[string]func(ls *lane.Lanes){
		"wake":    func(ls *lane.Lanes) { ls.Wake("k") },
		"stop":    func(ls *lane.Lanes) { ls.Cancel("k", agentloop.ErrStopped, func(workspace.Input) bool { return true }) },
		"message": func(ls *lane.Lanes) { ls.Offer("k", in(5, "no")) },
	} {
		t.Run(name, func(t *testing.T) {
			w := &worker{}
			first := true
			w.do = func(tn *lane.Turn) {
				if first {
					first = false
					tn.Shown()
					do(w.lanes)
					tn.Hold("again", "it waits", 2)
					return
				}
				suspends(w, 2)(tn)
			}
			bubble(t, 1, w, settings(lane.Steer), func(t *testing.T, ls *lane.Lanes) {
				w.lanes = ls
				ls.Offer("k", in(1, "ask"))
				want(t, w, map[string]string{"wake": "ask goes on", "stop": "ask ended: stopped by a person", "message": "ask goes on with no"}[name])
				if v := ls.Look("k"); v.Running {
					t.Errorf("it looks like %+v", v)
				}
			})
		})
	}
}

// A stop ends a held turn although all places are taken.
func TestAStopNeedsNoPlace(t *testing.T) {
	w := &worker{}
	hold := suspends(w, lane.Never)
	w.do = func(t *lane.Turn) {
		if t.Key == "long" {
			until(w)(t)
			return
		}
		hold(t)
	}
	bubble(t, 1, w, settings(lane.Steer), func(t *testing.T, ls *lane.Lanes) {
		ls.Offer("k", in(1, "ask"))
		synctest.Wait()
		ls.Offer("long", in(2, "long"))
		synctest.Wait()
		if !ls.Cancel("k", agentloop.ErrStopped, func(workspace.Input) bool { return true }) {
			t.Error("it was not found")
		}
		want(t, w, "ask waits", "ask ended: stopped by a person")
		close(w.open)
		want(t, w, "ask waits", "ask ended: stopped by a person", "long")
	})
}

func TestAParkedTurnOfAnEarlierBootGoesOn(t *testing.T) {
	w := &worker{}
	w.do = suspends(w, lane.Never)
	bubble(t, 1, w, settings(lane.Steer), func(t *testing.T, ls *lane.Lanes) {
		ls.Park("k", "again", "it waits", lane.Never, in(1, "ask"))
		ls.Park("left", "again", "it waits", lane.Never, in(2, "ask"))
		ls.Offer("k", in(3, "b"))
		want(t, w, "b is behind: it waits")
		ls.Wake("k")
		want(t, w, "b is behind: it waits", "ask goes on with b")
		ls.Wake("left") // a shutdown would leave it as it is
		synctest.Wait()
	})
}

// Whatever comes in whatever order, a held turn never runs twice at once, its session's other turns wait for it, and
// nothing that was offered is forgotten once it has gone on.
func TestHeldTurnsLoseNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		acts := rapid.SliceOfN(rapid.IntRange(0, 5), 1, 30).Draw(rt, "acts")
		w := &worker{}
		w.do = suspends(w, 1<<40)
		synctest.Test(t, func(t *testing.T) {
			ls := lane.New(t.Context(), 2, w, func(string) lane.Settings { return settings(lane.Followup) }, time.Now)
			offered := 0
			for i, a := range acts {
				seq := int64(i + 1)
				switch a {
				case 0, 1:
					ls.Offer("k", in(seq, "ask"))
					offered++
				case 2:
					ls.Offer("k", other(seq, fmt.Sprintf("m%d", i)))
					offered++
				case 3, 4:
					ls.Wake("k")
				case 5:
					synctest.Wait()
				}
			}
			for range 2 * len(acts) {
				synctest.Wait()
				ls.Wake("k")
			}
			synctest.Wait()
			if w.twice {
				t.Fatal("two turns of one session at once")
			}
			if v := ls.Look("k"); v.Running || len(v.Waiting) > 0 {
				t.Fatalf("left: %+v after %d", v, offered)
			}
			ls.Drain(t.Context())
		})
	})
}
