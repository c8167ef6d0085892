// The beginning of a turn: its run is stored, its transcript is at hand, its prompt is built.

package turn

import (
	"context"
	"errors"
	"slices"

	"parley/agentloop"
	"parley/agentloop/lane"
	"parley/gateway/attachment"
	"parley/gateway/live"
	"parley/gateway/progress"
	"parley/gateway/transcript"
	"parley/workspace"
	"parley/workspace/store"
)

// resumed is a run of an earlier boot, handed to its lane.
type resumed struct {
	run   workspace.Run
	steps []workspace.Step
	open  *workspace.Outbound // its streamed answer
}

// begin makes the recorder of a turn, whose run may have begun already: with its message's commit, in an earlier boot, or
// before it was suspended.
func (ts *Turns) begin(ctx context.Context, t *lane.Turn) (*recorder, error) {
	key, err := workspace.ParseKey(t.Key)
	if err != nil {
		return nil, err
	}
	in := t.Inputs[0]
	rec := &recorder{ts: ts, lane: t, key: key, snapshot: ts.Snapshot(), began: ts.Now()}
	var entries []workspace.Entry
	var files attachment.Fetched
	switch begun := t.Begun.(type) {
	case *store.Begun:
		rec.run, entries = begun.Run, begun.Entries
	case resumed:
		rec.run, rec.open.Out, rec.turn.Journal, rec.resumed, rec.asked = begun.run, begun.open, begun.steps, true, true
	case suspended:
		if err := rec.goOn(begun); err != nil {
			return nil, err
		}
	default:
		if entries, files, err = rec.beginNew(ctx); err != nil {
			return nil, err
		}
	}
	ts.Feed.Publish(t.Key, live.Update{Session: rec.run.SessionID, Run: rec.run.ID, Stored: true})
	if rec.mem, err = ts.Transcripts.Load(t.Key, rec.run.SessionID, rec.run.ID); err != nil {
		return nil, err
	}
	if rec.resumed {
		if entries, err = ts.Store.RunEntries(rec.run.SessionID, rec.run.ID); err != nil {
			return nil, err
		}
	}
	rec.remember(entries, t.Inputs)
	rec.step = 1
	for _, st := range rec.turn.Journal {
		rec.step = max(rec.step, st.N+1)
		if st.Body.Usage != nil {
			rec.usage = rec.usage.Add(*st.Body.Usage)
		}
	}
	rec.furnish(in)
	rec.tellMissing(files)
	return rec, nil
}

// beginNew stores a run that no commit has begun yet, after what its inputs carry has been fetched.
func (r *recorder) beginNew(ctx context.Context) ([]workspace.Entry, attachment.Fetched, error) {
	ts, t, in := r.ts, r.lane, r.lane.Inputs[0]
	r.run = workspace.Run{ID: workspace.RunID(ts.Store.IDs().New()), Requester: in.Person, Role: in.Role,
		Deadline: ts.Now().Add(ts.Snapshot().TurnTimeout)}
	var end *store.Finish
	was, replaces := t.Interrupted.(*interrupted)
	fresh := t.Inputs
	if replaces { // what the old run had taken is in the transcript
		end = &was.end
		fresh = slices.DeleteFunc(slices.Clone(fresh), func(in workspace.Input) bool {
			return slices.ContainsFunc(end.Inputs, func(old workspace.Input) bool { return old.Seq == in.Seq })
		})
	}
	files, err := r.fetchFirst(ctx, fresh)
	if err != nil {
		return nil, files, err
	}
	lines, last, err := ts.Transcripts.Said(r.key)
	if err != nil {
		return nil, files, err
	}
	if past := ts.seed(ctx, r.key, t.Inputs); past != nil {
		lines = past
	}
	unit := store.Begin{Run: r.run, Entries: transcript.Bodies(lines, t.Inputs, files.Content)}
	got, err := ts.Store.Begin(unit, r.key, in.RoomID, t.Inputs, end)
	if err != nil {
		return nil, files, err
	}
	if replaces {
		was.ended()
	}
	ts.Transcripts.Heard(t.Key, last)
	r.run = got.Run
	return got.Entries, files, nil
}

// unbegun is for a turn that could not be stored. The run that it was to replace must end all the same.
func (ts *Turns) unbegun(t *lane.Turn, err error) {
	if errors.Is(err, store.ErrClosed) {
		return
	}
	if errors.Is(err, agentloop.ErrShutdown) || errors.Is(err, agentloop.ErrPaused) {
		return // what was queued or running is so at the next boot; what is paused stays suspended
	}
	if gone := ts.giveBack(t); !gone && !errors.Is(err, agentloop.ErrStopped) {
		ts.Log.Error("turn cannot begin", "session", t.Key, "err", err)
	}
	was, ok := t.Interrupted.(*interrupted)
	if !ok {
		return
	}
	if _, err := ts.Store.Finish(was.end); err != nil {
		ts.Log.Error("interrupted run cannot be ended", "run", was.end.Run.ID, "err", err)
		return
	}
	was.ended()
}

// giveBack returns those inputs of a turn that are still queued, so that nothing newer overtakes them. It says whether
// any was ended meanwhile: stopped or deleted, while its files were fetched.
func (ts *Turns) giveBack(t *lane.Turn) (gone bool) {
	var list []workspace.Input
	for _, in := range t.Inputs {
		now, err := ts.Store.Input(in.ID)
		if err != nil {
			ts.Log.Error("input cannot be read", "input", in.ID, "err", err)
			return false // the sweep offers them all
		}
		switch now.State {
		case workspace.InputQueued:
			list = append(list, now)
		case workspace.InputTaken: // by the run that this turn was to replace
		default:
			gone = true
		}
	}
	t.GiveBack(list)
	return gone
}

// furnish fills in what the loop needs to know, and lets the progress begin.
func (r *recorder) furnish(in workspace.Input) {
	agent := r.snapshot.Agent(r.key.Agent)
	r.at = r.ts.placeOf(r.run.RoomID)
	r.over = r.mem.Stored().Overrides
	shown := r.at.channel
	if shown != nil && (shown.Traits.Local || !shown.Serves(r.at.Address)) || r.over.Send == "off" {
		shown = nil // who reads the transcript sees the turn itself; and a channel must connect first
	}
	r.progress = r.ts.show.Watch(progress.Turn{Channel: shown, Room: r.at.Room, Run: r.run.ID, Lane: r.lane, When: r.snapshot.Progress,
		Thinks: r.over.Reasoning == "on", Open: r.open})
	t := &r.turn
	t.Run, t.Session, t.SessionID, t.Agent = r.run.ID, r.key, r.run.SessionID, agent.ID
	t.Requester = workspace.Actor{Person: r.run.Requester, Role: r.run.Role, Name: in.Sender}
	if r.resumed { // it may have been suspended for long: rights can only have become fewer
		t.Requester.Role = r.ts.roleNow(r.run)
	}
	t.Network, t.PeerKind, t.Started = string(r.at.Network), string(r.at.Kind), r.run.Started
	t.Models, t.MaxSteps, t.Think = agent.Chain(r.over), agent.MaxSteps, r.over.Think
	t.Trouble = r.run.Trouble
	r.lane.Stuck(t.Trouble != nil)
	if t.Trouble != nil && !slices.Contains(t.Models, t.Trouble.Model) { // the session has another model since
		r.Trouble(nil)
	}
	t.Summary, t.Known = r.mem.Summary(), &r.mem.Known
	t.Channel, t.Route = in.Data.Channel, in.Binding.Rule
	r.furnishWork(agent)
	t.System, t.Volatile = agent.Prompt(t, in.Data.Channel)
}
