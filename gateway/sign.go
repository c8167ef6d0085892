package gateway

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"parley/agentloop"
	"parley/agentloop/lane"
	"parley/channels"
	"parley/channels/markup"
	"parley/gateway/delivery"
	"parley/gateway/snapshot"
	"parley/gateway/transport"
	"parley/workspace"
	"parley/workspace/store"
)

// signEvery is the longest silence during a turn.
const signEvery = 30 * time.Second

// editTimeout bounds a streamed edit, and so how long the end of a turn may wait for it.
const editTimeout = 5 * time.Second

// sign shows a room that a turn is under way: typing, then a placeholder, then the answer as it grows. A quick
// answer costs nothing but a timer. Its goroutine starts with the first sign and ends with stop.
type sign struct {
	ts   *turns
	line *transport.Channel
	room workspace.Room
	run  workspace.RunID
	turn *lane.Turn
	when snapshot.Progress

	thinks bool            // it is shown that the model thinks
	asked  workspace.Input // the message that is worked on
	grows  *growth         // the message that only grows; nil: it is edited

	timer *time.Timer
	began time.Time

	mu     sync.Mutex
	text   strings.Builder // of the model call under way
	note   string          // why nothing happens
	steps  string          // what was done so far, in one line; empty: it is not shown
	dirty  bool
	open   *workspace.Outbound // the streamed answer; adopted from an earlier boot or made here
	job    *delivery.Job
	ended  bool
	cancel context.CancelFunc
	done   chan struct{}
}

// newSign makes the signs of a turn; none is shown before watch.
func newSign(ts *turns, l *transport.Channel, room workspace.Room, run workspace.RunID, t *lane.Turn, when snapshot.Progress, open *workspace.Outbound) *sign {
	s := &sign{ts: ts, line: l, room: room, run: run, turn: t, when: when, open: open, began: ts.now()}
	if len(t.Inputs) > 0 {
		s.asked = t.Inputs[0]
	}
	if l != nil {
		if streamer, ok := channels.As[channels.Streamer](l.Adapter); ok && l.Streams() && open == nil {
			s.grows = &growth{streamer: streamer, send: l.Adapter.Send, who: s.asked.Data.User, traits: l.Traits}
		}
	}
	return s
}

// watch lets the signs begin once they are due. What stands above the lock in sign does not change any more.
func (s *sign) watch() {
	if s.line != nil {
		s.timer = time.AfterFunc(s.when.Typing, s.start)
	}
}

// see takes the turn's events.
func (s *sign) see(e agentloop.Event) {
	if s.line == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e.Type {
	case agentloop.EventText:
		s.text.WriteString(e.Text)
		s.note, s.dirty = "", true
	case agentloop.EventDiscard, agentloop.EventModelStart:
		s.text.Reset()
	case agentloop.EventToolStart:
		s.note, s.dirty = "working: "+e.Tool, true
	case agentloop.EventWait:
		s.note, s.dirty = e.Note, true
	case agentloop.EventThinking:
		if s.thinks {
			s.note, s.dirty = "thinking", true
		}
	}
}

// follow takes the line of what was done so far.
func (s *sign) follow(steps string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.steps != steps {
		s.steps, s.dirty = steps, true
	}
}

func (s *sign) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || s.ts.base.Err() != nil {
		return
	}
	ctx, cancel := context.WithCancel(s.ts.base)
	s.cancel, s.done = cancel, make(chan struct{})
	go s.show(ctx) // stop waits for done
}

// stop ends all signs and returns the streamed answer to finish, if there is one, with its job.
func (s *sign) stop() (*workspace.Outbound, *delivery.Job) {
	if s.line == nil {
		return s.open, nil
	}
	s.timer.Stop()
	s.mu.Lock()
	s.ended = true
	done, cancel := s.done, s.cancel
	s.mu.Unlock()
	if done != nil {
		cancel()
		<-done
		if s.grows != nil {
			s.grows.close(s.ts.base, s.line.Log)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open, s.job
}

// show is the goroutine of the signs.
func (s *sign) show(ctx context.Context) {
	defer close(s.done)
	defer guard(s.line.Log, "sign")
	defer s.acknowledge(ctx)()
	typer, canType := channels.As[channels.Typer](s.line.Adapter)
	editor, canEdit := channels.As[channels.Editor](s.line.Adapter)
	canEdit = canEdit && s.line.Streams()
	pace := s.line.Traits.EditEvery
	if s.room.Kind != channels.DM && s.line.Traits.EditGroup > 0 {
		pace = s.line.Traits.EditGroup
	}
	pace = max(pace, 200*time.Millisecond)
	var lastType, lastEdit time.Time
	for ctx.Err() == nil {
		now := s.ts.now()
		if canType && s.line.Traits.TypingEvery > 0 && now.Sub(lastType) >= s.line.Traits.TypingEvery {
			lastType = now
			if err := typer.ShowTyping(ctx, s.room.Address); err != nil {
				s.line.Log.Debug("typing is not shown", "err", err)
			}
		}
		if canEdit && now.Sub(s.began) >= s.when.Placeholder {
			if !s.placed(ctx) {
				canEdit = false
			} else if now.Sub(lastEdit) >= pace {
				lastEdit = now
				s.grow(ctx, editor, now.Sub(s.began))
			}
		}
		if !channels.Sleep(ctx, s.next(now, lastType, lastEdit, canType, canEdit, pace)) {
			return
		}
	}
}

// acknowledge puts the network's mark on the message that is worked on, where typing cannot be shown, and returns what
// takes it away: after the answer, which does not wait for it.
func (s *sign) acknowledge(ctx context.Context) (remove func()) {
	reactor, ok := channels.As[channels.Reactor](s.line.Adapter)
	id := s.asked.Data.Message
	if !ok || s.line.Traits.Ack == "" || id == "" {
		return func() {}
	}
	react := func(ctx context.Context, emoji string) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), editTimeout)
		defer cancel()
		if err := reactor.React(ctx, s.room.Address, id, emoji); err != nil {
			s.line.Log.Debug("a message is not marked", "err", err)
		}
	}
	react(ctx, s.line.Traits.Ack)
	return func() {
		s.ts.deliver.Go(func() { react(ctx, "") })
	}
}

// next is how long nothing needs to be shown.
func (s *sign) next(now, lastType, lastEdit time.Time, canType, canEdit bool, pace time.Duration) time.Duration {
	wait := signEvery
	if every := s.line.Traits.TypingEvery; canType && every > 0 {
		wait = min(wait, lastType.Add(every).Sub(now))
	}
	if canEdit {
		at := s.began.Add(s.when.Placeholder)
		if next := lastEdit.Add(pace); next.After(at) {
			at = next
		}
		wait = min(wait, at.Sub(now))
	}
	return max(wait, 10*time.Millisecond)
}

// placed makes sure that the streamed answer's message exists; false when it cannot.
func (s *sign) placed(ctx context.Context) bool {
	s.mu.Lock()
	open, j := s.open, s.job
	s.mu.Unlock()
	if open == nil {
		s.turn.Shown()
		out := store.NewOutbound{Key: workspace.AnswerKey(s.run), RoomID: s.room.ID, RunID: s.run, Kind: workspace.OutAnswer, Open: true, Spans: []store.Span{{}}}
		if s.room.Kind != channels.DM {
			out.ReplyTo = s.asked.Data.Message // as an answer that is sent whole
		}
		list, err := s.ts.store.Outbound(out)
		if err != nil || len(list) == 0 {
			if err != nil && !errors.Is(err, store.ErrClosed) {
				s.line.Log.Error("placeholder cannot be stored", "run", s.run, "err", err)
			}
			return false
		}
		var start delivery.Starter
		if s.grows != nil {
			start = s.grows.open
		}
		j = s.ts.deliver.Open(list[0], start)
		s.mu.Lock()
		s.open, s.job = &list[0], j
		s.mu.Unlock()
	}
	if j == nil {
		return s.remote() != ""
	}
	select {
	case <-j.Done():
		return s.remote() != ""
	case <-ctx.Done():
		return false
	}
}

// remote is the placeholder's message, once the network has told it.
func (s *sign) remote() channels.MessageID {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.job != nil:
		return s.job.Remote()
	case len(s.open.Parts) == 0:
		return ""
	}
	return s.open.Parts[0].RemoteID
}

// grow edits the message to the text so far, or to what is being waited for.
func (s *sign) grow(ctx context.Context, editor channels.Editor, since time.Duration) {
	s.mu.Lock()
	text, note, steps, dirty := s.text.String(), s.note, s.steps, s.dirty
	s.dirty = false
	s.mu.Unlock()
	if !dirty {
		return
	}
	if s.grows != nil && s.grows.streams() {
		s.grows.feed(ctx, text, s.line.Log)
		return
	}
	post := channels.Post{To: s.room.Address}
	switch {
	case strings.TrimSpace(text) != "":
		if steps != "" {
			text = steps + "\n\n" + text
		}
		spans := markup.Cut(text, s.line.Traits)
		if len(spans) == 0 {
			return
		}
		post.Text, post.Plain = s.ts.deliver.Render(text, spans[0], s.line.Traits.Dialect)
	case note != "" || steps != "":
		line := strings.TrimRight(delivery.Placeholder+" "+note, " ") + ", " + since.Round(time.Second).String()
		if steps != "" {
			line = steps + "\n" + line
		}
		post.Text, _ = s.ts.deliver.Render(line, markup.Span{To: len(line)}, s.line.Traits.Dialect)
		post.Plain = s.ts.hide.Redact(line)
	default:
		return
	}
	// an edit that is cut off might still arrive after the final one, so it may end by itself
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), editTimeout)
	defer cancel()
	err := editor.Edit(call, s.remote(), post)
	var e *channels.Error
	if errors.As(err, &e) && e.After > 0 {
		s.mu.Lock()
		s.dirty = true
		s.mu.Unlock()
		channels.Sleep(ctx, e.After)
	}
	if err != nil && ctx.Err() == nil {
		s.line.Log.Debug("streamed edit failed", "run", s.run, "err", err)
	}
}

// rest says in the message of the growing answer, where there is one, why it grows no more for now. It comes after stop.
func (s *sign) rest(why string) {
	if s.line == nil || s.open == nil || s.grows != nil || s.remote() == "" {
		return
	}
	editor, ok := channels.As[channels.Editor](s.line.Adapter)
	if !ok || !s.line.Streams() {
		return
	}
	text := strings.TrimSpace(s.text.String())
	if text != "" {
		text += "\n\n"
	}
	text += "(" + why + ")"
	spans := markup.Cut(text, s.line.Traits)
	if len(spans) == 0 {
		return
	}
	post := channels.Post{To: s.room.Address}
	post.Text, post.Plain = s.ts.deliver.Render(text, spans[0], s.line.Traits.Dialect)
	ctx, cancel := context.WithTimeout(s.ts.base, editTimeout)
	defer cancel()
	if err := editor.Edit(ctx, s.remote(), post); err != nil {
		s.line.Log.Debug("a resting answer is not told so", "run", s.run, "err", err)
	}
}
