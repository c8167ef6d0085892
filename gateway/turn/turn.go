// Package turn is a turn and its record. Turns is what happens in the lanes of all sessions: it begins runs, hands them to
// their runner, suspends them, and takes up those of earlier boots. A recorder is one of these turns: it makes the run
// durable, and is the runner's only way to the store. What verbs do to a session's turn they do by Turns; Prompts weighs
// and sums up what a session's prompt holds, WorkFolders opens the folders in which turns work.
//
// Goroutines: those of the lanes, for which Drain waits.
package turn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"

	"parley/agentloop"
	"parley/agentloop/lane"
	"parley/gateway/approval"
	"parley/gateway/attachment"
	"parley/gateway/bus"
	"parley/gateway/delivery"
	"parley/gateway/live"
	"parley/gateway/progress"
	"parley/gateway/snapshot"
	"parley/gateway/transcript"
	"parley/gateway/transport"
	"parley/workspace"
	"parley/workspace/clip"
	"parley/workspace/store"
	"parley/workspace/workers"
)

// Options of Turns; all of them are needed.
type Options struct {
	Store       Store
	Transcripts *transcript.Cache
	Delivery    *delivery.Outbox
	Channels    *transport.Channels
	Attachments *attachment.Fetcher
	Questions   *approval.Questions
	Commands    func(ctx context.Context, in workspace.Input) // runs a command of the journal
	Snapshot    func() *snapshot.Snapshot                     // of the configuration in force
	Feed        *live.Feed
	Bus         *bus.Bus
	Hide        *workspace.Redactor
	Now         func() time.Time
	Log         *slog.Logger
}

// Turns is what happens in the lanes. Safe for concurrent use.
type Turns struct {
	Options
	lanes *lane.Lanes
	show  *progress.Display
}

var _ lane.Handler = (*Turns)(nil)

// New makes the lanes, of which so many may be at work at once. What a turn shows beside its answer ends with base.
func New(base context.Context, atOnce int, o Options) *Turns {
	ts := &Turns{Options: o, show: progress.New(base, progress.Options{
		Store: o.Store, Delivery: o.Delivery, Channels: o.Channels, Hide: o.Hide, Now: o.Now})}
	ts.lanes = lane.New(base, atOnce, ts, ts.Queue, o.Now)
	o.Bus.OnWake(ts.lanes.Wake)
	return ts
}

// Queue is how a session handles messages that come during a turn.
func (ts *Turns) Queue(key string) lane.Settings {
	return snapshot.QueueSettings(ts.Snapshot().Queue, ts.Transcripts.Overrides(key))
}

// steers says whether a session's messages are steered into its turn.
func (ts *Turns) steers(key string) bool { return ts.Queue(key).Mode == lane.Steer }

// Lanes are where what comes in is queued.
func (ts *Turns) Lanes() *lane.Lanes { return ts.lanes }

// until tells when its turn ends, so that nothing waits for what comes after that. The turn's own timer ends it.
type until struct {
	context.Context
	end time.Time
}

func (u until) Deadline() (time.Time, bool) { return u.end, true }

// Turn runs one turn of a session to its committed end, or until it is suspended.
func (ts *Turns) Turn(whole context.Context, t *lane.Turn) {
	defer workers.Guard(ts.Log, "turn") // a run that it leaves behind is ended by the sweep
	rec, err := ts.begin(whole, t)
	if err != nil {
		ts.unbegun(t, err)
		return
	}
	defer rec.progress.Stop() // also after a panic
	left := rec.left()
	end := time.Now().Add(left)
	if left == 0 { // it used its time up before a restart
		t.Cancel(agentloop.ErrTimeout)
	}
	timer := time.AfterFunc(left, func() { t.Cancel(agentloop.ErrTimeout) })
	defer timer.Stop()
	for {
		ctx := until{t.Context(), end}
		rec.compactIfFull(ctx)
		err := rec.attempt(ctx)
		switch {
		case rec.ended:
			return
		case errors.Is(err, agentloop.ErrWaiting) && rec.waits != nil:
			rec.suspend(t, approval.WaitsFor(*rec.waits), approval.SupersededAfter(*rec.waits, ts.steers(t.Key)))
			return
		case errors.Is(err, agentloop.ErrPaused):
			if err := ts.pause(rec.run, workspace.RunRunning); err != nil {
				rec.fail(whole, "internal", err)
				return
			}
			rec.suspend(t, whyPaused, lane.Never)
			return
		case errors.Is(err, agentloop.ErrRestart):
			if err := rec.restart(whole); err != nil {
				ts.Log.Error("turn cannot take a further message", "run", rec.run.ID, "err", err)
				rec.fail(whole, "internal", err)
				return
			}
		case errors.Is(err, agentloop.ErrShutdown), whole.Err() != nil:
			rec.progress.Stop()
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

// attempt has the run carried out, as far as it goes. A panic in it is the turn's failure and nobody else's.
func (r *recorder) attempt(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			r.ts.Log.Error("turn panicked", "run", r.run.ID, "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	err = r.snapshot.Runner.Run(ctx, r.turn, r, r.emit)
	if cause := context.Cause(ctx); err != nil && cause != nil && !r.ended {
		for _, known := range []error{agentloop.ErrRestart, agentloop.ErrShutdown} {
			if errors.Is(cause, known) {
				return known
			}
		}
	}
	return err
}

// Command runs a command in its place in the order.
func (ts *Turns) Command(ctx context.Context, _ string, in workspace.Input) {
	defer workers.Guard(ts.Log, "command")
	ts.Commands(ctx, in)
}

// Late ends an edit or delete whose turn has ended: what was answered is only noted.
func (ts *Turns) Late(key string, in workspace.Input) {
	_, err := ts.Store.EndInputs([]store.Ending{{Seq: in.Seq, From: workspace.InputQueued, To: workspace.InputCancelled,
		Reason: "its message was answered before"}})
	if err != nil && !errors.Is(err, workspace.ErrConflict) {
		ts.Log.Error("late edit cannot be ended", "session", key, "err", err)
	}
}

// Waits tells a sender why nothing happens yet.
func (ts *Turns) Waits(key string, inputs []workspace.Input, why string) {
	ts.Log.Info("turn waits for a place", "session", key, "why", why)
	if len(inputs) == 0 || inputs[0].RoomID == "" {
		return // /v1/status says it
	}
	n := delivery.NoticeTo(inputs[0].ID, "waits", inputs[0].RoomID, workspace.OutNotice, "Please wait: "+why+".")
	out, err := ts.Store.Outbound(ts.Delivery.Replying(n, inputs[0]))
	if err != nil {
		ts.Log.Error("sender cannot be told of the wait", "session", key, "err", err)
		return
	}
	ts.Delivery.PushAll(out)
}

// Dropped ends what the cap pushed out of a queue and tells the sender.
func (ts *Turns) Dropped(key string, dropped []workspace.Input, keepLine bool) {
	var ends []store.Ending
	var notices []store.NewOutbound
	for _, in := range dropped {
		ends = append(ends, store.Ending{Seq: in.Seq, From: workspace.InputQueued, To: workspace.InputDropped, Reason: "overflow"})
		if keepLine {
			line := workspace.ContextLine{Name: in.Sender + " (not answered, too many at once)", Text: firstLine(in.Text)}
			ts.Transcripts.Note(key, 0, line)
		}
		if in.RoomID != "" {
			text := "Too many messages wait here, so this one was not answered: “" + firstLine(in.Text) + "”"
			notices = append(notices, ts.Delivery.Replying(delivery.NoticeTo(in.ID, "refused", in.RoomID, workspace.OutRefusal, text), in))
		}
	}
	out, err := ts.Store.EndInputs(ends, notices...)
	if err != nil {
		ts.Log.Error("dropped inputs cannot be ended", "session", key, "err", err)
		return
	}
	ts.Delivery.PushAll(out)
	ts.Feed.Publish(key, live.Update{Stored: true})
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return clip.Runes(s, 81)
}
