package storetest

import (
	"errors"
	"fmt"
	"testing"

	"parley/channels"
	"parley/workspace"
	"parley/workspace/store"
)

// check compares what a unit said of an edge with what the table draws.
func check(t *testing.T, what string, drawn bool, err error) {
	t.Helper()
	switch {
	case drawn && err != nil:
		t.Errorf("%s: %v", what, err)
	case !drawn && !errors.Is(err, workspace.ErrConflict):
		t.Errorf("%s was not refused: %v", what, err)
	}
}

func inputEdges(t *testing.T, s *store.Store) {
	// born
	for i, st := range []workspace.InputState{workspace.InputRefused, workspace.InputContext, workspace.InputNoted, workspace.InputQueued,
		workspace.InputAnswered, workspace.InputSilent, workspace.InputFailed, workspace.InputStopped, workspace.InputCancelled, workspace.InputDropped, workspace.InputStale, "odd"} {
		a := NewChat(1).Message(s, fmt.Sprintf("born:%d", i), "x")
		a.Input.State = st
		_, err := s.Accept(a)
		check(t, "born "+string(st), workspace.Inputs.Can("", st), err)
	}
	// out of a run
	ends := []workspace.InputState{workspace.InputRefused, workspace.InputContext, workspace.InputNoted, workspace.InputQueued, workspace.InputTaken,
		workspace.InputAnswered, workspace.InputSilent, workspace.InputFailed, workspace.InputStopped, workspace.InputCancelled, workspace.InputDropped, workspace.InputStale}
	for i, to := range ends {
		c := NewChat(100 + i)
		got := accept(t, s, c.Begun(s, fmt.Sprintf("taken:%d", i), "x"))
		f := Answer(got.Begun.Run, "y", got.Input)
		f.InputState = to
		_, err := s.Finish(f)
		check(t, "taken to "+string(to), workspace.Inputs.Can(workspace.InputTaken, to) && to != workspace.InputQueued, err)
	}
	// without a run
	for i, from := range []workspace.InputState{workspace.InputQueued, workspace.InputStale, workspace.InputCancelled, workspace.InputNoted} {
		for j, to := range ends {
			if to == workspace.InputTaken {
				continue // needs a run: Begin
			}
			got := accept(t, s, NewChat(1).Message(s, fmt.Sprintf("end:%d:%d", i, j), "x"))
			if from != workspace.InputQueued && from != workspace.InputNoted {
				if _, err := s.EndInputs([]store.Ending{{Seq: got.Input.Seq, From: workspace.InputQueued, To: from}}); err != nil {
					t.Fatal(err)
				}
			}
			_, err := s.EndInputs([]store.Ending{{Seq: got.Input.Seq, From: from, To: to}})
			check(t, string(from)+" to "+string(to), from != workspace.InputNoted && workspace.Inputs.Can(from, to), err)
		}
	}
}

func runEdges(t *testing.T, s *store.Store) {
	states := []workspace.RunState{workspace.RunPending, workspace.RunQueued, workspace.RunStarting, workspace.RunRunning, workspace.RunWaiting,
		workspace.RunPaused, workspace.RunCompleted, workspace.RunFailed, workspace.RunTimeout, workspace.RunStopped}
	n := 0
	for _, from := range []workspace.RunState{workspace.RunRunning, workspace.RunWaiting, workspace.RunPaused, workspace.RunCompleted} {
		for _, to := range states {
			n++
			c := NewChat(n)
			got := accept(t, s, c.Begun(s, fmt.Sprintf("m:%d", n), "x"))
			run := got.Begun.Run
			switch from {
			case workspace.RunWaiting, workspace.RunPaused:
				if err := s.MoveRun(run.ID, workspace.RunRunning, from); err != nil {
					t.Fatal(err)
				}
			case workspace.RunCompleted:
				finish(t, s, Answer(run, "y", got.Input))
			}
			var err error
			if to.Live() {
				err = s.MoveRun(run.ID, from, to)
			} else {
				f := Answer(run, "y", got.Input)
				f.State = to
				_, err = s.Finish(f)
			}
			check(t, "run "+string(from)+" to "+string(to), workspace.Runs.Can(from, to), err)
		}
	}
}

func stepEdges(t *testing.T, s *store.Store) {
	got := accept(t, s, NewChat(1).Begun(s, "m:1", "x"))
	run, n := got.Begun.Run, 0
	states := []workspace.StepState{workspace.StepPlanned, workspace.StepStarted, workspace.StepDone, workspace.StepFailed, workspace.StepUnknown, workspace.StepRefused, workspace.StepCancelled}
	paths := map[workspace.StepState][]workspace.StepState{
		"": nil, workspace.StepPlanned: {workspace.StepPlanned}, workspace.StepStarted: {workspace.StepPlanned, workspace.StepStarted},
		workspace.StepDone:    {workspace.StepPlanned, workspace.StepStarted, workspace.StepDone},
		workspace.StepUnknown: {workspace.StepPlanned, workspace.StepStarted, workspace.StepUnknown},
		workspace.StepRefused: {workspace.StepPlanned, workspace.StepRefused},
	}
	put := func(st workspace.StepState, kind workspace.StepKind) error {
		step := workspace.Step{RunID: run.ID, N: n, Kind: kind, Tool: "t", State: st}
		if kind == workspace.StepTool {
			step.CallID = fmt.Sprint("c", n)
		}
		_, err := s.Step(store.StepUnit{Run: run, Steps: []workspace.Step{step}, Wait: true})
		return err
	}
	for from, path := range paths {
		for _, to := range states {
			n++
			for _, st := range path {
				if err := put(st, workspace.StepTool); err != nil {
					t.Fatal(err)
				}
			}
			drawn := workspace.Steps.Can(from, to) && (from != "" || to == workspace.StepPlanned) // born done is a model's
			check(t, fmt.Sprintf("tool step %q to %s", from, to), drawn, put(to, workspace.StepTool))
		}
	}
	n++
	check(t, "model step done", true, put(workspace.StepDone, workspace.StepModel))
	check(t, "model step done twice", false, put(workspace.StepDone, workspace.StepModel))
}

// partPaths lead a part that was born ready to each state.
func partPaths() map[workspace.PartState][]workspace.PartState {
	return map[workspace.PartState][]workspace.PartState{
		workspace.PartReady: nil, workspace.PartSending: {workspace.PartSending},
		workspace.PartLive: {workspace.PartSending, workspace.PartLive}, workspace.PartSent: {workspace.PartSending, workspace.PartSent},
		workspace.PartUnknown: {workspace.PartSending, workspace.PartUnknown}, workspace.PartDead: {workspace.PartDead},
		workspace.PartCancelled: {workspace.PartCancelled}, workspace.PartParked: {workspace.PartParked},
	}
}

func partEdges(t *testing.T, s *store.Store) {
	room := accept(t, s, NewChat(1).Message(s, "m:1", "x")).Input.RoomID
	n := 0
	for from, path := range partPaths() {
		for to := range partPaths() {
			n++
			out, err := s.Outbound(Notice(fmt.Sprint("n:", n), room, "hello"))
			if err != nil {
				t.Fatal(err)
			}
			part := out[0].Parts[0]
			for _, st := range path {
				if err := s.MovePart(store.Move{Part: part, To: st, Remote: "9"}); err != nil {
					t.Fatalf("%s on the way to %s: %v", st, from, err)
				}
			}
			err = s.MovePart(store.Move{Part: part, To: to, Remote: "9"})
			check(t, fmt.Sprintf("part %s to %s", from, to), workspace.Parts.Can(from, to), err)
		}
	}
}

func editQueued(t *testing.T, s *store.Store) {
	c := NewChat(1)
	first := accept(t, s, c.Message(s, "m:1", "one"))
	edit := func(rev, text string) store.Arrival {
		e := c.Message(s, "e:1:"+rev, text)
		e.Input.Kind, e.Input.TargetKey = channels.KindEdit, "m:1"
		return e
	}
	got := accept(t, s, edit("1", "two"))
	if got.Input.State != workspace.InputNoted || got.Amended == nil || got.Amended.Was != workspace.InputQueued {
		t.Errorf("edit: %+v", got)
	}
	accept(t, s, edit("2", "three"))
	if again := accept(t, s, edit("1", "two")); !again.Duplicate {
		t.Errorf("an old edit again: %+v", again)
	}
	if in := input(t, s, first.Input.ID); in.Text != "three" || in.State != workspace.InputQueued {
		t.Errorf("edited: %q %s", in.Text, in.State)
	}
	reaction := c.Message(s, "r:1", "👍")
	reaction.Input.Kind, reaction.Input.TargetKey = channels.KindReaction, "m:1"
	accept(t, s, reaction)
	if in := input(t, s, first.Input.ID); in.Text != "three" {
		t.Errorf("a reaction became the text: %q", in.Text)
	}
}

func editTaken(t *testing.T, s *store.Store) {
	c := NewChat(1)
	first := accept(t, s, c.Begun(s, "m:1", "one"))
	e := c.Message(s, "e:1:1", "two")
	e.Input.Kind, e.Input.TargetKey = channels.KindEdit, "m:1"
	got := accept(t, s, e)
	if got.Input.State != workspace.InputQueued {
		t.Fatalf("edit of a taken message: %s", got.Input.State)
	}
	if _, err := s.Take(first.Begun.Run, []workspace.Input{got.Input}, nil); err != nil {
		t.Fatal(err)
	}
	finish(t, s, Answer(first.Begun.Run, "y", first.Input, got.Input))
	late := c.Begun(s, "e:1:2", "three")
	late.Input.Kind, late.Input.TargetKey = channels.KindEdit, "m:1"
	if got := accept(t, s, late); got.Input.State != workspace.InputNoted || got.Begun != nil {
		t.Errorf("edit of an answered message: %+v", got)
	}
}

func deleteQueued(t *testing.T, s *store.Store) {
	c := NewChat(1)
	del := func(key string) workspace.InputState {
		d := c.Message(s, "d:"+key, "")
		d.Input.Kind, d.Input.TargetKey = channels.KindDelete, key
		return accept(t, s, d).Input.State
	}
	queued, stale := accept(t, s, c.Message(s, "m:1", "one")).Input, accept(t, s, c.Message(s, "m:2", "two")).Input
	if _, err := s.EndInputs([]store.Ending{{Seq: stale.Seq, From: workspace.InputQueued, To: workspace.InputStale}}); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"m:1", "m:2", "m:unknown"} {
		if st := del(key); st != workspace.InputNoted {
			t.Errorf("delete of %s is %s", key, st)
		}
	}
	if in := input(t, s, queued.ID); in.State != workspace.InputCancelled {
		t.Errorf("deleted: %s", in.State)
	}
	if in := input(t, s, stale.ID); in.Text != "" {
		t.Errorf("a deleted text is still there: %q", in.Text)
	}
	if list, err := s.StaleInputs(stale.RoomID); err != nil || len(list) != 0 {
		t.Errorf("deleted and yet parked: %+v %v", list, err)
	}
}

func editByOther(t *testing.T, s *store.Store) {
	c := NewChat(1)
	first := accept(t, s, c.Message(s, "m:1", "one"))
	e := c.Message(s, "e:1", "forged")
	e.Input.Kind, e.Input.TargetKey, e.Input.Person = channels.KindEdit, "m:1", "somebody"
	if got := accept(t, s, e); got.Input.State != workspace.InputNoted || got.Amended != nil {
		t.Errorf("edit by another: %+v", got)
	}
	if in := input(t, s, first.Input.ID); in.Text != "one" {
		t.Errorf("text: %q", in.Text)
	}
}
