// What a crash leaves of turns.

package turn

import (
	"errors"
	"fmt"
	"sync"

	"parley/agentloop"
	"parley/agentloop/lane"
	"parley/gateway/approval"
	"parley/gateway/delivery"
	"parley/gateway/progress"
	"parley/workspace"
	"parley/workspace/store"
)

// maxBegins is how often a run is begun before its failure is shown.
const maxBegins = 3

// Recover takes up the live runs of earlier boots side by side, so that they share commits: somebody waits for each. open
// are their streamed answers, which delivery has found.
func (ts *Turns) Recover(live []workspace.Run, open map[workspace.RunID]*workspace.Outbound) error {
	var wg sync.WaitGroup
	errs := make([]error, len(live))
	for i, run := range live {
		if run.Epoch == ts.Store.Epoch() {
			continue
		}
		if run.State == workspace.RunWaiting || run.State == workspace.RunPaused {
			if err := ts.takeUpSuspended(run, open[run.ID]); err != nil {
				errs[i] = err
			}
			continue
		}
		wg.Go(func() {
			if err := ts.resume(run, open[run.ID]); err != nil && !errors.Is(err, workspace.ErrConflict) {
				errs[i] = fmt.Errorf("resume run %s: %w", run.ID, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// resume takes up one run.
func (ts *Turns) resume(run workspace.Run, open *workspace.Outbound) error {
	run, err := ts.Store.Resume(run.ID)
	if err != nil {
		return err
	}
	taken, err := ts.taken(run)
	if err != nil {
		return err
	}
	if len(taken) == 0 {
		_, err := ts.Store.Finish(store.Finish{Run: run, State: workspace.RunFailed, Reason: "nothing to answer",
			AnswerEntry: -1, InputState: workspace.InputFailed})
		return err
	}
	if run.StopBy != "" || run.Tries > maxBegins {
		return ts.giveUp(run, taken, open)
	}
	if run.PauseBy != "" { // it was to pause at its next step
		if err := ts.pause(run, workspace.RunRunning); err != nil {
			return err
		}
		if run, err = ts.Store.Run(run.ID); err != nil {
			return err
		}
		return ts.takeUpSuspended(run, open)
	}
	steps, err := ts.Store.Steps(run.ID)
	if err != nil {
		return err
	}
	ts.lanes.Resume(taken[0].Binding.Key, resumed{run: run, steps: steps, open: open}, taken...)
	return nil
}

// takeUpSuspended hands a suspended run of an earlier boot to its lane.
func (ts *Turns) takeUpSuspended(run workspace.Run, open *workspace.Outbound) error {
	taken, err := ts.taken(run)
	if err != nil {
		return err
	}
	if len(taken) == 0 {
		return fmt.Errorf("suspended run %s answers nothing: %w", run.ID, workspace.ErrConflict)
	}
	key := taken[0].Binding.Key
	why, after, wake := whyPaused, lane.Never, run.StopBy != ""
	if run.State == workspace.RunPaused {
		wake = wake || run.PauseBy == ""
	} else {
		why, after, wake = whyPerson, 0, true
		list, err := ts.Store.RunApprovals(run.ID)
		if err != nil {
			return err
		}
		if i := len(list) - 1; i >= 0 && list[i].State == workspace.ApprovalPending {
			why, wake = approval.WaitsFor(list[i]), run.StopBy != ""
			after = approval.SupersededAfter(list[i], ts.steers(key))
		}
	}
	ts.lanes.Park(key, suspended{run: run.ID, open: progress.Answer{Out: open}}, why, after, taken...)
	if run.StopBy != "" {
		ts.lanes.Cancel(key, agentloop.ErrStopped, func(workspace.Input) bool { return true })
	} else if wake {
		ts.Bus.Wake(key)
	}
	return nil
}

// taken are the inputs that a live run answers.
func (ts *Turns) taken(run workspace.Run) (list []workspace.Input, err error) {
	inputs, err := ts.Store.RunInputs(run.ID)
	if err != nil {
		return nil, err
	}
	for _, in := range inputs {
		if in.State == workspace.InputTaken && in.RunID == run.ID {
			list = append(list, in)
		}
	}
	return list, nil
}

// giveUp ends a run that was stopped, or that took the gateway down three times, where its sender sees it.
func (ts *Turns) giveUp(run workspace.Run, taken []workspace.Input, open *workspace.Outbound) error {
	f := store.Finish{Run: run, Asked: true, State: workspace.RunFailed, Reason: "crashed", Inputs: taken,
		InputState: workspace.InputFailed, AnswerEntry: -1, Error: fmt.Sprintf("begun %d times", run.Tries)}
	text := fmt.Sprintf("Something went wrong (run %s). Please ask again.", workspace.Short(run.ID))
	if run.Tries > maxBegins {
		text = fmt.Sprintf("I tried %d times to answer this and was interrupted each time (run %s). Please ask again.",
			run.Tries-1, workspace.Short(run.ID))
	}
	if run.StopBy != "" {
		f.State, f.Reason, f.InputState, text = workspace.RunStopped, "stopped", workspace.InputStopped, "(stopped)"
	}
	if run.RoomID != "" && (run.StopBy == "" || open != nil) {
		n := delivery.Notice(workspace.AnswerKey(run.ID), run.RoomID, workspace.OutNotice, text)
		n.RunID = run.ID
		if open != nil {
			n.Streamed = open.ID
		}
		f.Answer = &n
	}
	got, err := ts.Store.Finish(f)
	if err != nil {
		return err
	}
	for _, ap := range got.Cancelled {
		ts.Questions.Resolved(ap)
	}
	if got.Answer != nil {
		ts.Delivery.Push(*got.Answer, false, nil)
	}
	return nil
}

// Sweep wakes what is suspended for nothing, and ends runs of this process that no lane is working on, when it finds them
// twice: their end could not be stored at the time, and their session would stay shut. It is given what it returned the
// last time.
func (ts *Turns) Sweep(seen map[workspace.RunID]bool) (alone map[workspace.RunID]bool) {
	alone = map[workspace.RunID]bool{}
	live, err := ts.Store.LiveRuns()
	if err != nil {
		ts.Log.Error("sweep cannot read live runs", "err", err)
		return alone
	}
	ts.wakeSuspended(live)
	for _, run := range live {
		ses, err := ts.Store.Session(run.SessionID)
		if err != nil || run.State != workspace.RunRunning || run.Epoch != ts.Store.Epoch() || ts.lanes.Look(ses.Key.String()).Running {
			continue
		}
		if alone[run.ID] = true; !seen[run.ID] {
			continue
		}
		inputs, err := ts.Store.RunInputs(run.ID)
		if err == nil {
			err = ts.giveUp(run, inputs, nil)
		}
		ts.Log.Error("a run was left without its lane", "run", run.ID, "session", ses.Key.String(), "err", err)
	}
	return alone
}

// wakeSuspended wakes what is suspended although it need not be: a wake-up that was lost costs no more than that.
func (ts *Turns) wakeSuspended(live []workspace.Run) {
	for _, run := range live {
		if run.State != workspace.RunWaiting && (run.State != workspace.RunPaused || run.PauseBy != "") {
			continue
		}
		ses, err := ts.Store.Session(run.SessionID)
		if err != nil {
			continue
		}
		view := ts.lanes.Look(ses.Key.String())
		if !view.Running { // its lane could not go on with it
			if err := ts.takeUpSuspended(run, nil); err != nil {
				ts.Log.Error("suspended run cannot be taken up", "run", run.ID, "err", err)
			}
			continue
		}
		if !view.Asleep {
			continue
		}
		if run.State == workspace.RunWaiting {
			list, err := ts.Store.RunApprovals(run.ID)
			if err != nil || len(list) > 0 && list[len(list)-1].State == workspace.ApprovalPending {
				continue
			}
		}
		ts.Bus.Wake(ses.Key.String())
	}
}
