// A conversation that has become too long for its model.

package turn

import (
	"context"
	"errors"
	"slices"
	"time"

	"parley/agentloop"
	"parley/agentloop/llm"
	"parley/gateway/transcript"
	"parley/workspace"
	"parley/workspace/store"
)

// compactIfFull sums up the older part of a conversation that has become too long for its model, before the turn goes
// on. When that fails the loop leaves out the oldest part, as it always can.
func (r *recorder) compactIfFull(ctx context.Context) {
	if r.weighed {
		return
	}
	info, _ := r.snapshot.Models.Info(r.turn.Models[0])
	window := info.ContextWindow
	if window <= 0 {
		window = 32 << 10 // as the loop takes it
	}
	tooLong := r.mem.TooLong()
	if r.weighed = true; !tooLong && agentloop.Tokens(r.mem.Size()) < window/2 {
		return // a first look, which costs nothing
	}
	c, err := r.snapshot.Loop.Compose(r.turn)
	if err != nil || !tooLong && c.Free() > c.Window/10 {
		return
	}
	began := r.ts.Now()
	r.progress.See(agentloop.Event{Type: agentloop.EventWait, Note: "summing up what was said earlier"})
	t := r.turn
	t.Models = r.snapshot.Agent(r.key.Agent).Summarizers(r.mem.Stored().Overrides)
	got, err := r.snapshot.Loop.Summarize(ctx, t, "", func(trouble workspace.Trouble) {
		trouble.At, trouble.Said = r.ts.Now(), r.ts.Hide.Redact(trouble.Said)
		r.Trouble(&trouble)
		r.emit(agentloop.Event{Run: r.run.ID, Type: agentloop.EventWait, Note: llm.Progress(trouble), Trouble: &trouble})
	})
	if same := slices.Equal(t.Models, r.turn.Models); r.turn.Trouble != nil && (err == nil || !same) {
		r.Trouble(nil) // else the turn goes on with what is left of its models' patience
	}
	if err != nil {
		r.weighed = ctx.Err() == nil
		if !errors.Is(err, agentloop.ErrShort) && ctx.Err() == nil {
			r.ts.Log.Warn("conversation is too long and cannot be summed up", "session", r.key.String(), "err", err)
		}
		return
	}
	r.extra = r.extra.Add(got.Usage)
	ses := r.mem.Stored()
	if err := r.ts.Store.Mark(store.Mark{Session: ses.ID, Body: transcript.Compaction(got), Was: ses.Compacted}); err != nil {
		r.ts.Log.Warn("summary cannot be stored", "session", r.key.String(), "err", err)
		return
	}
	now := transcript.Summary{Text: got.Summary, To: got.To}
	r.turn.Summary, r.turn.History = now.Text, now.Keep(r.turn.History)
	r.ts.Transcripts.Forget(r.key.String()) // the next turn reads the record
	r.stored()
	r.ts.Log.Info("conversation summed up", "session", r.key.String(), "exchanges", got.Turns,
		"took", r.ts.Now().Sub(began).Round(time.Millisecond))
}
