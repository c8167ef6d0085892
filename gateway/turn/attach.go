// What the inputs of a turn carry: it is fetched before the turn takes them.

package turn

import (
	"context"
	"errors"
	"slices"

	"parley/agentloop"
	"parley/gateway/attachment"
	"parley/gateway/delivery"
	"parley/workspace"
)

// newestPicture is the number of the newest picture of a transcript.
func newestPicture(hist []workspace.Entry) int {
	for i := len(hist) - 1; i >= 0; i-- {
		for _, c := range slices.Backward(hist[i].Body.Content) {
			if c.Nth > 0 {
				return c.Nth
			}
		}
	}
	return 0
}

// fetch has what inputs carry, for a turn that is about to take them, and returns the inputs as they are then: they may
// have been edited meanwhile. Its error is the cause with which the turn was ended; then nothing may be committed.
func (r *recorder) fetch(ctx context.Context, inputs []workspace.Input, hist []workspace.Entry) ([]workspace.Input,
	attachment.Fetched, error) {
	if !attachment.AnyCarries(inputs) {
		return inputs, attachment.Fetched{}, nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	turn := r.lane.Context()
	// A further message does not end this: what is fetched is wanted by the next try as well.
	defer context.AfterFunc(turn, func() {
		for _, cause := range []error{agentloop.ErrStopped, agentloop.ErrShutdown} {
			if errors.Is(context.Cause(turn), cause) {
				cancel(cause)
			}
		}
	})()
	agent := r.snapshot.Agent(r.key.Agent)
	who := workspace.Actor{Person: r.run.Requester, Role: r.run.Role}
	inputs = r.ts.newest(inputs)
	dir := agent.Files.WorkDir(agent.Scope, r.key, who, addressOf(r.ts.Delivery, inputs[0].RoomID))
	got := r.ts.Attachments.Fetch(ctx, attachment.Batch{WorkDir: dir, Hear: r.snapshot.Transcriber,
		Newest: newestPicture(hist), Inputs: inputs})
	if ctx.Err() != nil {
		return nil, attachment.Fetched{}, context.Cause(ctx)
	}
	inputs = r.ts.newest(inputs)
	r.lane.Renew(inputs)
	return inputs, got, nil
}

// newest reads inputs again: an edit replaces the text of one that waits, and a transcript is kept with it.
func (ts *Turns) newest(inputs []workspace.Input) []workspace.Input {
	list := slices.Clone(inputs)
	for i := range list {
		if now, err := ts.Store.Input(list[i].ID); err == nil { // else the commit will fail as well
			list[i].Text, list[i].Data = now.Text, now.Data
		}
	}
	return list
}

// fetchMore is fetch for further inputs. It is false when the turn was ended meanwhile: then they are not its own.
func (r *recorder) fetchMore(ctx context.Context, inputs []workspace.Input) ([]workspace.Input, attachment.Fetched, bool) {
	now, files, err := r.fetch(ctx, inputs, r.turn.History)
	if err != nil {
		r.lane.Forgo(inputs)
	}
	return now, files, err == nil
}

// fetchFirst is fetch for a turn that has no run yet. Meanwhile typing is shown.
func (r *recorder) fetchFirst(ctx context.Context, inputs []workspace.Input) (attachment.Fetched, error) {
	if !attachment.AnyCarries(inputs) {
		return attachment.Fetched{}, nil
	}
	var hist []workspace.Entry
	ses, err := r.ts.Store.SessionByKey(r.key)
	switch {
	case errors.Is(err, workspace.ErrNotFound):
	case err != nil:
		return attachment.Fetched{}, err
	default:
		if mem, err := r.ts.Transcripts.Load(r.lane.Key, ses.ID, r.run.ID); err == nil {
			hist = mem.Append(nil)
		}
	}
	defer r.ts.show.Typing(ctx, inputs[0].RoomID, r.snapshot.Progress.Typing)()
	_, got, err := r.fetch(ctx, inputs, hist)
	return got, err
}

// tellMissing tells people what could not be had. It comes after the commit that holds the rest: a crash in between costs the
// sentence, and the model knows.
func (r *recorder) tellMissing(got attachment.Fetched) {
	for _, n := range got.Notices {
		if n.In.RoomID == "" {
			continue // a local surface shows the transcript
		}
		o := delivery.NoticeTo(n.In.ID, "files", n.In.RoomID, workspace.OutNotice, n.Text)
		if n.Key != "" {
			o = delivery.Notice("session:"+string(r.run.SessionID)+":"+n.Key, n.In.RoomID, workspace.OutNotice, n.Text)
		}
		out, err := r.ts.Store.Outbound(o)
		if err != nil {
			r.ts.Log.Error("notice cannot be stored", "run", r.run.ID, "err", err)
			continue
		}
		r.ts.Delivery.PushAll(out)
	}
}
