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
	"parley/workspace"
	"parley/workspace/store"
)

// past is what stands for the part of a transcript that the prompt does not hold.
type past struct {
	summary string
	upto    int64 // the newest entry that the summary stands for
	tooLong bool  // the model refused the conversation's length since
}

// pastOf reads the summary of a generation.
func pastOf(st *store.Store, ses workspace.Session) (past, error) {
	if ses.Compacted == 0 {
		return past{}, nil
	}
	list, err := st.Entries(ses.ID, ses.Compacted-1, 1)
	if err != nil || len(list) == 0 {
		return past{}, err
	}
	return past{summary: list[0].Body.Plain(), upto: list[0].Body.To}, nil
}

// inPrompt leaves out what a summary stands for, and what was undone.
func (p past) inPrompt(list []workspace.Entry) []workspace.Entry {
	out := control.LeftOut(list)
	kept := list[:0:0]
	for _, e := range list {
		if e.N > p.upto && !out(e.N) {
			kept = append(kept, e)
		}
	}
	return kept
}

// maxSummed is how many lines of a transcript a summary is made of, the newest.
const maxSummed = 5000

// transcriptOf is all that a prompt without a limit would hold of a session, without events.
func transcriptOf(st *store.Store, ses workspace.Session) (past, []workspace.Entry, error) {
	was, err := pastOf(st, ses)
	if err != nil {
		return was, nil, err
	}
	list, err := st.LastEntries(ses.ID, maxSummed)
	if err != nil {
		return was, nil, err
	}
	return was, spoken(was.inPrompt(list)), nil
}

func spoken(list []workspace.Entry) []workspace.Entry {
	kept := list[:0:0]
	for _, e := range list {
		if e.Role != workspace.RoleEvent {
			kept = append(kept, e)
		}
	}
	return kept
}

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
	r := h.g.roster()
	was, list, err := transcriptOf(h.g.store, ses)
	if err != nil {
		return agentloop.Compaction{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, r.turnTimeout)
	defer cancel()
	ctx, end := h.g.sums.begin(ctx, ses.Key.String(), call.Input)
	defer end()
	defer h.g.showWork(ctx, call.Room)()
	agent := r.agent(ses.Key.Agent)
	t := agentloop.Turn{Session: ses.Key, SessionID: ses.ID, Agent: agent.ID, Requester: call.Actor, PeerKind: string(ses.Key.Kind),
		Summary: was.summary, History: list, Models: r.summarizers(agent, ses.Overrides)}
	got, err := r.loop.Summarize(ctx, t, instructions, nil)
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
		for wait := g.roster().signs.typing; channels.Sleep(ctx, wait); wait = l.Traits.TypingEvery {
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
	was, size := ts.sessions.weight(rec.mem)
	info, _ := rec.roster.models.Info(rec.turn.Models[0])
	window := info.ContextWindow
	if window <= 0 {
		window = 32 << 10 // as the loop takes it
	}
	if rec.weighed = true; !was.tooLong && size/bytesPerToken < window/2 {
		return
	}
	c, err := rec.roster.loop.Compose(rec.turn)
	if err != nil || !was.tooLong && c.Free() > c.Window/10 {
		return
	}
	began := ts.now()
	rec.sign.see(agentloop.Event{Type: agentloop.EventWait, Note: "summing up what was said earlier"})
	t := rec.turn
	over, _ := rec.mem.overrides()
	t.Models = rec.roster.summarizers(rec.roster.agent(rec.key.Agent), over)
	got, err := rec.roster.loop.Summarize(ctx, t, "", func(trouble workspace.Trouble) {
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
	ses := rec.mem.stored()
	if err := ts.store.Mark(store.Mark{Session: ses.ID, Body: control.CompactionEntry(got), Was: ses.Compacted}); err != nil {
		ts.log.Warn("summary cannot be stored", "session", rec.key.String(), "err", err)
		return
	}
	now := past{summary: got.Summary, upto: got.To}
	rec.turn.Summary, rec.turn.History = got.Summary, now.inPrompt(rec.turn.History)
	ts.sessions.forget(rec.key.String()) // the next turn reads the record
	ts.feed.Publish(rec.lane.Key, live.Update{Session: rec.run.SessionID, Run: rec.run.ID, Stored: true})
	ts.log.Info("conversation summed up", "session", rec.key.String(), "exchanges", got.Turns, "took", ts.now().Sub(began).Round(time.Millisecond))
}

// bytesPerToken is the loop's estimate, for a first look that costs nothing.
const bytesPerToken = 4

// weight is about how many bytes of a session the prompt holds.
func (ss *sessions) weight(s *session) (past, int) {
	s.mu.Lock()
	was := s.past
	s.mu.Unlock()
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return was, s.size
}

func (s *session) stored() workspace.Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ses
}

// overflowed notes that the model refused the conversation's length: before the next turn it is summed up.
func (s *session) overflowed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.past.tooLong = true
}

// Compose weighs the next prompt of a session.
func (h house) Compose(_ context.Context, call control.Call) (control.Composed, error) {
	v := control.Composed{Session: call.Session.String(), Files: []control.File{}}
	r := h.g.roster()
	agent := r.agent(call.Session.Agent)
	t := agentloop.Turn{Session: call.Session, Agent: agent.ID, Requester: call.Actor, PeerKind: string(call.Kind), Models: agent.Models}
	var over workspace.Overrides
	if ses, err := h.g.store.SessionByKey(call.Session); err == nil {
		was, err := pastOf(h.g.store, ses)
		if err != nil {
			return v, err
		}
		list, err := h.g.store.LastEntries(ses.ID, maxHistory)
		if err != nil {
			return v, err
		}
		t.SessionID, t.Summary, t.History, over = ses.ID, was.summary, spoken(was.inPrompt(list)), ses.Overrides
	} else if !errors.Is(err, workspace.ErrNotFound) {
		return v, err
	}
	channel := ""
	if call.Input != nil {
		t.Network, channel = call.Input.Source, call.Input.Data.Channel
	}
	t.Models = r.chain(agent, over)
	t.System, t.Volatile = agent.Prompt(&t, channel)
	var err error
	if v.Composition, err = r.loop.Compose(t); err != nil {
		return v, err
	}
	v.Model = t.Models[0]
	for _, f := range h.g.prompts.Files(agent.Files) {
		v.Files = append(v.Files, control.File{Name: f.Name, Tokens: (f.Chars + bytesPerToken - 1) / bytesPerToken, Note: f.Note})
	}
	return v, nil
}
