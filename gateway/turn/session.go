// What verbs do to the turn of a session.

package turn

import (
	"context"

	"parley/agentloop/lane"
	"parley/gateway/live"
	"parley/workspace"
)

// Lane shows what runs and what waits in a session.
func (ts *Turns) Lane(key string) lane.View { return ts.lanes.Look(key) }

// Cancel ends the running turn of a session if match accepts its first input.
func (ts *Turns) Cancel(key string, cause error, match func(first workspace.Input) bool) bool {
	return ts.lanes.Cancel(key, cause, match)
}

// Remove takes inputs out of the queue that are ended in the journal.
func (ts *Turns) Remove(key string, seqs ...int64) {
	ts.lanes.Remove(key, seqs...)
	ts.Feed.Publish(key, live.Update{Stored: true})
}

// Offer queues inputs that somebody asked for again; they are not dropped however many wait.
func (ts *Turns) Offer(inputs ...workspace.Input) {
	for _, in := range inputs {
		ts.lanes.Again(in.Binding.Key, in)
	}
}

// Pausing asks the turn of a session, if match accepts its first input, to pause at its next step, or to go on.
func (ts *Turns) Pausing(key string, on bool, match func(first workspace.Input) bool) {
	ts.lanes.Pausing(key, on, match)
	if !on {
		ts.Bus.Wake(key)
	}
	ts.Feed.Publish(key, live.Update{Stored: true})
}

// Stuck says whether the turn of a session does nothing but wait for its model, which fails or has sent nothing yet.
func (ts *Turns) Stuck(key string) bool { return ts.lanes.Stuck(key) }

// Anew has the turn of a session, if it is stuck so and match accepts its first input, ask the models that the session has now, at
// once. It says whether it does.
func (ts *Turns) Anew(key string, match func(first workspace.Input) bool) bool {
	return ts.lanes.Anew(key, match)
}

// Drain takes up nothing new, lets turns end until ctx does, and waits for all of them.
func (ts *Turns) Drain(ctx context.Context) { ts.lanes.Drain(ctx) }

// ShowTyping shows a room that somebody is at work, until stop is called.
func (ts *Turns) ShowTyping(ctx context.Context, room workspace.RoomID) (stop func()) {
	return ts.show.Typing(ctx, room, ts.Snapshot().Progress.Typing)
}
