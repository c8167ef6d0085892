package gateway

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"parley/gateway/delivery"
	"parley/workspace"
	"parley/workspace/store"
)

// maxBegins is how often a run is begun before its failure is shown.
const maxBegins = 3

// recoverAll is the boot scan: what an earlier process left behind is taken up before anything new comes in.
//
//	a run that lies still     parked in its lane: it waits on for a person, or stays paused
//	a run that is running     resumed under the same id, or after three begins failed where its sender sees it
//	an input that is queued   offered to its lane; one past its age is parked
//	a part that was sending   unknown: it may have been sent
//	a part that is ready      sent, once its channel is ready
func (g *Gateway) recoverAll(ctx context.Context) error {
	undelivered, err := g.store.Undelivered()
	if err != nil {
		return fmt.Errorf("read undelivered answers: %w", err)
	}
	live, err := g.store.LiveRuns()
	if err != nil {
		return fmt.Errorf("read live runs: %w", err)
	}
	queued, err := g.store.Queued()
	if err != nil {
		return fmt.Errorf("read queued inputs: %w", err)
	}
	open := g.deliver.Recover(undelivered) // before any run goes on: a room takes the first answer that it is given
	questions, err := g.questions.Backlog()
	if err != nil {
		return err
	}
	if err := g.resumeAll(ctx, live, open); err != nil {
		return err
	}
	g.questions.Recover(questions)
	for _, in := range queued {
		g.intake.Offer(g.base, in)
	}
	if len(live)+len(queued)+len(undelivered) > 0 {
		g.log.Info("took up what was left", "runs", len(live), "inputs", len(queued), "answers", len(undelivered))
	}
	return nil
}

// resumeAll takes up all runs of earlier boots side by side, so that they share commits: somebody waits for each.
func (g *Gateway) resumeAll(ctx context.Context, live []workspace.Run, open map[workspace.RunID]*workspace.Outbound) error {
	var wg sync.WaitGroup
	errs := make([]error, len(live))
	for i, run := range live {
		if run.Epoch == g.store.Epoch() {
			continue
		}
		if run.State == workspace.RunWaiting || run.State == workspace.RunPaused {
			if err := g.park(run, open[run.ID]); err != nil {
				errs[i] = err
			}
			continue
		}
		wg.Go(func() {
			if err := g.resume(ctx, run, open[run.ID]); err != nil && !errors.Is(err, workspace.ErrConflict) {
				errs[i] = fmt.Errorf("resume run %s: %w", run.ID, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// resume takes up one run.
func (g *Gateway) resume(ctx context.Context, run workspace.Run, open *workspace.Outbound) error {
	run, err := g.store.Resume(run.ID)
	if err != nil {
		return err
	}
	inputs, err := g.store.RunInputs(run.ID)
	if err != nil {
		return err
	}
	taken := inputs[:0:0]
	for _, in := range inputs {
		if in.State == workspace.InputTaken && in.RunID == run.ID {
			taken = append(taken, in)
		}
	}
	if len(taken) == 0 {
		_, err := g.store.Finish(store.Finish{Run: run, State: workspace.RunFailed, Reason: "nothing to answer", AnswerEntry: -1, InputState: workspace.InputFailed})
		return err
	}
	if run.StopBy != "" || run.Tries > maxBegins {
		return g.giveUp(run, taken, open)
	}
	if run.PauseBy != "" { // it was to pause at its next step
		if err := g.turns.pause(run, workspace.RunRunning); err != nil {
			return err
		}
		if run, err = g.store.Run(run.ID); err != nil {
			return err
		}
		return g.park(run, open)
	}
	steps, err := g.store.Steps(run.ID)
	if err != nil {
		return err
	}
	g.lanes.Resume(taken[0].Binding.Key, resumed{run: run, steps: steps, open: open}, taken...)
	return nil
}

// giveUp ends a run that was stopped, or that took the gateway down three times, where its sender sees it.
func (g *Gateway) giveUp(run workspace.Run, taken []workspace.Input, open *workspace.Outbound) error {
	f := store.Finish{Run: run, Asked: true, State: workspace.RunFailed, Reason: "crashed", Inputs: taken, InputState: workspace.InputFailed, AnswerEntry: -1,
		Error: fmt.Sprintf("begun %d times", run.Tries)}
	text := fmt.Sprintf("Something went wrong (run %s). Please ask again.", workspace.Short(run.ID))
	if run.Tries > maxBegins {
		text = fmt.Sprintf("I tried %d times to answer this and was interrupted each time (run %s). Please ask again.", run.Tries-1, workspace.Short(run.ID))
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
	got, err := g.store.Finish(f)
	if err != nil {
		return err
	}
	for _, ap := range got.Cancelled {
		g.questions.Resolved(ap)
	}
	if got.Answer != nil {
		g.deliver.Push(*got.Answer, false, nil)
	}
	return nil
}

// sweep is the scan behind the wake-ups: every few seconds it offers what is queued in the journal and known to no
// lane. A wake-up that was lost costs no more than that.
func (g *Gateway) sweep(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	alone := map[workspace.RunID]bool{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		queued, err := g.store.Queued()
		if err != nil {
			g.log.Error("sweep cannot read the journal", "err", err)
			continue
		}
		for _, in := range queued {
			if g.opt.Now().Sub(in.Received) > sweepEvery {
				g.intake.Offer(g.base, in)
			}
		}
		alone = g.sweepRuns(alone)
	}
}

// sweepRuns ends runs of this process that no lane is working on, when it finds them twice: their end could not be
// stored at the time, and their session would stay shut.
func (g *Gateway) sweepRuns(seen map[workspace.RunID]bool) map[workspace.RunID]bool {
	alone := map[workspace.RunID]bool{}
	live, err := g.store.LiveRuns()
	if err != nil {
		g.log.Error("sweep cannot read live runs", "err", err)
		return alone
	}
	g.sweepHeld(live)
	for _, run := range live {
		ses, err := g.store.Session(run.SessionID)
		if err != nil || run.State != workspace.RunRunning || run.Epoch != g.store.Epoch() || g.lanes.Look(ses.Key.String()).Running {
			continue
		}
		if alone[run.ID] = true; !seen[run.ID] {
			continue
		}
		inputs, err := g.store.RunInputs(run.ID)
		if err == nil {
			err = g.giveUp(run, inputs, nil)
		}
		g.log.Error("a run was left without its lane", "run", run.ID, "session", ses.Key.String(), "err", err)
	}
	return alone
}

const sweepEvery = 5 * time.Second
