package storetest

import (
	"fmt"

	"parley/channels"
	"parley/workspace"
	"parley/workspace/store"
)

// deliver moves the first open part a step: it is sent, refused, or nothing is known of it.
func (w *world) deliver(int) string {
	und, err := w.s.OpenOutbound()
	w.must("undelivered", err)
	for _, o := range und {
		for _, p := range o.Parts {
			if p.State == workspace.PartSent || p.State == workspace.PartCancelled || p.State == workspace.PartDead {
				continue
			}
			if w.deliverPart(o, p, w.dice(5)) {
				return "deliver " + string(p.State)
			}
		}
	}
	return "-"
}

func (w *world) deliverPart(o workspace.Outbound, p workspace.Part, luck int) bool {
	switch p.State {
	case workspace.PartReady:
		w.must("sending", w.s.MovePart(store.Move{Part: p, To: workspace.PartSending}))
	case workspace.PartSending:
		if p.Epoch < w.s.Epoch() {
			w.must("unknown", w.s.MovePart(store.Move{Part: p, To: workspace.PartUnknown}))
			return true
		}
		w.send(o, p, luck)
	case workspace.PartUnknown:
		w.resolve(p)
	case workspace.PartLive:
		if o.State == workspace.OutOpen {
			return false
		}
		if o.State == workspace.OutCancelled { // the placeholder of an answer that never came is removed
			w.s.Receipt(store.Move{Part: p, To: workspace.PartCancelled})
			return true
		}
		w.s.Receipt(store.Move{Part: p, To: workspace.PartSent})
	case workspace.PartParked:
		w.must("unpark", w.s.MovePart(store.Move{Part: p, To: workspace.PartReady}))
	}
	return true
}

// send puts the message onto the network, and then tells the store or not.
func (w *world) send(o workspace.Outbound, p workspace.Part, luck int) {
	id := channels.MessageID("r:" + p.Token)
	switch luck {
	case 0: // surely refused
		w.s.Receipt(store.Move{Part: p, To: workspace.PartReady, Error: "429"})
	case 1: // arrived, and no answer
		w.arrived(p)
		w.s.Receipt(store.Move{Part: p, To: workspace.PartUnknown, Error: "timeout"})
	default:
		w.arrived(p)
		to := workspace.PartSent
		if o.State == workspace.OutOpen {
			to = workspace.PartLive
		}
		w.s.Receipt(store.Move{Part: p, To: to, Remote: id})
	}
}

func (w *world) arrived(p workspace.Part) {
	if w.sent[p.Token]++; w.sent[p.Token] > 1 {
		w.fatal("%s was sent %d times, and could have been found\n%v", p.Token, w.sent[p.Token], w.trace)
	}
}

// resolve asks the network: it knows every token.
func (w *world) resolve(p workspace.Part) {
	if w.sent[p.Token] > 0 {
		w.s.Receipt(store.Move{Part: p, To: workspace.PartSent, Remote: channels.MessageID("r:" + p.Token)})
		return
	}
	w.s.Receipt(store.Move{Part: p, To: workspace.PartReady, Error: "surely absent"})
}

func (w *world) dead(int) string {
	und, err := w.s.OpenOutbound()
	w.must("undelivered", err)
	for _, o := range und {
		for _, p := range o.Parts {
			if p.State == workspace.PartReady && o.State == workspace.OutFinal {
				w.n++
				notice := Notice(fmt.Sprint("dead:", w.n), o.RoomID, "not delivered")
				_, err := w.s.Dead(store.Move{Part: p, Error: "gone"}, &notice)
				w.must("dead", err)
				return "dead"
			}
		}
	}
	return "-"
}

// crash cuts the power with at most one posted unit on its way, and recovers.
func (w *world) crash() {
	_ = w.db.Close() // read only
	switch w.dice(3) {
	case 0:
		w.model(w.dice(len(w.chats)))
	case 1:
		w.deliver(0)
	}
	w.place.Crash(w.t, w.s)
	w.open()
	w.look()
	w.recover()
}

// recover is what a boot does: runs are resumed from their journal.
func (w *world) recover() {
	live, err := w.s.LiveRuns()
	w.must("live", err)
	for _, r := range live {
		c := w.chatOf(r.SessionID)
		if r.State == workspace.RunPaused {
			w.must("unpause", w.s.MoveRun(r.ID, workspace.RunPaused, workspace.RunRunning))
		} else {
			got, err := w.s.Resume(r.ID)
			w.must("resume run", err)
			r = got
		}
		inputs, err := w.s.RunInputs(r.ID)
		w.must("run inputs", err)
		tn := &turn{run: r}
		for _, in := range inputs {
			if in.State == workspace.InputTaken && in.RunID == r.ID {
				tn.inputs = append(tn.inputs, in)
			}
		}
		if o, err := w.s.OutboundOfRun(r.ID); err == nil && o.State == workspace.OutOpen {
			tn.stream = o.ID
		}
		w.turns[c] = tn
		w.look()
		w.walk(tn)
	}
}

// walk answers the calls of an earlier try from the journal: what may have happened outside is never done again.
func (w *world) walk(tn *turn) {
	steps, err := w.s.Steps(tn.run.ID)
	w.must("steps", err)
	for _, st := range steps {
		tn.steps = st.N
		switch {
		case st.State == workspace.StepStarted && st.Effect == workspace.Outside:
			st.State = workspace.StepUnknown
			w.step(tn, false, st)
		case st.State == workspace.StepStarted || st.State == workspace.StepPlanned:
			tn.calls = append(tn.calls, st)
		}
	}
}

func (w *world) chatOf(id workspace.SessionID) int {
	ses, err := w.s.Session(id)
	w.must("session", err)
	for i, c := range w.chats {
		if c.Key == ses.Key {
			return i
		}
	}
	w.fatal("session %s is of no chat", id)
	return 0
}

// settle drives everything to its end, with good luck from now on.
func (w *world) settle() {
	w.resumeStale()
	w.look()
	for c := range w.chats {
		for w.turns[c] != nil || len(w.queued(c)) > 0 {
			if w.turns[c] == nil {
				q := w.queued(c)
				b, err := w.s.Begin(store.Begin{Run: w.chats[c].NewRun(w.s)}, w.chats[c].Key, q[0].RoomID, q, nil)
				w.must("begin", err)
				w.turns[c] = &turn{run: b.Run, inputs: q}
				w.look()
			}
			w.finishAs(c, 4)
			w.look()
		}
	}
	for range 1000 {
		und, err := w.s.OpenOutbound()
		w.must("undelivered", err)
		moved := false
		for _, o := range und {
			for _, p := range o.Parts {
				if p.State != workspace.PartSent && p.State != workspace.PartCancelled && p.State != workspace.PartDead {
					moved = w.deliverPart(o, p, 4) || moved
					barrier(w.t, w.s)
					w.look()
				}
			}
		}
		if !moved {
			break
		}
	}
	w.ended()
}
