package lane_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"parley/agentloop"
	"parley/agentloop/lane"
	"parley/channels"
	"parley/workspace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// worker is a Handler in memory: each turn does what do says, or ends at once.
type worker struct {
	do func(t *lane.Turn)
	// what turns wait for; made inside the bubble
	step, open, gone chan struct{}
	lanes            *lane.Lanes

	mu      sync.Mutex
	log     []string // what happened, in order
	running map[string]int
	most    int // turns at once, ever
	twice   bool
}

func (w *worker) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, fmt.Sprintf(format, args...))
}

func (w *worker) notes() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.log)
}

func (w *worker) Turn(_ context.Context, t *lane.Turn) {
	w.mu.Lock()
	if w.running == nil {
		w.running = map[string]int{}
	}
	w.running[t.Key]++
	w.twice = w.twice || w.running[t.Key] > 1
	n := 0
	for _, r := range w.running {
		n += r
	}
	w.most = max(w.most, n)
	w.mu.Unlock()
	if w.do != nil {
		w.do(t)
	} else {
		w.note("%s", texts(t.Inputs))
	}
	w.mu.Lock()
	w.running[t.Key]--
	w.mu.Unlock()
}

func (w *worker) Command(_ context.Context, _ string, in workspace.Input) {
	w.note("command %s", in.Text)
}
func (w *worker) Waits(key string, inputs []workspace.Input, why string) {
	w.note("%s waits: %s", texts(inputs), why)
}
func (w *worker) Behind(_ string, in workspace.Input, why string) {
	w.note("%s is behind: %s", in.Text, why)
}
func (w *worker) Late(_ string, in workspace.Input) { w.note("late %s", in.Text) }
func (w *worker) Dropped(_ string, dropped []workspace.Input, line bool) {
	w.note("dropped %s %v", texts(dropped), line)
}

func texts(list []workspace.Input) string {
	s := ""
	for _, in := range list {
		s += in.Text
	}
	return s
}

// in is a message of a person, numbered in the order of the journal.
func in(seq int64, text string) workspace.Input {
	return workspace.Input{Seq: seq, ID: workspace.InputID(fmt.Sprint(seq)), Kind: channels.KindMessage, Mode: workspace.ModeTurn, Person: "ana", RoomID: "r", Text: text}
}

func command(seq int64, text string) workspace.Input {
	i := in(seq, text)
	i.Mode = workspace.ModeCommand
	return i
}

func settings(mode string) lane.Settings {
	return lane.Settings{Mode: mode, Debounce: 700 * time.Millisecond, Cap: 20, Overflow: "summarize"}
}

// bubble runs a test where time is only what the test lets pass.
func bubble(t *testing.T, turns int, w *worker, set lane.Settings, f func(t *testing.T, ls *lane.Lanes)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w.step, w.open, w.gone = make(chan struct{}), make(chan struct{}), make(chan struct{})
		ls := lane.New(t.Context(), turns, w, func(string) lane.Settings { return set }, time.Now)
		f(t, ls)
		ls.Drain(t.Context())
		if lanes, busy := ls.Count(); lanes != 0 || busy != 0 {
			t.Errorf("%d lanes and %d places are left", lanes, busy)
		}
	})
}

func want(t *testing.T, w *worker, list ...string) {
	t.Helper()
	synctest.Wait()
	if got := w.notes(); !slices.Equal(got, list) {
		t.Errorf("happened %q, want %q", got, list)
	}
}

// until blocks a turn until it is let go or its context ends, and notes how.
func until(w *worker) func(*lane.Turn) {
	return func(t *lane.Turn) {
		select {
		case <-w.open:
		case <-t.Context().Done():
			w.note("%s ended: %v", texts(t.Inputs), context.Cause(t.Context()))
			return
		}
		w.note("%s", texts(t.Inputs))
	}
}

// R02: in one session the order is the journal's, whatever order the commits are told in.
func TestR02_LaneKeepsTheJournalsOrder(t *testing.T) {
	w := &worker{}
	w.do = until(w)
	bubble(t, 8, w, settings(lane.Followup), func(t *testing.T, ls *lane.Lanes) {
		ls.Offer("k", in(1, "a"))
		synctest.Wait()
		for _, seq := range []int64{4, 2, 5, 3} {
			ls.Offer("k", in(seq, string(rune('a'+seq-1))))
		}
		ls.Offer("k", in(3, "c")) // the scan tells again
		ls.Offer("k", in(1, "a"))
		close(w.open)
		want(t, w, "a", "b", "c", "d", "e")
	})
}

// R02: any mix of messages over sessions: each session in order and one turn at a time, never more turns than the cap.
func TestR02_AnyMixKeepsOrderUnderTheCap(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cap := rapid.IntRange(1, 4).Draw(rt, "cap")
		mix := rapid.SliceOfN(rapid.IntRange(0, 5), 1, 60).Draw(rt, "sessions")
		delays := rapid.SliceOfN(rapid.IntRange(0, 3), len(mix), len(mix)).Draw(rt, "ms")
		w := &worker{}
		w.do = func(t *lane.Turn) {
			timer := time.NewTimer(time.Duration(t.Inputs[0].Seq%7) * time.Millisecond)
			<-timer.C
			w.note("%s:%d", t.Key, t.Inputs[0].Seq)
		}
		set := settings(lane.Followup)
		set.Cap = 0
		synctest.Test(t, func(t *testing.T) {
			ls := lane.New(t.Context(), cap, w, func(string) lane.Settings { return set }, time.Now)
			for i, session := range mix {
				<-time.After(time.Duration(delays[i]) * time.Millisecond)
				ls.Offer(fmt.Sprint(session), in(int64(i+1), "x"))
			}
			<-time.After(time.Hour)
			ls.Drain(t.Context())
		})
		if w.twice || w.most > cap {
			rt.Fatalf("two turns of a session at once: %v; %d turns at once of %d", w.twice, w.most, cap)
		}
		last := map[string]int64{}
		for _, line := range w.notes() {
			var session string
			var seq int64
			if _, err := fmt.Sscanf(line, "%1s:%d", &session, &seq); err != nil {
				rt.Fatal(err)
			}
			if seq <= last[session] {
				rt.Fatalf("session %s: %d after %d", session, seq, last[session])
			}
			last[session] = seq
		}
		if len(w.notes()) != len(mix) {
			rt.Fatalf("%d of %d messages had their turn", len(w.notes()), len(mix))
		}
	})
}

func TestSessionsRunSideBySideUpToTheCap(t *testing.T) {
	w := &worker{}
	w.do = until(w)
	bubble(t, 3, w, settings(lane.Steer), func(t *testing.T, ls *lane.Lanes) {
		for i := range int64(10) {
			ls.Offer(fmt.Sprint(i), in(i+1, "x"))
		}
		synctest.Wait()
		if _, busy := ls.Count(); busy != 3 {
			t.Errorf("%d turns at once, want 3", busy)
		}
		close(w.open)
		synctest.Wait()
		if len(w.notes()) != 10 || w.most != 3 {
			t.Errorf("%d turns done, %d at once", len(w.notes()), w.most)
		}
	})
}

// R07: what one person leaves hanging in many sessions holds up that person, and nobody else.
func TestR07_HungTurnsOfOnePersonLeavePlacesForOthers(t *testing.T) {
	w := &worker{}
	do := until(w)
	w.do = func(turn *lane.Turn) {
		if turn.Inputs[0].Person == "eve" {
			do(turn)
			return
		}
		w.note("%s of %s", texts(turn.Inputs), turn.Inputs[0].Person)
	}
	set := settings(lane.Steer)
	set.Sign = 5 * time.Second
	bubble(t, 16, w, set, func(t *testing.T, ls *lane.Lanes) {
		of := func(seq int64, who workspace.PersonID) workspace.Input {
			i := in(seq, fmt.Sprint(seq))
			i.Person = who
			return i
		}
		for seq := range int64(10) {
			ls.Offer(fmt.Sprint("eve", seq), of(seq+1, "eve"))
		}
		synctest.Wait()
		if _, busy := ls.Count(); busy != 8 {
			t.Errorf("one person has %d of 16 turns", busy)
		}
		if ls.Reserve("eve too", "eve") {
			t.Error("and reserves one more")
		}
		var waiting []int64 // which of the ten found no place is chance
		for seq := range int64(10) {
			if strings.Contains(ls.Look(fmt.Sprint("eve", seq)).Held, "one person has at most 8") {
				waiting = append(waiting, seq)
			}
		}
		if len(waiting) != 2 {
			t.Fatalf("it is said why these wait: %v", waiting)
		}
		first, second := fmt.Sprint("eve", waiting[0]), waiting[1]
		for seq := range int64(20) {
			ls.Offer(fmt.Sprint("ana", seq), of(seq+100, "ana"))
		}
		synctest.Wait()
		if n := len(w.notes()); n != 20 {
			t.Errorf("%d of 20 turns of another person were done", n)
		}
		<-time.After(set.Sign + time.Second)
		synctest.Wait()
		told := w.notes()[20:]
		if len(told) != 2 || !strings.Contains(told[0], "waits: one person has at most 8") {
			t.Errorf("told %q", told)
		}
		stopped := w.notes()
		if !ls.Cancel(first, agentloop.ErrStopped, func(workspace.Input) bool { return true }) {
			t.Error("what waits cannot be stopped")
		}
		synctest.Wait()
		if len(w.notes()) != len(stopped) || ls.Look(first).Running {
			t.Error("what was stopped before it had a place begins all the same")
		}
		close(w.open)
		synctest.Wait()
		if last := w.notes(); !slices.Contains(last, fmt.Sprint(second+1)) || slices.Contains(last, fmt.Sprint(waiting[0]+1)) {
			t.Errorf("in the end %q", last)
		}
	})
}

// A turn that waits for a place is served in the journal's order, whatever order its session came in.
func TestWaitingTurnsHaveTheirPlaceInTheJournalsOrder(t *testing.T) {
	w := &worker{}
	w.do = until(w)
	bubble(t, 1, w, settings(lane.Steer), func(t *testing.T, ls *lane.Lanes) {
		ls.Offer("first", in(1, "a"))
		synctest.Wait()
		for _, seq := range []int64{5, 3, 4, 2} {
			ls.Offer(fmt.Sprint(seq), in(seq, string(rune('a'+seq-1))))
			synctest.Wait()
		}
		close(w.open)
		want(t, w, "a", "b", "c", "d", "e")
	})
}

func TestMessageWithinDebounceRestartsThreeTimes(t *testing.T) {
	w := &worker{}
	w.do = func(turn *lane.Turn) {
		for {
			select {
			case <-w.open:
			case <-turn.Context().Done():
				if !errors.Is(context.Cause(turn.Context()), agentloop.ErrRestart) {
					w.note("ended: %v", context.Cause(turn.Context()))
					return
				}
				w.note("restart with %s", texts(turn.Restart()))
				continue
			}
			if turn.Seal() == nil {
				w.note("answered %s", texts(turn.Inputs))
				return
			}
		}
	}
	bubble(t, 8, w, settings(lane.Steer), func(t *testing.T, ls *lane.Lanes) {
		for i := range int64(5) {
			ls.Offer("k", in(i+1, string(rune('a'+i))))
			<-time.After(600 * time.Millisecond)
			synctest.Wait()
		}
		want(t, w, "restart with b", "restart with c", "restart with d")
		close(w.open)
		want(t, w, "restart with b", "restart with c", "restart with d", "answered abcd", "answered e")
	})
}

// An edit right behind its message is taken in, whatever the mode; what else waits stays where the mode wants it.
func TestEditWithinTheDebounceIsTakenIn(t *testing.T) {
	for _, mode := range []string{lane.Steer, lane.Followup, lane.Collect, lane.Interrupt} {
		t.Run(mode, func(t *testing.T) {
			w := &worker{}
			w.do = func(turn *lane.Turn) {
				for {
					select {
					case <-w.open:
					case <-turn.Context().Done():
						w.note("restart with %s: %v", texts(turn.Restart()), context.Cause(turn.Context()))
						continue
					}
					if turn.Seal() == nil {
						w.note("answered %s", texts(turn.Inputs))
						return
					}
				}
			}
			bubble(t, 8, w, settings(mode), func(t *testing.T, ls *lane.Lanes) {
				ls.Offer("k", in(1, "a"))
				synctest.Wait()
				<-time.After(300 * time.Millisecond)
				if mode == lane.Followup {
					ls.Offer("k", in(2, "b"))
				}
				edit := in(3, "A")
				edit.Kind = channels.KindEdit
				ls.Steer("k", edit)
				synctest.Wait()
				<-time.After(time.Second)
				late := in(4, "Z")
				late.Kind = channels.KindEdit
				ls.Steer("k", late) // too late to begin again
				synctest.Wait()
				close(w.open)
				list := []string{"restart with A: <nil>", "answered aA"}
				if mode == lane.Followup {
					list = append(list, "answered b")
				}
				want(t, w, append(list, "late Z")...)
			})
		})
	}
}

func TestNothingRestartsAfterTheDebounceOrWhenSomethingWasShown(t *testing.T) {
	for _, c := range []struct {
		name  string
		mode  string
		wait  time.Duration
		shown bool
		by    workspace.PersonID
	}{
		{"too late", lane.Steer, 800 * time.Millisecond, false, "ana"},
		{"shown", lane.Steer, 0, true, "ana"},
		{"followup", lane.Followup, 0, false, "ana"},
		{"another person", lane.Steer, 0, false, "ben"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := &worker{}
			do := until(w)
			w.do = func(t *lane.Turn) {
				if c.shown {
					t.Shown()
				}
				do(t)
			}
			bubble(t, 8, w, settings(c.mode), func(t *testing.T, ls *lane.Lanes) {
				ls.Offer("k", in(1, "a"))
				synctest.Wait()
				<-time.After(c.wait)
				second := in(2, "b")
				second.Person = c.by
				ls.Offer("k", second)
				synctest.Wait()
				close(w.open)
				want(t, w, "a", "b")
			})
		})
	}
}

func TestBoundaryTakesTheRequestersMessagesOnly(t *testing.T) {
	w := &worker{}
	w.do = func(t *lane.Turn) {
		if t.Inputs[0].Seq != 1 {
			w.note("turn %s", texts(t.Inputs))
			return
		}
		t.Shown()
		<-w.step
		w.note("boundary %s", texts(t.Boundary()))
		<-w.open
		w.note("turn %s", texts(t.Inputs))
	}
	bubble(t, 8, w, settings(lane.Steer), func(t *testing.T, ls *lane.Lanes) {
		ls.Offer("k", in(1, "a"))
		synctest.Wait()
		other := in(3, "c")
		other.Person = "ben"
		elsewhere := in(4, "d")
		elsewhere.RoomID = "another room"
		for _, i := range []workspace.Input{in(2, "b"), other, elsewhere, in(5, "e"), command(6, "/new"), in(7, "g")} {
			ls.Offer("k", i)
		}
		close(w.step)
		want(t, w, "boundary be") // not what stands behind the command
		close(w.open)
		want(t, w, "boundary be", "turn abe", "turn c", "turn d", "command /new", "turn g")
	})
}

// T10: nobody else's message is taken in by any way there is.
func TestT10_TurnHasOneRequesterInEveryMode(t *testing.T) {
	for _, mode := range []string{lane.Steer, lane.Followup, lane.Collect, lane.Interrupt} {
		t.Run(mode, func(t *testing.T) {
			w := &worker{}
			w.do = func(t *lane.Turn) {
				select {
				case <-w.open:
				case <-t.Context().Done():
				}
				t.Boundary()
				for _, in := range t.Inputs {
					if in.Person != t.Inputs[0].Person {
						w.note("%s in a turn of %s", in.Person, t.Inputs[0].Person)
					}
				}
			}
			bubble(t, 8, w, settings(mode), func(t *testing.T, ls *lane.Lanes) {
				for i := range int64(9) {
					m := in(i+1, "x")
					m.Person = workspace.PersonID(fmt.Sprint(i % 3))
					ls.Offer("k", m)
				}
				synctest.Wait()
				close(w.open)
				want(t, w)
			})
		})
	}
}

func TestEditIsSteeredInInEveryModeOrComesTooLate(t *testing.T) {
	for _, mode := range []string{lane.Steer, lane.Followup, lane.Collect} {
		t.Run(mode, func(t *testing.T) {
			w := &worker{}
			w.do = func(t *lane.Turn) {
				t.Shown()
				<-w.step
				w.note("boundary %s", texts(t.Boundary()))
				<-w.open
			}
			bubble(t, 8, w, settings(mode), func(t *testing.T, ls *lane.Lanes) {
				ls.Offer("k", in(1, "a"))
				synctest.Wait()
				ls.Steer("k", in(2, "edit"))
				close(w.step)
				want(t, w, "boundary edit")
				ls.Steer("k", in(3, "another"))
				close(w.open)
				want(t, w, "boundary edit", "late another")
			})
		})
	}
}

func TestCollectJoinsWhatWaits(t *testing.T) {
	w := &worker{}
	w.do = until(w)
	set := settings(lane.Collect)
	set.Debounce = 0
	bubble(t, 8, w, set, func(t *testing.T, ls *lane.Lanes) {
		ls.Offer("k", in(1, "a"))
		synctest.Wait()
		<-time.After(time.Millisecond)
		for _, i := range []workspace.Input{in(2, "b"), in(3, "c"), command(4, "/new"), in(5, "e")} {
			ls.Offer("k", i)
		}
		close(w.open)
		want(t, w, "a", "bc", "command /new", "e")
	})
}

func TestInterruptEndsTheTurnAndTheNextAnswersBoth(t *testing.T) {
	w := &worker{}
	w.do = func(t *lane.Turn) {
		if t.Interrupted != nil {
			w.note("%s after %v", texts(t.Inputs), t.Interrupted)
			return
		}
		<-t.Context().Done()
		if err := t.Seal(); !errors.Is(err, agentloop.ErrInterrupted) {
			w.note("seal: %v", err)
		}
		t.Stash("the old end")
	}
	bubble(t, 8, w, settings(lane.Interrupt), func(t *testing.T, ls *lane.Lanes) {
		ls.Offer("k", in(1, "a"))
		synctest.Wait()
		ls.Offer("k", in(2, "b"))
		want(t, w, "ab after the old end")
	})
}

func TestSealedTurnIsNotDisturbed(t *testing.T) {
	for _, mode := range []string{lane.Steer, lane.Interrupt} {
		t.Run(mode, func(t *testing.T) {
			w := &worker{}
			w.do = func(t *lane.Turn) {
				if err := t.Seal(); err != nil {
					w.note("seal: %v", err)
				}
				until(w)(t)
			}
			bubble(t, 8, w, settings(mode), func(t *testing.T, ls *lane.Lanes) {
				ls.Offer("k", in(1, "a"))
				synctest.Wait()
				ls.Offer("k", in(2, "b"))
				if ls.Cancel("k", agentloop.ErrStopped, func(workspace.Input) bool { return true }) {
					t.Error("a sealed turn was cancelled")
				}
				synctest.Wait()
				close(w.open)
				want(t, w, "a", "b")
			})
		})
	}
}

// A turn that only waits for its model is begun again when somebody wants it, as often as that; one that is answered is not.
func TestAStuckTurnIsBegunAnew(t *testing.T) {
	w := &worker{}
	w.do = func(turn *lane.Turn) {
		turn.Stuck(true)
		for {
			select {
			case <-w.step:
				turn.Stuck(false)
				continue
			case <-w.open:
			case <-turn.Context().Done():
				if !errors.Is(context.Cause(turn.Context()), agentloop.ErrRestart) {
					w.note("ended: %v", context.Cause(turn.Context()))
					return
				}
				w.note("anew with %q", texts(turn.Restart()))
				continue
			}
			w.note("answered %s, %v", texts(turn.Inputs), turn.Seal())
			return
		}
	}
	bubble(t, 8, w, settings(lane.Followup), func(t *testing.T, ls *lane.Lanes) {
		anybody := func(workspace.Input) bool { return true }
		if ls.Anew("k", anybody) || ls.Stuck("k") {
			t.Error("nothing runs")
		}
		ls.Offer("k", in(1, "a"))
		synctest.Wait()
		ls.Offer("k", in(2, "b"))
		if ls.Anew("k", func(workspace.Input) bool { return false }) {
			t.Error("it was somebody else's")
		}
		for range 4 { // more often than messages may restart it
			if !ls.Stuck("k") || !ls.Anew("k", anybody) || !ls.Anew("k", anybody) {
				t.Error("it waits for its model")
			}
			synctest.Wait()
		}
		w.step <- struct{}{}
		synctest.Wait()
		if ls.Stuck("k") || ls.Anew("k", anybody) {
			t.Error("it is answered")
		}
		w.open <- struct{}{}
		synctest.Wait()
		want(t, w, `anew with ""`, `anew with ""`, `anew with ""`, `anew with ""`, "answered a, <nil>")
		if !ls.Cancel("k", agentloop.ErrStopped, anybody) || ls.Anew("k", anybody) {
			t.Error("a stop outranks it")
		}
		synctest.Wait()
	})
}

func TestStopOutranksARestart(t *testing.T) {
	w := &worker{}
	w.do = func(turn *lane.Turn) {
		<-turn.Context().Done()
		<-w.gone
		w.note("took %q", texts(turn.Restart()))
		<-turn.Context().Done()
		w.note("ended: %v", context.Cause(turn.Context()))
	}
	bubble(t, 8, w, settings(lane.Steer), func(t *testing.T, ls *lane.Lanes) {
		ls.Offer("k", in(1, "a"))
		synctest.Wait()
		ls.Offer("k", in(2, "b"))
		if !ls.Cancel("k", agentloop.ErrStopped, func(in workspace.Input) bool { return in.Person == "ana" }) {
			t.Error("the turn was not found")
		}
		ls.Remove("k", 2)
		close(w.gone)
		want(t, w, `took ""`, "ended: stopped by a person")
	})
}

func TestWhatComesBehindAStopHasATurnOfItsOwn(t *testing.T) {
	w := &worker{}
	w.do = func(turn *lane.Turn) {
		if turn.Interrupted != nil {
			w.note("%s: %v", texts(turn.Inputs), context.Cause(turn.Context()))
			return
		}
		if texts(turn.Inputs) != "a" {
			w.note("%s", texts(turn.Inputs))
			return
		}
		<-turn.Context().Done()
		<-w.gone
		turn.Stash("the old end")
	}
	bubble(t, 8, w, settings(lane.Interrupt), func(t *testing.T, ls *lane.Lanes) {
		ls.Offer("k", in(1, "a"))
		synctest.Wait()
		ls.Offer("k", in(2, "b"))
		ls.Cancel("k", agentloop.ErrStopped, func(workspace.Input) bool { return true })
		ls.Remove("k", 2)
		ls.Offer("k", in(3, "c"))
		close(w.gone)
		want(t, w, "a: stopped by a person", "c")
	})
}
