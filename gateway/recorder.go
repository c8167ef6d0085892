package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/agentloop"
	"parley/agentloop/lane"
	"parley/channels"
	"parley/gateway/attachment"
	"parley/gateway/delivery"
	"parley/gateway/live"
	"parley/gateway/snapshot"
	"parley/gateway/transcript"
	"parley/gateway/transport"
	"parley/workspace"
	"parley/workspace/store"
)

// recorder makes one run durable. It is the loop's only way to the store, and used by the turn's goroutine alone.
type recorder struct {
	ts       *turns
	lane     *lane.Turn
	key      workspace.Key
	snapshot *snapshot.Snapshot // that it began with
	run      workspace.Run
	mem      *transcript.Session
	room     workspace.Room
	line     *transport.Channel
	sign     *sign
	open     *workspace.Outbound
	turn     agentloop.Turn
	began    time.Time
	asking   int // number that the next answer of the model will have in the journal

	usage   workspace.Usage // of the steps so far
	extra   workspace.Usage // of summaries that were made for it
	over    workspace.Overrides
	weighed bool                // its conversation was looked at for its length
	asked   bool                // it has asked people for approvals, or an earlier try of it may have
	waits   *workspace.Approval // for which it waits now
	job     *delivery.Job       // of the streamed answer of an earlier pass
	resumed bool
	ended   bool
}

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
// journal stand in Turn.Journal, so that the next one goes on behind them.
func (r *recorder) restart(ctx context.Context) error {
	inputs := r.lane.Restart()
	if len(inputs) == 0 {
		return nil
	}
	inputs, files, ok := r.gather(ctx, inputs)
	if !ok {
		return nil
	}
	got, err := r.ts.store.Take(r.run, inputs, transcript.Bodies(nil, inputs, files.Content))
	if err != nil {
		r.lane.Forgo(inputs)
		return err
	}
	r.lane.Forgo(got.Gone)
	r.remember(got.Entries, inputs)
	r.ts.say(r, files)
	return nil
}

// gather fetches what further inputs carry. It is false when the turn was ended meanwhile: then they are not its own.
func (r *recorder) gather(ctx context.Context, inputs []workspace.Input) ([]workspace.Input, attachment.Fetched, bool) {
	now, files, err := r.ts.gather(ctx, r, inputs, r.turn.History)
	if err != nil {
		r.lane.Forgo(inputs)
	}
	return now, files, err == nil
}

func (r *recorder) emit(e agentloop.Event) {
	r.sign.see(e)
	if e.Type == agentloop.EventText && r.ts.feed.Watched(r.lane.Key) {
		r.lane.Shown()
	}
	r.ts.feed.Publish(r.lane.Key, live.Update{Session: r.run.SessionID, Run: r.run.ID, Step: r.asking, Event: e})
}

// Trouble notes what the model fails with where a restart, a further try, and who looks at the run find it.
func (r *recorder) Trouble(t *workspace.Trouble) {
	r.turn.Trouble = t
	r.ts.store.Trouble(r.run.ID, t, func() {
		r.ts.feed.Publish(r.lane.Key, live.Update{Session: r.run.SessionID, Run: r.run.ID, Stored: true})
	})
}

// left is how much of its time the run has. What the clock says is held against the whole: it may have been set.
func (r *recorder) left() time.Duration {
	whole, now := r.snapshot.TurnTimeout, r.ts.now()
	if r.run.Deadline.IsZero() { // begun before deadlines were kept
		return whole
	}
	left := r.run.Deadline.Sub(now)
	if !r.resumed && left < whole-time.Second { // it waited for a place, or for its files: that is not its own time
		r.run.Deadline, left = now.Add(whole), whole
		r.ts.store.MoveDeadline(r.run.ID, r.run.Deadline)
	}
	return max(0, min(left, whole))
}

// Step journals steps with their lines of the transcript.
func (r *recorder) Step(ctx context.Context, boundary bool, steps ...workspace.Step) (agentloop.Boundary, error) {
	r.lane.Shown() // something was done: from now on a message steers and does not restart
	r.journal(steps)
	r.sign.follow(r.trail())
	u := store.StepUnit{Run: r.run, Steps: steps, Entries: stepEntries(steps), Audit: r.execRows(steps)}
	var files attachment.Fetched
	for _, st := range steps {
		r.asking = max(r.asking, st.N+1)
		if st.Kind == workspace.StepModel {
			r.ts.feed.Settle(r.lane.Key)
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
		if inputs, files, ok = r.gather(ctx, inputs); ok && len(inputs) > 0 {
			u.Inputs, u.Bodies, u.Wait = inputs, transcript.Bodies(nil, inputs, files.Content), true
		}
	}
	r.hand(steps)
	if u.Outbound = r.sends(steps); len(u.Outbound) > 0 {
		u.Wait = true
	}
	u.Then = func() {
		r.ts.feed.Publish(r.lane.Key, live.Update{Session: r.run.SessionID, Run: r.run.ID, Stored: true})
	}
	got, err := r.ts.store.Step(u)
	if err != nil {
		r.lane.Forgo(u.Inputs)
		return agentloop.Boundary{}, err
	}
	r.lane.Forgo(got.Gone)
	r.ts.deliver.PushAll(got.Sent)
	r.mem.Append(u.Entries)
	b := agentloop.Boundary{Stop: got.StopBy != "" || errors.Is(context.Cause(ctx), agentloop.ErrStopped), Held: got.Held,
		Pause: boundary && r.lane.Pausing()}
	if len(u.Inputs) > 0 {
		before := len(r.turn.History)
		r.remember(got.Entries[len(u.Entries):], u.Inputs)
		b.Inputs = r.turn.History[before:]
		r.ts.say(r, files)
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
			out = append(out, workspace.Entry{RunID: st.RunID, StepN: st.N, Role: workspace.RoleAssistant, Body: workspace.EntryBody{Content: st.Body.Content}})
		case st.State == workspace.StepPlanned || st.State == workspace.StepStarted:
		default:
			out = append(out, workspace.Entry{RunID: st.RunID, StepN: st.N, Role: workspace.RoleTool,
				Body: workspace.EntryBody{Content: st.Body.Content, Files: st.Body.Files, Reason: st.Body.Reason}})
		}
	}
	return out
}

// Finish ends the run once. agentloop.ErrRestart says that it goes on with a further message instead.
func (r *recorder) Finish(ctx context.Context, o agentloop.Outcome) error {
	switch err := r.lane.Seal(); {
	case errors.Is(err, agentloop.ErrRestart):
		return err
	case errors.Is(err, agentloop.ErrInterrupted):
		o = agentloop.Outcome{State: workspace.RunStopped, Reason: "interrupted", Usage: o.Usage, Model: o.Model, Steps: o.Steps}
	case o.State == workspace.RunStopped && o.Reason == "interrupted": // a stop came after the interrupt and outranks it
		o.Reason = "stopped"
	}
	r.ts.feed.Settle(r.lane.Key)
	f := r.finish(o)
	streamed, job := r.sign.stop()
	if o.Reason == "interrupted" {
		r.ended = true
		r.lane.Stash(&interrupted{end: f, rec: r, streamed: streamed, job: job})
		return nil
	}
	reserved := r.answer(&f, o, streamed)
	got, err := r.ts.store.Finish(f)
	if err != nil {
		if reserved {
			r.ts.deliver.Release(r.room.ID)
		}
		return fmt.Errorf("finish run %s: %w", r.run.ID, err)
	}
	r.ended = true
	for _, ap := range got.Cancelled {
		r.ts.questions.Resolved(ap)
	}
	switch {
	case got.Answer != nil && got.Answer.ID != "":
		if got.Answer.Text == "" {
			got.Answer.Text = workspace.PlainText(o.Content) // stored once, in the entry
		}
		r.ts.deliver.Push(*got.Answer, reserved, job)
	case reserved:
		r.ts.deliver.Release(r.room.ID)
	}
	if got.Answer == nil && streamed != nil {
		if o.Silent {
			r.abandon(streamed, job, "")
		} else {
			r.abandon(streamed, job, "(stopped)")
		}
	}
	if r.resumed {
		r.ts.transcripts.Forget(r.key.String())
	} else {
		r.mem.Append(got.Entries)
	}
	r.ts.feed.Publish(r.lane.Key, live.Update{Session: r.run.SessionID, Run: r.run.ID, Stored: true})
	return nil
}

// interrupted is the end of a turn that a newer message replaces. It is committed with the next turn's begin: until then
// a crash finds the run alive, with its message still to be finished.
type interrupted struct {
	end      store.Finish
	rec      *recorder
	streamed *workspace.Outbound
	job      *delivery.Job
}

// ended clears up after the commit.
func (i *interrupted) ended() {
	if i.streamed != nil {
		i.rec.abandon(i.streamed, i.job, "(stopped)")
	}
	i.rec.mem.Append(i.end.Entries)
}

// finish is the unit without its answer.
func (r *recorder) finish(o agentloop.Outcome) store.Finish {
	o.Usage = o.Usage.Add(r.extra)
	if o.TooLong {
		r.mem.Overflowed()
	}
	o.Usage.DurationMS = r.ts.now().Sub(r.began).Milliseconds()
	f := store.Finish{Run: r.run, Asked: r.asked, State: o.State, Reason: o.Reason, Model: o.Model, Usage: o.Usage, Inputs: r.lane.Inputs, Steps: o.Steps, Audit: r.execRows(o.Steps), AnswerEntry: -1}
	if len(o.Steps) == 1 && o.Steps[0].N == 1 && o.Steps[0].Kind == workspace.StepModel {
		f.Steps = nil // a plain answer: its run and its entry say all that the step would
	}
	for _, e := range stepEntries(o.Steps) { // calls that the end of the turn closed
		if e.Role == workspace.RoleTool {
			f.Entries = append(f.Entries, e)
		}
	}
	if o.Err != nil {
		f.Error = r.ts.hide.Redact(o.Err.Error())
		r.ts.log.Warn("turn failed", "run", r.run.ID, "session", r.key.String(), "agent", string(r.key.Agent), "reason", o.Reason, "err", o.Err)
	}
	switch {
	case o.State == workspace.RunCompleted && o.Silent:
		f.InputState = workspace.InputSilent
	case o.State == workspace.RunCompleted:
		f.InputState = workspace.InputAnswered
	case o.State == workspace.RunStopped:
		f.InputState = workspace.InputStopped
	default:
		f.InputState = workspace.InputFailed
	}
	if len(o.Content) > 0 {
		f.Entries = append(f.Entries, workspace.Entry{RunID: r.run.ID, StepN: r.asking, Role: workspace.RoleAssistant,
			Body: workspace.EntryBody{Content: o.Content, Partial: o.Partial, Reason: o.Reason}})
	}
	if o.State == workspace.RunFailed || o.State == workspace.RunTimeout {
		f.Entries = append(f.Entries, workspace.Entry{RunID: r.run.ID, Role: workspace.RoleEvent,
			Body: workspace.EntryBody{Type: "error", Reason: o.Reason, Content: []workspace.Content{{Kind: workspace.Text, Text: o.Text}}}})
	}
	return f
}

// answer adds the outbound to the unit and says whether it reserved the room.
func (r *recorder) answer(f *store.Finish, o agentloop.Outcome, streamed *workspace.Outbound) (reserved bool) {
	text := o.Text
	if o.State == workspace.RunStopped {
		if streamed == nil || strings.TrimSpace(text) == "" {
			return false // the reply to /stop says it
		}
		text += "\n\n(stopped)"
	}
	if r.room.ID == "" || r.line != nil && r.line.Traits.Local || o.Silent || strings.TrimSpace(text) == "" || r.over.Send == "off" {
		return false
	}
	text = r.dress(text, f)
	out := &store.NewOutbound{Key: workspace.AnswerKey(r.run.ID), RoomID: r.room.ID, RunID: r.run.ID, Kind: workspace.OutAnswer, OnUnknown: r.snapshot.OnUnknown}
	if len(o.Content) > 0 && workspace.PlainText(o.Content) == text {
		f.AnswerEntry = len(f.Entries) - 1
	} else {
		out.Text = text
	}
	if r.snapshot.StaleAfter > 0 && streamed == nil {
		out.NotAfter = r.ts.now().Add(r.snapshot.StaleAfter)
	}
	*out = r.replying(*out)
	var traits channels.Traits
	if r.line != nil {
		traits = r.line.Traits
	}
	var err error
	if out.Spans, err = r.ts.deliver.CutOrAttach(text, traits); err != nil {
		r.ts.log.Error("long answer cannot be kept as a file", "run", r.run.ID, "err", err)
	}
	if len(out.Spans) == 0 {
		return false
	}
	f.Answer = out
	if streamed != nil {
		out.Streamed = streamed.ID
		return false
	}
	out.Sending = r.ts.deliver.Reserve(r.room.ID)
	return out.Sending
}

// replying is a message of the turn as a reply to what it answers.
func (r *recorder) replying(n store.NewOutbound) store.NewOutbound {
	if len(r.lane.Inputs) == 0 {
		return n
	}
	return r.ts.deliver.Replying(n, r.lane.Inputs[0])
}

// abandon ends the message of a streamed answer that will have no text: with a last word, or by taking it away.
func (r *recorder) abandon(o *workspace.Outbound, j *delivery.Job, text string) {
	var spans []store.Span
	if text != "" {
		spans = []store.Span{{To: len(text)}}
	}
	out, err := r.ts.store.Outbound(store.NewOutbound{Key: o.Key, RoomID: o.RoomID, RunID: o.RunID, Kind: workspace.OutNotice, Text: text,
		Spans: spans, Streamed: o.ID})
	if err != nil {
		r.ts.log.Error("streamed answer cannot be ended", "run", r.run.ID, "err", err)
		return
	}
	for _, o := range out {
		r.ts.deliver.Push(o, false, j)
	}
}

// fail ends the run with the plain sentence, for what the loop itself could not end.
func (r *recorder) fail(ctx context.Context, reason string, err error) {
	text := fmt.Sprintf("Something went wrong (run %s).", workspace.Short(r.run.ID))
	if said, ok := workspace.Sentence(err); ok {
		text = said
	}
	ferr := r.Finish(context.WithoutCancel(ctx), agentloop.Outcome{State: workspace.RunFailed, Reason: reason, Text: text, Usage: r.usage, Err: err})
	if ferr != nil && !errors.Is(ferr, store.ErrClosed) {
		r.ts.log.Error("run cannot be ended", "run", r.run.ID, "err", ferr)
	}
}
