// The record of a turn while it runs.

package turn

import (
	"context"
	"errors"
	"slices"
	"time"

	"parley/agentloop"
	"parley/agentloop/lane"
	"parley/gateway/approval"
	"parley/gateway/attachment"
	"parley/gateway/live"
	"parley/gateway/progress"
	"parley/gateway/snapshot"
	"parley/gateway/transcript"
	"parley/gateway/transport"
	"parley/workspace"
	"parley/workspace/store"
)

// recorder is one turn of Turns: it makes one run durable. It is the runner's only way to the store, and used by the
// turn's goroutine alone.
type recorder struct {
	ts       *Turns
	lane     *lane.Turn
	key      workspace.Key
	snapshot *snapshot.Snapshot // that it began with
	run      workspace.Run
	mem      *transcript.Session
	at       place
	over     workspace.Overrides
	progress *progress.Progress
	open     progress.Answer // of an earlier pass
	turn     agentloop.Turn
	began    time.Time

	step    int                 // number that the next answer of the model will have in the journal
	usage   workspace.Usage     // of the steps so far
	extra   workspace.Usage     // of summaries that were made for it
	weighed bool                // its conversation was looked at for its length
	asked   bool                // it has asked people for approvals, or an earlier try of it may have
	waits   *workspace.Approval // for which it waits now
	resumed bool
	ended   bool
}

var _ agentloop.Recorder = (*recorder)(nil)

// place is where a turn was asked for; the zero value is the API.
type place struct {
	workspace.Room
	channel *transport.Channel // that serves the room; nil: none does
}

func (ts *Turns) placeOf(room workspace.RoomID) place {
	p := place{Room: workspace.Room{ID: room}}
	if room == "" {
		return p
	}
	if addr, err := ts.Delivery.Address(room); err == nil {
		p.Address = addr
		p.channel = ts.Channels.Serving(addr)
	}
	return p
}

// local says that who asked there reads the transcript.
func (p *place) local() bool { return p.channel == nil || p.channel.Traits.Local }

// sends says that what the turn says goes to the room.
func (p *place) sends() bool { return p.ID != "" && (p.channel == nil || !p.channel.Traits.Local) }

// remember adds a run's stored entries to the transcript in memory and to what the loop is given. Users' texts are in
// their inputs, not in the entries.
func (r *recorder) remember(entries []workspace.Entry, inputs []workspace.Input) {
	var kept []workspace.Entry
	for _, e := range entries {
		if e.Role == workspace.RoleEvent {
			continue
		}
		for _, in := range inputs {
			if e.InputID == in.ID && len(e.Body.Content) == 0 || e.InputID == in.ID && !r.resumed {
				e.Body = store.UserBody(e.Body, in)
			}
		}
		kept = append(kept, e)
	}
	all := r.mem.Append(kept)
	if r.turn.History == nil {
		r.turn.History = all
		return
	}
	r.turn.History = append(r.turn.History, kept...)
}

// restart takes the message that came right after: the same run answers both. Steps that the first try could still
// journal stand in Turn.Journal, so that the next one goes on behind them. There may be none: then a person wants the model
// asked at once, or another one.
func (r *recorder) restart(ctx context.Context) error {
	inputs := r.lane.Restart()
	r.askAnew()
	if len(inputs) == 0 {
		return nil
	}
	inputs, files, ok := r.fetchMore(ctx, inputs)
	if !ok {
		return nil
	}
	got, err := r.ts.Store.Take(r.run, inputs, transcript.Bodies(nil, inputs, files.Content))
	if err != nil {
		r.lane.Forgo(inputs)
		return err
	}
	r.lane.Forgo(got.Gone)
	r.remember(got.Entries, inputs)
	r.tellMissing(files)
	return nil
}

// askAnew has the next try ask the models that the session has now, at once. Models that it had not before have failed in nothing.
func (r *recorder) askAnew() {
	r.over = r.ts.Transcripts.Overrides(r.lane.Key)
	models := r.snapshot.Agent(r.key.Agent).Chain(r.over)
	if !slices.Equal(models, r.turn.Models) {
		r.turn.Models = models
		if r.turn.Trouble != nil {
			r.Trouble(nil)
		}
	}
	r.turn.Think = r.over.Think
	r.emit(agentloop.Event{Run: r.run.ID, Type: agentloop.EventDiscard})
}

func (r *recorder) emit(e agentloop.Event) {
	r.progress.See(e)
	switch e.Type {
	case agentloop.EventAsk:
		r.lane.Stuck(true)
	case agentloop.EventText, agentloop.EventThinking, agentloop.EventToolStart:
		r.lane.Stuck(false)
	}
	if e.Type == agentloop.EventText && r.ts.Feed.Watched(r.lane.Key) {
		r.lane.Shown()
	}
	r.ts.Feed.Publish(r.lane.Key, live.Update{Session: r.run.SessionID, Run: r.run.ID, Step: r.step, Event: e})
}

// stored tells who watches that there is more in the store.
func (r *recorder) stored() {
	r.ts.Feed.Publish(r.lane.Key, live.Update{Session: r.run.SessionID, Run: r.run.ID, Stored: true})
}

// Trouble notes what the model fails with where a restart, a further try, and who looks at the run find it.
func (r *recorder) Trouble(t *workspace.Trouble) {
	began := (r.turn.Trouble == nil) != (t == nil)
	r.turn.Trouble = t
	r.lane.Stuck(t != nil)
	r.ts.Store.Trouble(r.run.ID, t, func() {
		r.stored()
		if began {
			r.ts.Feed.Needs()
		}
	})
}

// Ask has a person asked about a call, or finds what became of that.
func (r *recorder) Ask(_ context.Context, w agentloop.Wanted) (agentloop.Answer, error) {
	r.asked = true
	answer, waits, err := r.ts.Questions.Ask(approval.Asker{Run: r.run, Key: r.key, Requester: r.turn.Requester,
		Room: r.at.Room, Channel: r.at.channel, Answers: r.lane.Inputs, TTL: r.snapshot.TTL,
		Steers: r.ts.steers(r.lane.Key), Superseded: r.lane.Superseded}, w)
	if waits != nil {
		r.waits = waits
	}
	return answer, err
}

// left is how much of its time the run has. What the clock says is held against the whole: it may have been set.
func (r *recorder) left() time.Duration {
	whole, now := r.snapshot.TurnTimeout, r.ts.Now()
	if r.run.Deadline.IsZero() { // begun before deadlines were kept
		return whole
	}
	left := r.run.Deadline.Sub(now)
	if !r.resumed && left < whole-time.Second { // it waited for a place, or for its files: that is not its own time
		r.run.Deadline, left = now.Add(whole), whole
		r.ts.Store.MoveDeadline(r.run.ID, r.run.Deadline)
	}
	return max(0, min(left, whole))
}

// Step journals steps with their lines of the transcript.
func (r *recorder) Step(ctx context.Context, boundary bool, steps ...workspace.Step) (agentloop.Boundary, error) {
	r.lane.Stuck(false)
	r.lane.Shown() // something was done: from now on a message steers and does not restart
	r.journal(steps)
	r.progress.Follow(stepSummary(r.over.Verbose, r.turn.Journal))
	u := store.StepUnit{Run: r.run, Steps: steps, Entries: stepEntries(steps), Audit: commandRows(r.run, r.key, r.turn.Journal, steps)}
	var files attachment.Fetched
	for _, st := range steps {
		r.step = max(r.step, st.N+1)
		if st.Kind == workspace.StepModel {
			r.ts.Feed.Settle(r.lane.Key)
		}
		if st.State == workspace.StepStarted && st.Effect == workspace.Outside {
			u.Wait = true
		}
		if st.Kind == workspace.StepModel && st.Body.Usage != nil {
			r.usage = r.usage.Add(*st.Body.Usage)
			sum := r.usage // the writer reads it later
			u.Usage = &sum
		}
	}
	if boundary {
		inputs := r.lane.Boundary()
		var ok bool
		if inputs, files, ok = r.fetchMore(ctx, inputs); ok && len(inputs) > 0 {
			u.Inputs, u.Bodies, u.Wait = inputs, transcript.Bodies(nil, inputs, files.Content), true
		}
	}
	r.handOver(steps)
	if u.Outbound = r.sentFiles(steps); len(u.Outbound) > 0 {
		u.Wait = true
	}
	u.Then = r.stored
	got, err := r.ts.Store.Step(u)
	if err != nil {
		r.lane.Forgo(u.Inputs)
		return agentloop.Boundary{}, err
	}
	r.lane.Forgo(got.Gone)
	r.ts.Delivery.PushAll(got.Sent)
	r.mem.Append(u.Entries)
	b := agentloop.Boundary{Stop: got.StopBy != "" || errors.Is(context.Cause(ctx), agentloop.ErrStopped), Held: got.Held,
		Pause: boundary && r.lane.Pausing()}
	if len(u.Inputs) > 0 {
		before := len(r.turn.History)
		r.remember(got.Entries[len(u.Entries):], u.Inputs)
		b.Inputs = r.turn.History[before:]
		r.tellMissing(files)
	}
	return b, nil
}

// journal keeps what a further try of this turn must know: each step in its newest state.
func (r *recorder) journal(steps []workspace.Step) {
	list := slices.Clone(r.turn.Journal) // the loop reads the old one
	for _, st := range steps {
		i := slices.IndexFunc(list, func(old workspace.Step) bool { return old.N == st.N })
		if i < 0 {
			list = append(list, st)
			continue
		}
		list[i] = st
	}
	r.turn.Journal = list
}

// stepEntries are the transcript's lines of steps: the model's words with its calls, and each call's result.
func stepEntries(steps []workspace.Step) []workspace.Entry {
	var out []workspace.Entry
	for _, st := range steps {
		switch {
		case st.Kind == workspace.StepModel:
			out = append(out, workspace.Entry{RunID: st.RunID, StepN: st.N, Role: workspace.RoleAssistant,
				Body: workspace.EntryBody{Content: st.Body.Content}})
		case st.State == workspace.StepPlanned || st.State == workspace.StepStarted:
		default:
			out = append(out, workspace.Entry{RunID: st.RunID, StepN: st.N, Role: workspace.RoleTool,
				Body: workspace.EntryBody{Content: st.Body.Content, Files: st.Body.Files, Reason: st.Body.Reason}})
		}
	}
	return out
}
