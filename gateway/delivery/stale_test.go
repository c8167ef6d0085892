package delivery

import (
	"testing"
	"time"

	"parley/channels"
	"parley/workspace"
)

const away = "I was away; "

// R06: an answer that could not be sent in time is not blasted out: its room is told once, with the messages that came
// meanwhile, and a second time only after another outage.
func TestR06_LateAnswersAreSetAsideAndToldOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, func(n *memNet) { n.send = first(1, flood(50*time.Hour)) }, func(_ *testing.T, w *world) {
		w.after = 24 * time.Hour
		for i, key := range []string{"1", "2"} {
			n := answerTo("ana", key, key)
			n.NotAfter = time.Now().Add(w.after)
			if w.say(n); i == 0 {
				w.wait(0)
			}
		}
		w.stale.SetAside(workspace.Input{Seq: 7, ID: "in", RoomID: "ana"})
		w.stale.SetAside(workspace.Input{Seq: 7, ID: "in", RoomID: "ana"})
		if !w.stale.Has(7) || w.stale.Has(8) {
			w.t.Error("what is about to be set aside is not known")
		}
		w.wait(3 * time.Second)
		if ends := w.db.ended(); w.stale.Has(7) || len(ends) != 1 || ends[0].To != workspace.InputStale {
			w.t.Errorf("ended %+v", ends)
		}
		w.want("told, behind what waits", w.wait(50*time.Hour),
			away+"1 message came meanwhile. Send /resume to have them answered.",
			away+"2 answers could not be sent in time. Send /resume to get what I had to say.")
		w.want("parts", append(w.states("1"), w.states("2")...), "parked 1", "parked 0")
		w.want("nothing more", w.wait(24*time.Hour))
	})
}

// What came in one outage is one notice, whatever fails meanwhile; what is not queued any more is left out.
func TestR06_OneNoticeAnOutage(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(_ *testing.T, w *world) {
		w.after = time.Hour
		w.db.inputs["gone"] = workspace.InputCancelled
		w.db.failed = workspace.ErrConflict
		for i, id := range []workspace.InputID{"a", "gone", "b"} {
			w.stale.SetAside(workspace.Input{Seq: int64(i), ID: id, RoomID: "ana"})
			w.want("while it grows", w.wait(time.Second))
		}
		w.want("told", w.wait(2*time.Second), away+"2 messages came meanwhile. Send /resume to have them answered.")
		w.stale.SetAside(workspace.Input{Seq: 9, ID: "c", RoomID: "ana"})
		w.want("of the same outage", w.wait(time.Minute))
		w.wait(2 * time.Hour)
		w.stale.SetAside(workspace.Input{Seq: 10, ID: "d", RoomID: "ana"})
		w.want("of the next", w.wait(time.Minute), away+"1 message came meanwhile. Send /resume to have them answered.")
		w.stale.SetAside(workspace.Input{Seq: 11, ID: "e", RoomID: "ana"})
		w.stale.Stop()
		w.want("after the end", w.wait(time.Minute))
	})
}

// R10: what was written since the start is old only once the steady clock says so, and what comes live over a connection
// that has long been up never is: then it is this machine's clock that is wrong.
func TestR10_WhatIsOldIsNotTheClocksAlone(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(t *testing.T, w *world) {
		w.after = time.Hour
		jump := time.Duration(0)
		s := w.stale
		s.Now = func() time.Time { return time.Now().Add(jump) }
		began := time.Now()
		old := func(what string, sent time.Time, ch bool, want bool) {
			t.Helper()
			at := w.ch
			if !ch {
				at = nil
			}
			if s.Old(sent, at) != want {
				t.Errorf("%s: %v", what, !want)
			}
		}
		old("no time", time.Time{}, false, false)
		old("of just now", began, false, false)
		old("of before the start", began.Add(-2*time.Hour), false, true)
		old("while it catches up", began.Add(-2*time.Hour), true, true)
		jump = 48 * time.Hour
		old("of the start, with a clock that jumped", began, false, false)
		<-time.After(10 * time.Minute)
		old("live over a steady connection", began.Add(-2*time.Hour), true, false)
		w.ch.Refused()
		old("refused before", began.Add(-2*time.Hour), true, true)
		jump = 0
		<-time.After(2 * time.Hour)
		old("of the start, hours later", began, false, true)
		w.after = 0
		old("where nothing is ever old", began.Add(-9999*time.Hour), false, false)
		w.ch.Report(channels.Status{State: channels.Ready})
	})
}
