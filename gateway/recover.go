package gateway

import (
	"context"
	"fmt"
	"time"

	"parley/workspace"
)

// recoverAll is the boot scan: what an earlier process left behind is taken up before anything new comes in.
//
//	a run that is suspended   held by its lane: it waits on for a person, or stays paused
//	a run that is running     resumed under the same id, or after three begins failed where its sender sees it
//	an input that is queued   offered to its lane; one past its age is set aside
//	a part that was sending   unknown: it may have been sent
//	a part that is ready      sent, once its channel is ready
func (g *Gateway) recoverAll() error {
	undelivered, err := g.store.OpenOutbound()
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
	if err := g.turns.Recover(live, open); err != nil {
		return err
	}
	g.questions.Recover(questions)
	for _, in := range queued {
		g.intake.Offer(g.base, in)
	}
	if len(live)+len(queued)+len(undelivered) > 0 {
		g.log.Info("unfinished work resumed", "runs", len(live), "inputs", len(queued), "answers", len(undelivered))
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
		alone = g.turns.Sweep(alone)
	}
}

const sweepEvery = 5 * time.Second
