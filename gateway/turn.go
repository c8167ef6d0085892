package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"parley/agentloop"
	"parley/agentloop/lane"
	"parley/gateway/approval"
	"parley/gateway/attachment"
	"parley/gateway/delivery"
	"parley/gateway/live"
	"parley/gateway/snapshot"
	"parley/gateway/transcript"
	"parley/gateway/transport"
	"parley/workspace"
	"parley/workspace/clip"
	"parley/workspace/store"
)

// turns is what happens in a lane: it begins runs, hands them to their runner, and ends them.
type turns struct {
	store       *store.Store
	transcripts *transcript.Cache
	deliver     *delivery.Outbox
	base        context.Context // of what a turn shows beside its answer
	channels    *transport.Channels
	lanes       *lane.Lanes
	feed        *live.Feed
	now         func() time.Time
	log         *slog.Logger
	hide        *workspace.Redactor
	snapshot    func() *snapshot.Snapshot // of the configuration in force
	commands    func(ctx context.Context, in workspace.Input)
	putBlob     func([]byte) (string, error)
	files       *attachment.Fetcher
	questions   *approval.Questions
	mode        func(key string) string // in which a session queues
}

// resumed is a run of an earlier boot, handed to its lane by recover.go.
type resumed struct {
	run   workspace.Run
	steps []workspace.Step
	open  *workspace.Outbound // its streamed answer
}

// until tells when its turn ends, so that nothing waits for what comes after that. The turn's own timer ends it.
type until struct {
	context.Context
	end time.Time
}

func (u until) Deadline() (time.Time, bool) { return u.end, true }

// Turn runs one turn of a session to its committed end.
func (ts *turns) Turn(whole context.Context, t *lane.Turn) {
	defer guard(ts.log, "turn") // a run that it leaves behind is ended by the sweeper
	rec, err := ts.begin(whole, t)
	if err != nil {
		ts.unbegun(t, err)
		return
	}
	defer rec.sign.stop() // also after a panic
	left := rec.left()
	end := time.Now().Add(left)
	if left == 0 { // it used its time up before a restart
		t.Cancel(agentloop.ErrTimeout)
	}
	timer := time.AfterFunc(left, func() { t.Cancel(agentloop.ErrTimeout) })
	defer timer.Stop()
	for {
		ctx := until{t.Context(), end}
		ts.compactIfFull(ctx, rec)
		err := ts.attempt(ctx, rec)
		switch {
		case rec.ended:
			return
		case errors.Is(err, agentloop.ErrWaiting) && rec.waits != nil:
			rec.hold(t, approval.WaitsFor(*rec.waits), approval.SupersededAfter(*rec.waits, ts.mode(t.Key) == lane.Steer))
			return
		case errors.Is(err, agentloop.ErrPaused):
			if err := ts.pause(rec.run, workspace.RunRunning); err != nil {
				rec.fail(whole, "internal", err)
				return
			}
			rec.hold(t, pausedWhy, lane.Never)
			return
		case errors.Is(err, agentloop.ErrRestart):
			if err := rec.restart(whole); err != nil {
				ts.log.Error("turn cannot take a further message", "run", rec.run.ID, "err", err)
				rec.fail(whole, "internal", err)
				return
			}
		case errors.Is(err, agentloop.ErrShutdown), whole.Err() != nil:
			rec.sign.stop()
			return // the run stays running; the next boot resumes it
		default:
			if err == nil {
				err = errors.New("the loop ended without an end")
			}
			rec.fail(whole, "internal", err)
			return
		}
	}
}

// unbegun is for a turn that could not be stored. The run that it was to replace must end all the same.
func (ts *turns) unbegun(t *lane.Turn, err error) {
	if errors.Is(err, store.ErrClosed) {
		return
	}
	if errors.Is(err, agentloop.ErrShutdown) || errors.Is(err, agentloop.ErrPaused) {
		return // what was queued or running is so at the next boot; what is paused lies still
	}
	if gone := ts.giveBack(t); !gone && !errors.Is(err, agentloop.ErrStopped) {
		ts.log.Error("turn cannot begin", "session", t.Key, "err", err)
	}
	was, ok := t.Interrupted.(*interrupted)
	if !ok {
		return
	}
	if _, err := ts.store.Finish(was.end); err != nil {
		ts.log.Error("interrupted run cannot be ended", "run", was.end.Run.ID, "err", err)
		return
	}
	was.ended()
}

// giveBack returns those inputs of a turn that are still queued, so that nothing newer overtakes them. It says whether
// any was ended meanwhile: stopped or deleted, while its files were fetched.
func (ts *turns) giveBack(t *lane.Turn) (gone bool) {
	var list []workspace.Input
	for _, in := range t.Inputs {
		now, err := ts.store.Input(in.ID)
		if err != nil {
			ts.log.Error("input cannot be read", "input", in.ID, "err", err)
			return false // the sweeper offers them all
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

// attempt has the run carried out, as far as it goes. A panic in it is the turn's failure and nobody else's.
func (ts *turns) attempt(ctx context.Context, rec *recorder) (err error) {
	defer func() {
		if p := recover(); p != nil {
			ts.log.Error("turn panicked", "run", rec.run.ID, "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	err = rec.snapshot.Runner.Run(ctx, rec.turn, rec, rec.emit)
	if cause := context.Cause(ctx); err != nil && cause != nil && !rec.ended {
		for _, known := range []error{agentloop.ErrRestart, agentloop.ErrShutdown} {
			if errors.Is(cause, known) {
				return known
			}
		}
	}
	return err
}

// begin makes the turn: the run is stored, the transcript is at hand, the prompt is built.
func (ts *turns) begin(ctx context.Context, t *lane.Turn) (*recorder, error) {
	key, err := workspace.ParseKey(t.Key)
	if err != nil {
		return nil, err
	}
	in := t.Inputs[0]
	rec := &recorder{ts: ts, lane: t, key: key, snapshot: ts.snapshot(), began: ts.now()}
	var entries []workspace.Entry
	var files attachment.Fetched
	switch begun := t.Begun.(type) {
	case *store.Begun:
		rec.run, entries = begun.Run, begun.Entries
	case resumed:
		rec.run, rec.open, rec.turn.Journal, rec.resumed, rec.asked = begun.run, begun.open, begun.steps, true, true
	case held:
		if err := ts.goOn(rec, begun); err != nil {
			return nil, err
		}
	default:
		if entries, files, err = ts.beginNew(ctx, rec); err != nil {
			return nil, err
		}
	}
	ts.feed.Publish(t.Key, live.Update{Session: rec.run.SessionID, Run: rec.run.ID, Stored: true})
	if rec.mem, err = ts.transcripts.Load(t.Key, rec.run.SessionID, rec.run.ID); err != nil {
		return nil, err
	}
	if rec.resumed {
		if entries, err = ts.store.RunEntries(rec.run.SessionID, rec.run.ID); err != nil {
			return nil, err
		}
	}
	rec.remember(entries, t.Inputs)
	rec.asking = 1
	for _, st := range rec.turn.Journal {
		rec.asking = max(rec.asking, st.N+1)
		if st.Body.Usage != nil {
			rec.usage = rec.usage.Add(*st.Body.Usage)
		}
	}
	ts.furnish(rec, in)
	ts.say(rec, files)
	return rec, nil
}

// beginNew stores a run that no commit has begun yet, after what its inputs carry has been fetched.
func (ts *turns) beginNew(ctx context.Context, rec *recorder) ([]workspace.Entry, attachment.Fetched, error) {
	t, in := rec.lane, rec.lane.Inputs[0]
	rec.run = ts.newRun(in)
	var end *store.Finish
	was, replaces := t.Interrupted.(*interrupted)
	fresh := t.Inputs
	if replaces { // what the old run had taken is in the transcript
		end = &was.end
		fresh = slices.DeleteFunc(slices.Clone(fresh), func(in workspace.Input) bool {
			return slices.ContainsFunc(end.Inputs, func(old workspace.Input) bool { return old.Seq == in.Seq })
		})
	}
	files, err := ts.gatherFirst(ctx, rec, fresh)
	if err != nil {
		return nil, files, err
	}
	lines, last, err := ts.transcripts.Said(rec.key)
	if err != nil {
		return nil, files, err
	}
	if past := ts.seed(ctx, rec.key, t.Inputs); past != nil {
		lines = past
	}
	got, err := ts.store.Begin(store.Begin{Run: rec.run, Entries: transcript.Bodies(lines, t.Inputs, files.Content)}, rec.key, in.RoomID, t.Inputs, end)
	if err != nil {
		return nil, files, err
	}
	if replaces {
		was.ended()
	}
	ts.transcripts.Heard(t.Key, last)
	rec.run = got.Run
	return got.Entries, files, nil
}

func (ts *turns) newRun(in workspace.Input) workspace.Run {
	return workspace.Run{ID: workspace.RunID(ts.store.IDs().New()), Requester: in.Person, Role: in.Role, Deadline: ts.now().Add(ts.snapshot().TurnTimeout)}
}

// furnish fills in what the loop needs to know.
func (ts *turns) furnish(rec *recorder, in workspace.Input) {
	agent := rec.snapshot.Agent(rec.key.Agent)
	room := workspace.Room{ID: rec.run.RoomID}
	var l *transport.Channel
	if room.ID != "" {
		if addr, err := ts.deliver.Address(room.ID); err == nil {
			room.Address = addr
			l = ts.channels.Serving(addr)
		}
	}
	rec.room, rec.line = room, l
	over := rec.mem.Stored().Overrides
	rec.over = over
	shown := l
	if l != nil && (l.Traits.Local || !l.Serves(room.Address)) || over.Send == "off" {
		shown = nil // who reads the transcript sees the turn itself; and a channel must connect first
	}
	rec.sign = newSign(ts, shown, room, rec.run.ID, rec.lane, rec.snapshot.Progress, rec.open)
	rec.sign.job, rec.sign.thinks = rec.job, over.Reasoning == "on"
	rec.sign.watch()
	t := &rec.turn
	t.Run, t.Session, t.SessionID, t.Agent = rec.run.ID, rec.key, rec.run.SessionID, agent.ID
	t.Requester = workspace.Actor{Person: rec.run.Requester, Role: rec.run.Role, Name: in.Sender}
	if rec.resumed { // it may have lain still for long: rights can only have become fewer
		t.Requester.Role = ts.roleNow(rec.run)
	}
	t.Trouble = rec.run.Trouble
	t.Network, t.PeerKind, t.Started = string(room.Network), string(room.Kind), rec.run.Started
	t.Models, t.MaxSteps, t.Think = agent.Chain(over), agent.MaxSteps, over.Think
	t.Summary, t.Known = rec.mem.Summary(), &rec.mem.Known
	t.Channel, t.Route = in.Data.Channel, in.Binding.Rule
	ts.furnishWork(rec, agent)
	t.System, t.Volatile = agent.Prompt(t, in.Data.Channel)
}

// Command runs a command in its place in the order.
func (ts *turns) Command(ctx context.Context, _ string, in workspace.Input) {
	defer guard(ts.log, "command")
	ts.commands(ctx, in)
}

// guard, deferred, keeps a panic from taking the whole gateway down: one turn, room or command fails, and is logged.
func guard(log *slog.Logger, what string) {
	if p := recover(); p != nil {
		log.Error("panic", "in", what, "panic", p, "stack", string(debug.Stack()))
	}
}

// Late ends an edit or delete whose turn has ended: what was answered is only noted.
func (ts *turns) Late(key string, in workspace.Input) {
	_, err := ts.store.EndInputs([]store.Ending{{Seq: in.Seq, From: workspace.InputQueued, To: workspace.InputCancelled, Reason: "its message was answered before"}})
	if err != nil && !errors.Is(err, workspace.ErrConflict) {
		ts.log.Error("late edit cannot be ended", "session", key, "err", err)
	}
}

// Waits tells a sender why nothing happens yet.
func (ts *turns) Waits(key string, inputs []workspace.Input, why string) {
	ts.log.Info("turn waits for a place", "session", key, "why", why)
	if len(inputs) == 0 || inputs[0].RoomID == "" {
		return // /v1/status says it
	}
	n := delivery.NoticeTo(inputs[0].ID, "waits", inputs[0].RoomID, workspace.OutNotice, "Please wait: "+why+".")
	out, err := ts.store.Outbound(ts.deliver.Replying(n, inputs[0]))
	if err != nil {
		ts.log.Error("sender cannot be told of the wait", "session", key, "err", err)
		return
	}
	ts.deliver.PushAll(out)
}

// Dropped ends what the cap pushed out of a queue and tells the sender.
func (ts *turns) Dropped(key string, dropped []workspace.Input, keepLine bool) {
	var ends []store.Ending
	var notices []store.NewOutbound
	for _, in := range dropped {
		ends = append(ends, store.Ending{Seq: in.Seq, From: workspace.InputQueued, To: workspace.InputDropped, Reason: "overflow"})
		if keepLine {
			ts.transcripts.Note(key, 0, workspace.ContextLine{Name: in.Sender + " (not answered, too many at once)", Text: firstLine(in.Text)})
		}
		if in.RoomID != "" {
			text := "Too many messages wait here, so this one was not answered: “" + firstLine(in.Text) + "”"
			notices = append(notices, ts.deliver.Replying(delivery.NoticeTo(in.ID, "refused", in.RoomID, workspace.OutRefusal, text), in))
		}
	}
	out, err := ts.store.EndInputs(ends, notices...)
	if err != nil {
		ts.log.Error("dropped inputs cannot be ended", "session", key, "err", err)
		return
	}
	ts.deliver.PushAll(out)
	ts.feed.Publish(key, live.Update{Stored: true})
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return clip.Runes(s, 81)
}
