package storetest

import (
	"database/sql"
	"fmt"
	"testing"

	"parley/channels"
	"parley/workspace"
	"parley/workspace/store"
)

// world drives a store as a gateway would, with dice, and remembers what it did to the outside: that is all that a
// crash does not undo.
type world struct {
	t     testing.TB
	fatal func(format string, args ...any)
	dice  func(n int) int
	place *Place
	s     *store.Store
	db    *sql.DB

	chats []Chat
	n     int                       // makes keys
	keys  map[int][]workspace.Input // of each chat, in order of arrival
	turns map[int]*turn             // the live run of a chat, in this process
	ran   map[string]int            // outside calls, by call id
	sent  map[string]int            // network messages, by token
	last  snapshot
	trace []string
}

// turn is a run that this process drives.
type turn struct {
	run    workspace.Run
	inputs []workspace.Input
	steps  int
	calls  []workspace.Step
	stream workspace.OutboundID
}

func newWorld(t testing.TB, place *Place, fatal func(string, ...any), dice func(int) int) *world {
	w := &world{t: t, fatal: fatal, dice: dice, place: place, chats: []Chat{NewChat(1), NewChat(2)}, keys: map[int][]workspace.Input{},
		ran: map[string]int{}, sent: map[string]int{}}
	w.open()
	return w
}

func (w *world) open() {
	w.s = w.place.Open(w.t, func(o *store.Options) { o.Synchronous = "OFF" }) // a copy of the files sees what was written
	w.db = w.place.DB(w.t)
	w.turns = map[int]*turn{}
}

func (w *world) must(what string, err error) {
	if err != nil {
		w.fatal("%s: %v\n%v", what, err, w.trace)
	}
}

func (w *world) actions() []func(c int) string {
	return []func(int) string{w.arrive, w.arrive, w.copyOf, w.edit, w.remove, w.begin, w.begin, w.model, w.start, w.result, w.result, w.stream,
		w.steer, w.interrupt, w.finish, w.finish, w.finish, w.stop, w.command, w.fresh, w.fork, w.forget, w.undo, w.end, w.deliver, w.deliver, w.deliver, w.dead, w.pause}
}

// do rolls one action and looks at what it changed.
func (w *world) do() {
	c := w.dice(len(w.chats))
	all := w.actions()
	what := all[w.dice(len(all))](c)
	w.trace = append(w.trace, fmt.Sprintf("%s(%d)", what, c))
	barrier(w.t, w.s)
	w.look()
}

func (w *world) arrival(c int) store.Arrival {
	w.n++
	if w.turns[c] == nil && len(w.queued(c)) == 0 && w.dice(2) == 0 {
		return w.chats[c].Begun(w.s, fmt.Sprintf("m:%d:%d", c, w.n), fmt.Sprint("text ", w.n))
	}
	return w.chats[c].Message(w.s, fmt.Sprintf("m:%d:%d", c, w.n), fmt.Sprint("text ", w.n))
}

func (w *world) took(c int, a store.Accepted) {
	w.keys[c] = append(w.keys[c], a.Input)
	if a.Begun != nil {
		w.turns[c] = &turn{run: a.Begun.Run, inputs: []workspace.Input{a.Input}}
	}
}

func (w *world) arrive(c int) string {
	got, err := w.s.Accept(w.arrival(c))
	w.must("arrive", err)
	w.took(c, got[0])
	return "arrive"
}

// copyOf delivers a message once more, as a network does that saw no acknowledgement.
func (w *world) copyOf(c int) string {
	if len(w.keys[c]) == 0 {
		return "-"
	}
	old := w.keys[c][w.dice(len(w.keys[c]))]
	a := w.chats[c].Begun(w.s, old.Key, old.Text)
	a.Input.Kind, a.Input.TargetKey = old.Kind, old.TargetKey
	got, err := w.s.Accept(a)
	w.must("copy", err)
	if !got[0].Duplicate || got[0].Begun != nil || got[0].Input.ID != old.ID {
		w.fatal("a copy was taken for new: %+v", got[0])
	}
	return "copy"
}

func (w *world) amend(c int, kind channels.Kind) string {
	if len(w.keys[c]) == 0 {
		return "-"
	}
	old := w.keys[c][w.dice(len(w.keys[c]))]
	w.n++
	a := w.chats[c].Message(w.s, fmt.Sprintf("%s:%d", kind, w.n), fmt.Sprint("edited ", w.n))
	a.Input.Kind, a.Input.TargetKey = kind, old.Key
	got, err := w.s.Accept(a)
	w.must("amend", err)
	w.took(c, got[0])
	return string(kind)
}

func (w *world) edit(c int) string   { return w.amend(c, channels.KindEdit) }
func (w *world) remove(c int) string { return w.amend(c, channels.KindDelete) }

// queued reads what waits for a turn in a chat, in order.
func (w *world) queued(c int) (list []workspace.Input) {
	all, err := w.s.Queued()
	w.must("queued", err)
	for _, in := range all {
		if in.Binding.Key == w.chats[c].Key.String() {
			list = append(list, in)
		}
	}
	return list
}

func (w *world) begin(c int) string {
	q := w.queued(c)
	if w.turns[c] != nil || len(q) == 0 {
		return "-"
	}
	q = q[:1+w.dice(len(q))]
	b, err := w.s.Begin(store.Begin{Run: w.chats[c].NewRun(w.s)}, w.chats[c].Key, q[0].RoomID, q, nil)
	w.must("begin", err)
	w.turns[c] = &turn{run: b.Run, inputs: q}
	return "begin"
}

func (w *world) interrupt(c int) string {
	tn, q := w.turns[c], w.queued(c)
	if tn == nil || len(q) == 0 {
		return "-"
	}
	old := store.Finish{Run: tn.run, State: workspace.RunStopped, Inputs: tn.inputs, InputState: workspace.InputStopped, AnswerEntry: -1}
	all := append(append([]workspace.Input(nil), tn.inputs...), q...)
	b, err := w.s.Begin(store.Begin{Run: w.chats[c].NewRun(w.s)}, w.chats[c].Key, q[0].RoomID, all, &old)
	w.must("interrupt", err)
	w.turns[c] = &turn{run: b.Run, inputs: all}
	return "interrupt"
}

func (w *world) step(tn *turn, wait bool, steps ...workspace.Step) {
	_, err := w.s.Step(store.StepUnit{Run: tn.run, Steps: steps, Wait: wait})
	w.must("step", err)
}

// model journals a response with up to two calls.
func (w *world) model(c int) string {
	tn := w.turns[c]
	if tn == nil || len(tn.calls) > 0 {
		return "-"
	}
	tn.steps++
	steps := []workspace.Step{{RunID: tn.run.ID, N: tn.steps, Kind: workspace.StepModel, State: workspace.StepDone}}
	for range w.dice(3) {
		tn.steps++
		effect := []workspace.Effect{workspace.Pure, workspace.Store, workspace.Outside}[w.dice(3)]
		call := workspace.Step{RunID: tn.run.ID, N: tn.steps, Kind: workspace.StepTool, CallID: fmt.Sprintf("%s-%d", tn.run.ID, tn.steps), Tool: "t",
			Effect: effect, State: workspace.StepPlanned}
		steps, tn.calls = append(steps, call), append(tn.calls, call)
	}
	w.step(tn, w.dice(2) == 0, steps...)
	return "model"
}

// start begins the next planned call; what it does outside happens after the commit.
func (w *world) start(c int) string {
	tn := w.turns[c]
	if tn == nil {
		return "-"
	}
	for i := range tn.calls {
		call := &tn.calls[i]
		if call.State != workspace.StepPlanned {
			continue
		}
		call.State = workspace.StepStarted
		w.step(tn, call.Effect == workspace.Outside, *call)
		if call.Effect == workspace.Outside {
			if w.ran[call.CallID]++; w.ran[call.CallID] > 1 {
				w.fatal("outside call %s ran twice\n%v", call.CallID, w.trace)
			}
		}
		return "start"
	}
	return "-"
}

func (w *world) result(c int) string {
	tn := w.turns[c]
	if tn == nil || len(tn.calls) == 0 {
		return "-"
	}
	i := w.dice(len(tn.calls))
	call := tn.calls[i]
	ends := []workspace.StepState{workspace.StepRefused, workspace.StepCancelled}
	if call.State == workspace.StepStarted {
		ends = []workspace.StepState{workspace.StepDone, workspace.StepFailed}
	}
	call.State = ends[w.dice(2)]
	w.step(tn, false, call)
	tn.calls = append(tn.calls[:i:i], tn.calls[i+1:]...)
	return "result"
}

func (w *world) stream(c int) string {
	tn := w.turns[c]
	if tn == nil || tn.stream != "" {
		return "-"
	}
	out, err := w.s.Outbound(store.NewOutbound{Key: workspace.AnswerKey(tn.run.ID), RoomID: tn.run.RoomID, RunID: tn.run.ID, Kind: workspace.OutAnswer,
		Open: true, Spans: []store.Span{{}}})
	w.must("stream", err)
	tn.stream = out[0].ID
	return "stream"
}

func (w *world) steer(c int) string {
	tn, q := w.turns[c], w.queued(c)
	if tn == nil || len(q) == 0 {
		return "-"
	}
	_, err := w.s.Take(tn.run, q[:1], nil)
	w.must("steer", err)
	tn.inputs = append(tn.inputs, q[0])
	return "steer"
}

func (w *world) finish(c int) string {
	if w.turns[c] == nil {
		return "-"
	}
	w.finishAs(c, w.dice(5))
	return "finish"
}

func (w *world) finishAs(c, how int) {
	tn := w.turns[c]
	f := Answer(tn.run, fmt.Sprint("answer of ", tn.run.ID), tn.inputs...)
	f.Answer.Streamed = tn.stream
	if tn.stream != "" {
		stopped := Notice(f.Answer.Key, tn.run.RoomID, "(stopped)")
		stopped.RunID, stopped.Streamed = tn.run.ID, tn.stream
		f.IfStopped = &stopped
	}
	switch {
	case how == 0 && tn.stream == "":
		f.InputState, f.Answer, f.AnswerEntry = workspace.InputSilent, nil, -1
	case how == 1:
		f.State, f.InputState = workspace.RunFailed, workspace.InputFailed
	case how == 2:
		f.State, f.InputState = workspace.RunTimeout, workspace.InputFailed
	case how == 3:
		f.Answer.Spans = []store.Span{{To: 3}, {From: 3, To: 6}}
	}
	_, err := w.s.Finish(f)
	w.must("finish", err)
	delete(w.turns, c)
}

func (w *world) stop(c int) string {
	ses, err := w.s.SessionByKey(w.chats[c].Key)
	if err != nil {
		return "-"
	}
	_, err = w.s.Stop(store.Stop{Session: ses.ID, By: w.chats[c].Person, Requester: w.chats[c].Person, Before: 1 << 60})
	w.must("stop", err)
	return "stop"
}

func (w *world) command(c int) string {
	q := w.queued(c)
	if len(q) == 0 {
		return "-"
	}
	reply := Notice("input:"+string(q[0].ID)+":reply", q[0].RoomID, "done")
	_, err := w.s.RunCommand(store.Command{Input: q[0], Failed: w.dice(3) == 0, Reply: &reply})
	w.must("command", err)
	return "command"
}

// fresh is /new, in a session that is idle: it takes its place in the order.
func (w *world) fresh(c int) string {
	if w.turns[c] != nil {
		return "-"
	}
	_, err := w.s.RunCommand(store.Command{Changes: []store.Change{store.NewGeneration{Key: w.chats[c].Key}}})
	w.must("fresh", err)
	return "fresh"
}

// fork begins a new generation with a part of the old one, and stops what runs, as an edit in WebChat does.
func (w *world) fork(c int) string {
	ses, err := w.s.SessionByKey(w.chats[c].Key)
	if err != nil {
		return "-"
	}
	last, err := w.s.LastEntries(ses.ID, 1)
	w.must("last", err)
	before := 1
	if len(last) > 0 {
		before += w.dice(int(last[0].N) + 1)
	}
	f, err := w.s.Fork(ses.Key, ses.ID, int64(before), fmt.Sprint("fork:", w.n, ".", len(w.trace)))
	w.must("read a fork", err)
	changes := []store.Change{store.Stop{Session: ses.ID, By: w.chats[c].Person, Before: 1 << 60}, *f}
	first, err := w.s.RunCommand(store.Command{Changes: changes})
	w.must("fork", err)
	again, err := w.s.RunCommand(store.Command{Changes: changes})
	w.must("fork again", err)
	if again.Session != first.Session || !again.Again {
		w.fatal("a fork was made twice: %+v, %+v\n%v", first, again, w.trace)
	}
	w.stopped(c)
	return "fork"
}

// stopped ends the turn that a fork or a delete has stopped: it is of an older generation now.
func (w *world) stopped(c int) {
	if w.turns[c] != nil {
		w.finishAs(c, 3)
	}
}

// forget deletes a session.
func (w *world) forget(c int) string {
	ses, err := w.s.SessionByKey(w.chats[c].Key)
	if err != nil {
		return "-"
	}
	_, err = w.s.RunCommand(store.Command{Changes: []store.Change{store.Stop{Session: ses.ID, By: w.chats[c].Person, Before: 1 << 60},
		store.Delete{Key: ses.Key, Session: ses.ID}}})
	w.must("delete", err)
	w.stopped(c)
	return "delete"
}

// undo marks what the prompt leaves out.
func (w *world) undo(c int) string {
	ses, err := w.s.SessionByKey(w.chats[c].Key)
	if err != nil {
		return "-"
	}
	last, err := w.s.LastEntries(ses.ID, 1)
	w.must("last", err)
	if len(last) == 0 {
		return "-"
	}
	kind := []string{workspace.EventUndone, workspace.EventCompacted}[w.dice(2)]
	_, err = w.s.RunCommand(store.Command{Changes: []store.Change{store.Mark{Session: ses.ID, Last: last[0].N, Was: ses.Compacted,
		Body: workspace.EntryBody{Type: kind, From: 1, To: last[0].N}}}})
	w.must("mark", err)
	return kind
}

// end ends an input without a run, or takes it up again.
func (w *world) end(c int) string {
	q := w.queued(c)
	if len(q) > 0 && w.dice(2) == 0 {
		to := []workspace.InputState{workspace.InputDropped, workspace.InputStale, workspace.InputCancelled}[w.dice(3)]
		w.n++
		_, err := w.s.EndInputs([]store.Ending{{Seq: q[0].Seq, From: workspace.InputQueued, To: to}}, Notice(fmt.Sprint("end:", w.n), q[0].RoomID, string(to)))
		w.must("end", err)
		return string(to)
	}
	w.resumeStale()
	return "resume"
}

func (w *world) resumeStale() {
	for _, list := range w.keys {
		for _, in := range list {
			stale, err := w.s.StaleInputs(in.RoomID)
			w.must("stale", err)
			for _, in := range stale {
				_, err := w.s.EndInputs([]store.Ending{{Seq: in.Seq, From: workspace.InputStale, To: workspace.InputQueued}})
				w.must("resume", err)
			}
		}
	}
}

func (w *world) pause(c int) string {
	tn := w.turns[c]
	if tn == nil {
		return "-"
	}
	to := []workspace.RunState{workspace.RunWaiting, workspace.RunPaused}[w.dice(2)]
	w.must("pause", w.s.MoveRun(tn.run.ID, workspace.RunRunning, to))
	w.look()
	w.must("go on", w.s.MoveRun(tn.run.ID, to, workspace.RunRunning))
	return "pause"
}
