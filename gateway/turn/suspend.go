// Suspended turns: runs that wait for a person, and runs that are paused. Neither has a goroutine or a place under the
// caps; both keep their session and go on from their journal, as a run of an earlier boot does.

package turn

import (
	"context"
	"errors"
	"fmt"

	"parley/agentloop"
	"parley/agentloop/lane"
	"parley/gateway/delivery"
	"parley/gateway/live"
	"parley/gateway/progress"
	"parley/workspace"
	"parley/workspace/store"
)

// What people are told that a turn waits for.
const (
	whyPaused = "it is paused"
	whyPerson = "it waits for a person"
)

// AtWork is the state of a session whose turn runs.
const AtWork = "running"

// StateOf is what a session does, in one word: idle, running, waiting or paused. A turn that waits for a person does not run.
func StateOf(v lane.View) string {
	switch {
	case v.Asleep && v.Held == whyPaused:
		return "paused"
	case v.Asleep:
		return "waiting"
	case v.Running:
		return AtWork
	}
	return "idle"
}

// suspended is a suspended run, handed to its lane.
type suspended struct {
	run  workspace.RunID
	open progress.Answer
}

// suspend ends a pass whose turn has not ended.
func (r *recorder) suspend(t *lane.Turn, why string, after int64) {
	open := r.progress.Stop()
	r.progress.Rest(why)
	r.ts.Transcripts.Forget(r.lane.Key) // what was said is in the record; a wait may be long
	r.ts.Feed.Settle(r.lane.Key)
	t.Hold(suspended{run: r.run.ID, open: open}, why, after)
}

// goOn takes up a suspended run. agentloop.ErrPaused means that it is to stay suspended, and does.
func (r *recorder) goOn(was suspended) error {
	ts := r.ts
	run, err := ts.Store.Run(was.run)
	if err != nil {
		return err
	}
	ts.Transcripts.Forget(r.lane.Key)
	stopped := run.StopBy != "" || errors.Is(context.Cause(r.lane.Context()), agentloop.ErrStopped)
	if run.State == workspace.RunPaused && run.PauseBy == "" || run.State == workspace.RunPaused && stopped {
		err = ts.Store.Hold(run, workspace.RunPaused, workspace.RunRunning, run.PauseBy)
	} else if run.State == workspace.RunWaiting {
		err = ts.Store.MoveRun(run.ID, workspace.RunWaiting, workspace.RunRunning)
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
		r.lane.Hold(was, whyPaused, lane.Never)
		return agentloop.ErrPaused
	}
	if run, err = ts.Store.Run(run.ID); err != nil { // it has this boot's epoch now
		return err
	}
	r.run, r.open, r.resumed, r.asked = run, was.open, true, true
	r.turn.Journal, err = ts.Store.Steps(run.ID)
	return err
}

// pause moves a run to paused and tells who watches.
func (ts *Turns) pause(run workspace.Run, from workspace.RunState) error {
	now, err := ts.Store.Run(run.ID)
	if err == nil {
		err = ts.Store.Hold(run, from, workspace.RunPaused, now.PauseBy)
	}
	if err != nil {
		return fmt.Errorf("pause run %s: %w", run.ID, err)
	}
	if ses, err := ts.Store.Session(run.SessionID); err == nil {
		ts.Feed.Publish(ses.Key.String(), live.Update{Session: run.SessionID, Run: run.ID, Stored: true})
	}
	return nil
}

// roleNow is the role by which a run goes on: that of its beginning, or a lower one that its requester has by now.
func (ts *Turns) roleNow(run workspace.Run) workspace.Role {
	p, err := ts.Store.PersonByID(run.Requester)
	switch {
	case errors.Is(err, workspace.ErrNotFound):
		return run.Role // a local one of a former configuration; the verbs ask again
	case err != nil:
		ts.Log.Error("requester cannot be read", "run", run.ID, "err", err)
		return workspace.Nobody
	case p.Role.AtLeast(run.Role):
		return run.Role
	}
	return p.Role
}

// Behind tells a sender once that what they wrote waits behind a suspended turn.
func (ts *Turns) Behind(key string, in workspace.Input, why string) {
	if in.RoomID == "" {
		return // /v1/status and the page say it
	}
	run, err := ts.Store.Run(ts.liveRun(key))
	if err != nil {
		ts.Log.Error("suspended run cannot be found", "session", key, "err", err)
		return
	}
	steps, err := ts.Store.Steps(run.ID)
	if err != nil {
		ts.Log.Error("steps of a suspended run cannot be read", "session", key, "err", err)
		return
	}
	text := fmt.Sprintf("Your message waits: there is a turn before it, and %s. /stop ends that turn.", why)
	if in.Person != run.Requester {
		text = fmt.Sprintf("Your message waits: I am working for somebody else here, and %s.", why)
	}
	n := delivery.Notice(fmt.Sprintf("run:%s:behind:%d:%s", run.ID, len(steps), in.RoomID), in.RoomID, workspace.OutNotice, text)
	out, err := ts.Store.Outbound(ts.Delivery.Replying(n, in))
	if err != nil {
		if !errors.Is(err, store.ErrClosed) {
			ts.Log.Error("sender cannot be told that a message waits", "session", key, "err", err)
		}
		return
	}
	ts.Delivery.PushAll(out)
}

// liveRun is the run that holds a session; empty: none.
func (ts *Turns) liveRun(key string) workspace.RunID {
	k, err := workspace.ParseKey(key)
	if err != nil {
		return ""
	}
	ses, err := ts.Store.SessionByKey(k)
	if err != nil {
		return ""
	}
	run, err := ts.Store.LiveRun(ses.ID)
	if err != nil {
		return ""
	}
	return run.ID
}
