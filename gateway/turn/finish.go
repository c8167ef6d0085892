// The end of a turn: one commit with the run's end, its entries and its answer.

package turn

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"parley/agentloop"
	"parley/channels"
	"parley/gateway/progress"
	"parley/workspace"
	"parley/workspace/store"
)

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
	r.ts.Feed.Settle(r.lane.Key)
	f := r.finish(o)
	open := r.progress.Stop()
	if o.Reason == "interrupted" {
		r.ended = true
		r.lane.Stash(&interrupted{end: f, rec: r, open: open})
		return nil
	}
	reserved := r.answer(&f, o, open)
	got, err := r.ts.Store.Finish(f)
	if err != nil {
		if reserved {
			r.ts.Delivery.Release(r.at.ID)
		}
		return fmt.Errorf("finish run %s: %w", r.run.ID, err)
	}
	r.ended = true
	for _, ap := range got.Cancelled {
		r.ts.Questions.Resolved(ap)
	}
	switch {
	case got.Answer != nil && got.Answer.ID != "":
		if got.Answer.Text == "" {
			got.Answer.Text = workspace.PlainText(o.Content) // stored once, in the entry
		}
		r.ts.Delivery.Push(*got.Answer, reserved, open.Job)
	case reserved:
		r.ts.Delivery.Release(r.at.ID)
	}
	if got.Answer == nil && open.Out != nil {
		if o.Silent {
			r.abandon(open, "")
		} else {
			r.abandon(open, "(stopped)")
		}
	}
	if r.resumed {
		r.ts.Transcripts.Forget(r.key.String())
	} else {
		r.mem.Append(got.Entries)
	}
	r.stored()
	return nil
}

// interrupted is the end of a turn that a newer message replaces. It is committed with the next turn's begin: until then
// a crash finds the run alive, with its message still to be finished.
type interrupted struct {
	end  store.Finish
	rec  *recorder
	open progress.Answer
}

// ended clears up after the commit.
func (i *interrupted) ended() {
	if i.open.Out != nil {
		i.rec.abandon(i.open, "(stopped)")
	}
	i.rec.mem.Append(i.end.Entries)
}

// finish is the unit without its answer.
func (r *recorder) finish(o agentloop.Outcome) store.Finish {
	o.Usage = o.Usage.Add(r.extra)
	if o.TooLong {
		r.mem.Overflowed()
	}
	o.Usage.DurationMS = r.ts.Now().Sub(r.began).Milliseconds()
	f := store.Finish{Run: r.run, Asked: r.asked, State: o.State, Reason: o.Reason, Model: o.Model, Usage: o.Usage, Inputs: r.lane.Inputs,
		Steps: o.Steps, Audit: commandRows(r.run, r.key, r.turn.Journal, o.Steps), AnswerEntry: -1}
	if len(o.Steps) == 1 && o.Steps[0].N == 1 && o.Steps[0].Kind == workspace.StepModel {
		f.Steps = nil // a plain answer: its run and its entry say all that the step would
	}
	for _, e := range stepEntries(o.Steps) { // calls that the end of the turn closed
		if e.Role == workspace.RoleTool {
			f.Entries = append(f.Entries, e)
		}
	}
	if o.Err != nil {
		f.Error = r.ts.Hide.Redact(o.Err.Error())
		r.ts.Log.Warn("turn failed", "run", r.run.ID, "session", r.key.String(), "agent", string(r.key.Agent),
			"reason", o.Reason, "err", o.Err)
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
		f.Entries = append(f.Entries, workspace.Entry{RunID: r.run.ID, StepN: r.step, Role: workspace.RoleAssistant,
			Body: workspace.EntryBody{Content: o.Content, Partial: o.Partial, Reason: o.Reason}})
	}
	if o.State == workspace.RunFailed || o.State == workspace.RunTimeout {
		f.Entries = append(f.Entries, workspace.Entry{RunID: r.run.ID, Role: workspace.RoleEvent,
			Body: workspace.EntryBody{Type: "error", Reason: o.Reason, Content: []workspace.Content{{Kind: workspace.Text, Text: o.Text}}}})
	}
	return f
}

// answer adds the outbound to the unit and says whether it reserved the room.
func (r *recorder) answer(f *store.Finish, o agentloop.Outcome, open progress.Answer) (reserved bool) {
	text := o.Text
	if o.State == workspace.RunStopped {
		if open.Out == nil || strings.TrimSpace(text) == "" {
			return false // the reply to /stop says it
		}
		text += "\n\n(stopped)"
	}
	if !r.at.sends() || o.Silent || strings.TrimSpace(text) == "" || r.over.Send == "off" {
		return false
	}
	text = r.decorate(text, f)
	out := &store.NewOutbound{Key: workspace.AnswerKey(r.run.ID), RoomID: r.at.ID, RunID: r.run.ID, Kind: workspace.OutAnswer,
		OnUnknown: r.snapshot.OnUnknown}
	if len(o.Content) > 0 && workspace.PlainText(o.Content) == text {
		f.AnswerEntry = len(f.Entries) - 1
	} else {
		out.Text = text
	}
	if r.snapshot.StaleAfter > 0 && open.Out == nil {
		out.NotAfter = r.ts.Now().Add(r.snapshot.StaleAfter)
	}
	*out = r.replying(*out)
	var traits channels.Traits
	if r.at.channel != nil {
		traits = r.at.channel.Traits
	}
	var err error
	if out.Spans, err = r.ts.Delivery.CutOrAttach(text, traits); err != nil {
		r.ts.Log.Error("long answer cannot be kept as a file", "run", r.run.ID, "err", err)
	}
	if len(out.Spans) == 0 {
		return false
	}
	f.Answer = out
	if open.Out != nil {
		out.Streamed = open.Out.ID
		return false
	}
	out.Sending = r.ts.Delivery.Reserve(r.at.ID)
	return out.Sending
}

// decorate adds to an answer what people asked to see with it, as a room gets it; the transcript does not hold it.
func (r *recorder) decorate(text string, f *store.Finish) string {
	if steps := stepSummary(r.over.Verbose, r.turn.Journal); steps != "" {
		text = steps + "\n\n" + text
	}
	if mode := r.over.Usage; mode != "" && mode != "off" && f.Usage.Calls > 0 {
		sum, _, err := r.ts.Store.SessionUsage(r.run.SessionID, 0)
		if err != nil {
			r.ts.Log.Error("usage of the session cannot be read", "session", r.key.String(), "err", err)
			return text
		}
		text += "\n\n" + usageFooter(mode, f.Model, f.Usage, sum)
	}
	return text
}

// replying is a message of the turn as a reply to what it answers.
func (r *recorder) replying(n store.NewOutbound) store.NewOutbound {
	if len(r.lane.Inputs) == 0 {
		return n
	}
	return r.ts.Delivery.Replying(n, r.lane.Inputs[0])
}

// abandon ends the message of a streamed answer that will have no text: with a last word, or by taking it away.
func (r *recorder) abandon(open progress.Answer, text string) {
	var spans []store.Span
	if text != "" {
		spans = []store.Span{{To: len(text)}}
	}
	out, err := r.ts.Store.Outbound(store.NewOutbound{Key: open.Out.Key, RoomID: open.Out.RoomID, RunID: open.Out.RunID,
		Kind: workspace.OutNotice, Text: text, Spans: spans, Streamed: open.Out.ID})
	if err != nil {
		r.ts.Log.Error("streamed answer cannot be ended", "run", r.run.ID, "err", err)
		return
	}
	for _, o := range out {
		r.ts.Delivery.Push(o, false, open.Job)
	}
}

// fail ends the run with the plain sentence, for what the loop itself could not end.
func (r *recorder) fail(ctx context.Context, reason string, err error) {
	text := fmt.Sprintf("Something went wrong (run %s).", workspace.Short(r.run.ID))
	if said, ok := workspace.Sentence(err); ok {
		text = said
	}
	o := agentloop.Outcome{State: workspace.RunFailed, Reason: reason, Text: text, Usage: r.usage, Err: err}
	ferr := r.Finish(context.WithoutCancel(ctx), o)
	if ferr != nil && !errors.Is(ferr, store.ErrClosed) {
		r.ts.Log.Error("run cannot be ended", "run", r.run.ID, "err", ferr)
	}
}
