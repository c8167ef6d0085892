package gateway

import (
	"context"
	"errors"
	"fmt"

	"parley/agentloop"
	"parley/agentloop/lane"
	"parley/gateway/approval"
	"parley/gateway/delivery"
	"parley/gateway/live"
	"parley/workspace"
	"parley/workspace/store"
)

// What lies still: runs that wait for a person, and runs that are paused. Neither has a goroutine or a place under the
// caps; both keep their session and go on from their journal, as a run of an earlier boot does.

const pausedWhy = "it is paused"

// Ask has a person asked about a call, or finds what became of that.
func (r *recorder) Ask(_ context.Context, w agentloop.Wanted) (agentloop.Answer, error) {
	r.asked = true
	answer, waits, err := r.ts.questions.Ask(approval.Asker{Run: r.run, Key: r.key, Requester: r.turn.Requester, Room: r.room, Channel: r.line, Answers: r.lane.Inputs,
		TTL: r.snapshot.TTL, Steers: r.ts.mode(r.lane.Key) == lane.Steer, Superseded: r.lane.Superseded}, w)
	if waits != nil {
		r.waits = waits
	}
	return answer, err
}

// hold ends a pass whose turn has not ended.
func (r *recorder) hold(t *lane.Turn, why string, after int64) {
	open, j := r.sign.stop()
	r.sign.rest(why)
	r.ts.transcripts.Forget(r.lane.Key) // what was said is in the record; a wait may be long
	r.ts.feed.Settle(r.lane.Key)
	t.Hold(held{run: r.run.ID, open: open, job: j}, why, after)
}

// held is a run that lies still, handed to its lane.
type held struct {
	run  workspace.RunID
	open *workspace.Outbound // its streamed answer
	job  *delivery.Job
}

// goOn takes up a run that lay still. agentloop.ErrPaused means that it is to lie still on, and does.
func (ts *turns) goOn(rec *recorder, was held) error {
	run, err := ts.store.Run(was.run)
	if err != nil {
		return err
	}
	ts.transcripts.Forget(rec.lane.Key)
	stopped := run.StopBy != "" || errors.Is(context.Cause(rec.lane.Context()), agentloop.ErrStopped)
	if run.State == workspace.RunPaused && run.PauseBy == "" || run.State == workspace.RunPaused && stopped {
		err = ts.store.Hold(run, workspace.RunPaused, workspace.RunRunning, run.PauseBy)
	} else if run.State == workspace.RunWaiting {
		err = ts.store.MoveRun(run.ID, workspace.RunWaiting, workspace.RunRunning)
	}
	if err != nil {
		return fmt.Errorf("go on with run %s: %w", run.ID, err)
	}
	if run.PauseBy != "" && !stopped {
		if run.State != workspace.RunPaused {
			if err := ts.pause(run, workspace.RunRunning); err != nil {
				return err
			}
		}
		rec.lane.Hold(was, pausedWhy, lane.Never)
		return agentloop.ErrPaused
	}
	if run, err = ts.store.Run(run.ID); err != nil { // it is ours now
		return err
	}
	rec.run, rec.open, rec.job, rec.resumed, rec.asked = run, was.open, was.job, true, true
	rec.turn.Journal, err = ts.store.Steps(run.ID)
	return err
}

// pause moves a run to paused and tells who watches.
func (ts *turns) pause(run workspace.Run, from workspace.RunState) error {
	now, err := ts.store.Run(run.ID)
	if err == nil {
		err = ts.store.Hold(run, from, workspace.RunPaused, now.PauseBy)
	}
	if err != nil {
		return fmt.Errorf("pause run %s: %w", run.ID, err)
	}
	if ses, err := ts.store.Session(run.SessionID); err == nil {
		ts.feed.Publish(ses.Key.String(), live.Update{Session: run.SessionID, Run: run.ID, Stored: true})
	}
	return nil
}

// roleNow is the role by which a run goes on: that of its beginning, or a lower one that its requester has by now.
func (ts *turns) roleNow(run workspace.Run) workspace.Role {
	p, err := ts.store.PersonByID(run.Requester)
	switch {
	case errors.Is(err, workspace.ErrNotFound):
		return run.Role // a local one of a former configuration; the verbs ask again
	case err != nil:
		ts.log.Error("requester cannot be read", "run", run.ID, "err", err)
		return workspace.Nobody
	case p.Role.AtLeast(run.Role):
		return run.Role
	}
	return p.Role
}

// Behind tells a sender once that what they wrote waits behind a turn that lies still.
func (ts *turns) Behind(key string, in workspace.Input, why string) {
	if in.RoomID == "" {
		return // /v1/status and the page say it
	}
	run, err := ts.store.Run(ts.liveRun(key))
	if err != nil {
		ts.log.Error("what lies still is not known", "session", key, "err", err)
		return
	}
	steps, err := ts.store.Steps(run.ID)
	if err != nil {
		ts.log.Error("what lies still cannot be read", "session", key, "err", err)
		return
	}
	text := fmt.Sprintf("Your message waits: there is a turn before it, and %s. /stop ends that turn.", why)
	if in.Person != run.Requester {
		text = fmt.Sprintf("Your message waits: I am at work for somebody else here, and %s.", why)
	}
	n := delivery.Notice(fmt.Sprintf("run:%s:behind:%d:%s", run.ID, len(steps), in.RoomID), in.RoomID, workspace.OutNotice, text)
	out, err := ts.store.Outbound(ts.deliver.Replying(n, in))
	if err != nil {
		if !errors.Is(err, store.ErrClosed) {
			ts.log.Error("sender cannot be told that a message waits", "session", key, "err", err)
		}
		return
	}
	ts.deliver.PushAll(out)
}

// liveRun is the run that holds a session; empty: none.
func (ts *turns) liveRun(key string) workspace.RunID {
	k, err := workspace.ParseKey(key)
	if err != nil {
		return ""
	}
	ses, err := ts.store.SessionByKey(k)
	if err != nil {
		return ""
	}
	run, err := ts.store.LiveRun(ses.ID)
	if err != nil {
		return ""
	}
	return run.ID
}

// park hands a run of an earlier boot that lies still to its lane.
func (g *Gateway) park(run workspace.Run, open *workspace.Outbound) error {
	inputs, err := g.store.RunInputs(run.ID)
	if err != nil {
		return err
	}
	var taken []workspace.Input
	for _, in := range inputs {
		if in.State == workspace.InputTaken && in.RunID == run.ID {
			taken = append(taken, in)
		}
	}
	if len(taken) == 0 {
		return fmt.Errorf("run %s lies still and answers nothing: %w", run.ID, workspace.ErrConflict)
	}
	why, after, wake := pausedWhy, lane.Never, run.StopBy != ""
	if run.State == workspace.RunPaused {
		wake = wake || run.PauseBy == ""
	} else {
		why, after, wake = "it waits for a person", 0, true
		list, err := g.store.RunApprovals(run.ID)
		if err != nil {
			return err
		}
		if i := len(list) - 1; i >= 0 && list[i].State == workspace.ApprovalPending {
			why, wake = approval.WaitsFor(list[i]), run.StopBy != ""
			after = approval.SupersededAfter(list[i], g.queue(taken[0].Binding.Key).Mode == lane.Steer)
		}
	}
	key := taken[0].Binding.Key
	g.lanes.Park(key, held{run: run.ID, open: open}, why, after, taken...)
	if run.StopBy != "" {
		g.lanes.Cancel(key, agentloop.ErrStopped, func(workspace.Input) bool { return true })
	} else if wake {
		g.bus.Wake(key)
	}
	return nil
}

// sweepHeld wakes what lies still although it need not: a wake-up that was lost costs no more than that.
func (g *Gateway) sweepHeld(live []workspace.Run) {
	for _, run := range live {
		if run.State != workspace.RunWaiting && (run.State != workspace.RunPaused || run.PauseBy != "") {
			continue
		}
		ses, err := g.store.Session(run.SessionID)
		if err != nil {
			continue
		}
		view := g.lanes.Look(ses.Key.String())
		if !view.Running { // its lane could not go on with it
			if err := g.park(run, nil); err != nil {
				g.log.Error("a run lies still without its lane", "run", run.ID, "err", err)
			}
			continue
		}
		if !view.Asleep {
			continue
		}
		if run.State == workspace.RunWaiting {
			list, err := g.store.RunApprovals(run.ID)
			if err != nil || len(list) > 0 && list[len(list)-1].State == workspace.ApprovalPending {
				continue
			}
		}
		g.bus.Wake(ses.Key.String())
	}
}
