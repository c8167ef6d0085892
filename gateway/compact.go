package gateway

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"parley/agentloop"
	"parley/agentloop/llm"
	"parley/channels"
	"parley/gateway/control"
	"parley/gateway/live"
	"parley/gateway/transcript"
	"parley/workspace"
	"parley/workspace/store"
)

// maxSummed is how many lines of a transcript a summary is made of, the newest.
const maxSummed = 5000

// summaries are those that commands are having made, so that /stop can end them. Safe for concurrent use.
type summaries struct {
	mu      sync.Mutex
	running map[string]summing
}

type summing struct {
	command workspace.Input
	cancel  context.CancelCauseFunc
}

func (s *summaries) begin(ctx context.Context, key string, in *workspace.Input) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil {
		s.running = map[string]summing{}
	}
	var command workspace.Input
	if in != nil {
		command = *in
	}
	s.running[key] = summing{command, cancel}
	return ctx, func() {
		cancel(nil)
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.running, key)
	}
}

// cancel ends the session's summary, if match accepts the command that asked for it.
func (s *summaries) cancel(key string, cause error, match func(workspace.Input) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.running[key]
	if !ok || !match(r.command) {
		return false
	}
	r.cancel(cause)
	return true
}

// Summarize has the agent's summarizer, or its model, sum up the older part of a session. The room sees that somebody
// is at work.
func (h house) Summarize(ctx context.Context, call control.Call, ses workspace.Session, instructions string) (agentloop.Compaction, error) {
	snap := h.g.snapshot()
	sum, list, err := h.g.transcripts.History(ses, maxSummed)
	if err != nil {
		return agentloop.Compaction{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, snap.TurnTimeout)
	defer cancel()
	ctx, end := h.g.sums.begin(ctx, ses.Key.String(), call.Input)
	defer end()
	defer h.g.showWork(ctx, call.Room)()
	agent := snap.Agent(ses.Key.Agent)
	t := agentloop.Turn{Session: ses.Key, SessionID: ses.ID, Agent: agent.ID, Requester: call.Actor, PeerKind: string(ses.Key.Kind),
		Summary: sum.Text, History: list, Models: agent.Summarizers(ses.Overrides)}
	got, err := snap.Loop.Summarize(ctx, t, instructions, nil)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		for _, known := range []error{agentloop.ErrStopped, agentloop.ErrShutdown, context.DeadlineExceeded} {
			if errors.Is(cause, known) {
				return got, known
			}
		}
	}
	return got, err
}

// showWork shows a room that something is being done, until the returned function is called.
func (g *Gateway) showWork(ctx context.Context, room workspace.RoomID) (stop func()) {
	addr, err := g.deliver.Address(room)
	if err != nil {
		return func() {}
	}
	l := g.channels.Find(addr)
	if l == nil || l.Adapter == nil {
		return func() {}
	}
	typer, ok := channels.As[channels.Typer](l.Adapter)
	if !ok || l.Traits.TypingEvery <= 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		for wait := g.snapshot().Progress.Typing; channels.Sleep(ctx, wait); wait = l.Traits.TypingEvery {
			if err := typer.ShowTyping(ctx, addr); err != nil {
				l.Log.Debug("typing is not shown", "err", err)
			}
		}
	})
	return func() { cancel(); wg.Wait() }
}

// compactIfFull sums up the older part of a conversation that has become too long for its model, before the turn goes
// on. When that fails the loop leaves out the oldest part, as it always can.
func (ts *turns) compactIfFull(ctx context.Context, rec *recorder) {
	if rec.weighed {
		return
	}
	info, _ := rec.snapshot.Models.Info(rec.turn.Models[0])
	window := info.ContextWindow
	if window <= 0 {
		window = 32 << 10 // as the loop takes it
	}
	tooLong := rec.mem.TooLong()
	if rec.weighed = true; !tooLong && rec.mem.Size()/bytesPerToken < window/2 {
		return
	}
	c, err := rec.snapshot.Loop.Compose(rec.turn)
	if err != nil || !tooLong && c.Free() > c.Window/10 {
		return
	}
	began := ts.now()
	rec.sign.see(agentloop.Event{Type: agentloop.EventWait, Note: "summing up what was said earlier"})
	t := rec.turn
	t.Models = rec.snapshot.Agent(rec.key.Agent).Summarizers(rec.mem.Stored().Overrides)
	got, err := rec.snapshot.Loop.Summarize(ctx, t, "", func(trouble workspace.Trouble) {
		trouble.At, trouble.Said = ts.now(), ts.hide.Redact(trouble.Said)
		rec.Trouble(&trouble)
		rec.emit(agentloop.Event{Run: rec.run.ID, Type: agentloop.EventWait, Note: llm.Progress(trouble), Trouble: &trouble})
	})
	if same := slices.Equal(t.Models, rec.turn.Models); rec.turn.Trouble != nil && (err == nil || !same) {
		rec.Trouble(nil) // else the turn goes on with what is left of its models' patience
	}
	if err != nil {
		rec.weighed = ctx.Err() == nil
		if !errors.Is(err, agentloop.ErrShort) && ctx.Err() == nil {
			ts.log.Warn("conversation is too long and cannot be summed up", "session", rec.key.String(), "err", err)
		}
		return
	}
	rec.extra = rec.extra.Add(got.Usage)
	ses := rec.mem.Stored()
	if err := ts.store.Mark(store.Mark{Session: ses.ID, Body: transcript.Compaction(got), Was: ses.Compacted}); err != nil {
		ts.log.Warn("summary cannot be stored", "session", rec.key.String(), "err", err)
		return
	}
	now := transcript.Summary{Text: got.Summary, To: got.To}
	rec.turn.Summary, rec.turn.History = now.Text, now.Keep(rec.turn.History)
	ts.transcripts.Forget(rec.key.String()) // the next turn reads the record
	ts.feed.Publish(rec.lane.Key, live.Update{Session: rec.run.SessionID, Run: rec.run.ID, Stored: true})
	ts.log.Info("conversation summed up", "session", rec.key.String(), "exchanges", got.Turns, "took", ts.now().Sub(began).Round(time.Millisecond))
}

// bytesPerToken is the loop's estimate, for a first look that costs nothing.
const bytesPerToken = 4

// Compose weighs the next prompt of a session.
func (h house) Compose(_ context.Context, call control.Call) (control.Composed, error) {
	v := control.Composed{Session: call.Session.String(), Files: []control.File{}}
	snap := h.g.snapshot()
	agent := snap.Agent(call.Session.Agent)
	t := agentloop.Turn{Session: call.Session, Agent: agent.ID, Requester: call.Actor, PeerKind: string(call.Kind), Models: agent.Models}
	var over workspace.Overrides
	if ses, err := h.g.store.SessionByKey(call.Session); err == nil {
		sum, list, err := h.g.transcripts.History(ses, transcript.MaxEntries)
		if err != nil {
			return v, err
		}
		t.SessionID, t.Summary, t.History, over = ses.ID, sum.Text, list, ses.Overrides
	} else if !errors.Is(err, workspace.ErrNotFound) {
		return v, err
	}
	channel := ""
	if call.Input != nil {
		t.Network, channel = call.Input.Source, call.Input.Data.Channel
	}
	t.Models = agent.Chain(over)
	t.System, t.Volatile = agent.Prompt(&t, channel)
	var err error
	if v.Composition, err = snap.Loop.Compose(t); err != nil {
		return v, err
	}
	v.Model = t.Models[0]
	for _, f := range agent.PromptFiles() {
		v.Files = append(v.Files, control.File{Name: f.Name, Tokens: (f.Chars + bytesPerToken - 1) / bytesPerToken, Note: f.Note})
	}
	return v, nil
}
