package lane_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"parley/agentloop/lane"
	"parley/workspace"
)

func TestOverflowDropsByItsSetting(t *testing.T) {
	for _, c := range []struct {
		overflow string
		want     []string
	}{
		{"summarize", []string{"dropped b true", "dropped c true", "a", "command /new", "d", "e"}},
		{"old", []string{"dropped b false", "dropped c false", "a", "command /new", "d", "e"}},
		{"new", []string{"dropped d false", "dropped e false", "a", "command /new", "b", "c"}},
	} {
		t.Run(c.overflow, func(t *testing.T) {
			w := &worker{}
			w.do = until(w)
			set := lane.Settings{Mode: lane.Followup, Cap: 2, Overflow: c.overflow}
			bubble(t, 8, w, set, func(t *testing.T, ls *lane.Lanes) {
				ls.Offer("k", in(1, "a"))
				synctest.Wait()
				// a command has its place even in a full queue, and is never dropped
				for _, i := range []workspace.Input{command(2, "/new"), in(3, "b"), in(4, "c"), in(5, "d"), in(6, "e")} {
					ls.Offer("k", i)
				}
				close(w.open)
				want(t, w, c.want...)
			})
		})
	}
}

func TestAlbumWaitsForItsLastItem(t *testing.T) {
	w := &worker{}
	bubble(t, 8, w, settings(lane.Followup), func(t *testing.T, ls *lane.Lanes) {
		item := func(seq int64) workspace.Input {
			i := in(seq, fmt.Sprint(seq))
			i.Data.Album = "album"
			return i
		}
		began := time.Now()
		w.do = func(turn *lane.Turn) { w.note("%s after %v", texts(turn.Inputs), time.Since(began)) }
		for seq := range int64(3) {
			ls.Offer("k", item(seq+1))
			<-time.After(500 * time.Millisecond)
		}
		ls.Offer("k", in(4, "and what is this?"))
		<-time.After(time.Minute)
		want(t, w, "123 after 1.8s", "and what is this? after 1.8s")
	})
}

func TestReplaceAndRemoveOfWhatWaits(t *testing.T) {
	w := &worker{}
	w.do = until(w)
	bubble(t, 8, w, settings(lane.Followup), func(t *testing.T, ls *lane.Lanes) {
		for i := range int64(4) {
			ls.Offer("k", in(i+1, string(rune('a'+i))))
		}
		synctest.Wait()
		ls.Replace("k", 2, "B")
		ls.Remove("k", 3, 1) // 1 is running: it is not in the queue
		ls.Replace("nobody", 2, "x")
		ls.Remove("nobody", 2)
		v := ls.Look("k")
		if !v.Running || v.Requester != "ana" || texts(v.Run) != "a" || texts(v.Waiting) != "Bd" {
			t.Errorf("view %+v", v)
		}
		close(w.open)
		want(t, w, "a", "B", "d")
	})
}

func TestReservationHoldsSessionAndPlace(t *testing.T) {
	w := &worker{}
	w.do = func(t *lane.Turn) { w.note("%s begun %v", texts(t.Inputs), t.Begun) }
	bubble(t, 2, w, settings(lane.Followup), func(t *testing.T, ls *lane.Lanes) {
		if !ls.Reserve("a", "ana") || ls.Reserve("a", "ana") {
			t.Error("an idle session is reserved once")
		}
		if !ls.Reserve("b", "ana") || ls.Reserve("c", "ana") {
			t.Error("there are two places")
		}
		ls.Offer("a", in(2, "y")) // told before the commit that began the turn
		synctest.Wait()
		if n := len(w.notes()); n != 0 {
			t.Errorf("%d turns began in a reserved session", n)
		}
		ls.Start("a", "with the commit", in(1, "x"))
		ls.Release("b")
		want(t, w, "x begun with the commit", "y begun <nil>")
		if !ls.Reserve("b", "ana") {
			t.Error("a released session cannot be reserved")
		}
		ls.Offer("b", in(3, "z"))
		ls.Release("b")
		want(t, w, "x begun with the commit", "y begun <nil>", "z begun <nil>")
	})
}

func TestResumedTurnComesFirst(t *testing.T) {
	w := &worker{}
	w.do = func(t *lane.Turn) {
		<-w.open
		w.note("%s %v", texts(t.Inputs), t.Begun)
	}
	bubble(t, 1, w, settings(lane.Followup), func(t *testing.T, ls *lane.Lanes) {
		ls.Resume("k", "resumed", in(1, "a"))
		ls.Offer("k", in(2, "b"))
		ls.Offer("k", in(1, "a")) // the scan does not know yet; later the journal's compare-and-set refuses it
		close(w.open)
		want(t, w, "a resumed", "b <nil>")
	})
}

// R08: a drain lets turns end, and ends those that do not; what waits stays in the journal.
func TestR08_DrainEndsTurnsAndTakesUpNothingNew(t *testing.T) {
	w := &worker{}
	w.do = func(turn *lane.Turn) {
		if turn.Key == "quick" {
			<-time.After(time.Second)
			w.note("quick done")
			return
		}
		<-turn.Context().Done()
		w.note("slow ended: %v", context.Cause(turn.Context()))
	}
	bubble(t, 8, w, settings(lane.Followup), func(t *testing.T, ls *lane.Lanes) {
		ls.Offer("quick", in(1, "a"))
		ls.Offer("quick", in(2, "b"))
		ls.Offer("slow", in(3, "c"))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		began := time.Now()
		ls.Drain(ctx)
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("the drain took %v", took)
		}
		ls.Offer("late", in(4, "d"))
		if ls.Reserve("late", "ana") {
			t.Error("a drained house takes reservations")
		}
		want(t, w, "quick done", "slow ended: gateway is shutting down")
	})
}
