package gateway

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"parley/agentloop"
	"parley/channels"
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

// gather fetches what inputs carry, for a turn that is about to take them, and returns the inputs as they are then: they
// may have been edited meanwhile. Its error is the cause with which the turn was ended; then nothing may be committed.
func (ts *turns) gather(ctx context.Context, rec *recorder, inputs []workspace.Input, hist []workspace.Entry) ([]workspace.Input, attachment.Fetched, error) {
	if !attachment.AnyCarries(inputs) {
		return inputs, attachment.Fetched{}, nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	turn := rec.lane.Context()
	// A further message does not end this: what is fetched is wanted by the next try as well.
	defer context.AfterFunc(turn, func() {
		for _, cause := range []error{agentloop.ErrStopped, agentloop.ErrShutdown} {
			if errors.Is(context.Cause(turn), cause) {
				cancel(cause)
			}
		}
	})()
	agent := rec.snapshot.Agent(rec.key.Agent)
	who := workspace.Actor{Person: rec.run.Requester, Role: rec.run.Role}
	inputs = ts.newest(inputs)
	got := ts.files.Fetch(ctx, attachment.Batch{WorkDir: agent.Files.WorkDir(agent.Scope, rec.key, who, ts.at(inputs)), Hear: rec.snapshot.Transcriber, Newest: newestPicture(hist), Inputs: inputs})
	if ctx.Err() != nil {
		return nil, attachment.Fetched{}, context.Cause(ctx)
	}
	inputs = ts.newest(inputs)
	rec.lane.Renew(inputs)
	return inputs, got, nil
}

// newest reads inputs again: an edit replaces the text of one that waits, and a transcript is kept with it.
func (ts *turns) newest(inputs []workspace.Input) []workspace.Input {
	list := slices.Clone(inputs)
	for i := range list {
		if now, err := ts.store.Input(list[i].ID); err == nil { // else the commit will fail as well
			list[i].Text, list[i].Data = now.Text, now.Data
		}
	}
	return list
}

// gatherFirst is gather for a turn that has no run yet. Meanwhile typing is shown.
func (ts *turns) gatherFirst(ctx context.Context, rec *recorder, inputs []workspace.Input) (attachment.Fetched, error) {
	if !attachment.AnyCarries(inputs) {
		return attachment.Fetched{}, nil
	}
	var hist []workspace.Entry
	ses, err := ts.store.SessionByKey(rec.key)
	switch {
	case errors.Is(err, workspace.ErrNotFound):
	case err != nil:
		return attachment.Fetched{}, err
	default:
		if mem, err := ts.transcripts.Load(rec.lane.Key, ses.ID, rec.run.ID); err == nil {
			hist = mem.Append(nil)
		}
	}
	defer ts.typing(ctx, inputs[0].RoomID, rec.snapshot.Progress.Typing)()
	_, got, err := ts.gather(ctx, rec, inputs, hist)
	return got, err
}

// typing is shown in a room from after on, until the returned function is called.
func (ts *turns) typing(ctx context.Context, room workspace.RoomID, after time.Duration) (stop func()) {
	addr, err := ts.deliver.Address(room)
	if room == "" || err != nil {
		return func() {}
	}
	l := ts.channels.Find(addr)
	if l == nil || l.Traits.TypingEvery <= 0 {
		return func() {}
	}
	typer, ok := channels.As[channels.Typer](l.Adapter)
	if !ok {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer guard(l.Log, "typing")
		for wait := after; channels.Sleep(ctx, wait); wait = l.Traits.TypingEvery {
			if err := typer.ShowTyping(ctx, addr); err != nil {
				l.Log.Debug("typing is not shown", "err", err)
			}
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

// say tells people what could not be had. It comes after the commit that holds the rest: a crash in between costs the
// sentence, and the model knows.
func (ts *turns) say(rec *recorder, got attachment.Fetched) {
	for _, n := range got.Notices {
		if n.In.RoomID == "" {
			continue // a local surface shows the transcript
		}
		o := delivery.NoticeTo(n.In.ID, "files", n.In.RoomID, workspace.OutNotice, n.Text)
		if n.Key != "" {
			o = delivery.Notice("session:"+string(rec.run.SessionID)+":"+n.Key, n.In.RoomID, workspace.OutNotice, n.Text)
		}
		out, err := ts.store.Outbound(o)
		if err != nil {
			ts.log.Error("notice cannot be stored", "run", rec.run.ID, "err", err)
			continue
		}
		ts.deliver.PushAll(out)
	}
}
