// One turn, as its room sees it.

package progress

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
	"parley/workspace/workers"
)

// longestSilence is how long a turn may show nothing.
const longestSilence = 30 * time.Second

// editTimeout bounds a streamed edit, and so how long the end of a turn may wait for it.
const editTimeout = 5 * time.Second

// Turn is what is known of a turn when it begins.
type Turn struct {
	Channel *transport.Channel // nil: nothing is shown
	Room    workspace.Room
	Run     workspace.RunID
	Lane    *lane.Turn
	When    snapshot.Progress
	Thinks  bool   // it is shown that the model thinks
	Open    Answer // of an earlier pass or boot
}

// Answer is the message of an answer that grows while its turn runs.
type Answer struct {
	Out *workspace.Outbound // nil: there is none
	Job *delivery.Job       // that sends it; nil: an earlier boot did
}

// Progress shows a room that a turn is under way: typing, then a placeholder, then the answer as it grows. A quick
// answer costs nothing but a timer. Its goroutine starts with what is shown first and ends with Stop.
type Progress struct {
	on    *Display
	turn  Turn
	began time.Time
	asked workspace.Input // the message that is worked on
	grows *growth         // the message that only grows; nil: it is edited
	timer *time.Timer

	mu     sync.Mutex
	text   strings.Builder // of the model call under way
	note   string          // why nothing happens
	steps  string          // what was done so far, in one line; empty: it is not shown
	dirty  bool
	asks   silence // its model, which has sent nothing yet
	open   Answer  // adopted from the turn or made here
	ended  bool
	cancel context.CancelFunc
	done   chan struct{}
}

// Watch lets the progress of a turn be shown once it is due.
func (d *Display) Watch(t Turn) *Progress {
	p := &Progress{on: d, turn: t, open: t.Open, began: d.Now()}
	if len(t.Lane.Inputs) > 0 {
		p.asked = t.Lane.Inputs[0]
	}
	if t.Channel == nil {
		return p
	}
	if streamer, ok := channels.As[channels.Streamer](t.Channel.Adapter); ok && t.Channel.Streams() && t.Open.Out == nil {
		p.grows = &growth{streamer: streamer, send: t.Channel.Adapter.Send, who: p.asked.Data.User, traits: t.Channel.Traits}
	}
	p.timer = time.AfterFunc(t.When.Typing, p.start) // what stands above the lock does not change any more
	return p
}

// See takes the turn's events.
func (p *Progress) See(e agentloop.Event) {
	if p.turn.Channel == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e.Type {
	case agentloop.EventText:
		p.text.WriteString(e.Text)
		p.note, p.dirty, p.asks = "", true, silence{}
	case agentloop.EventDiscard, agentloop.EventModelStart:
		p.text.Reset()
	case agentloop.EventToolStart:
		p.note, p.dirty, p.asks = "working: "+e.Tool, true, silence{}
	case agentloop.EventAsk:
		p.asks = silence{who: e.Who, since: e.Since}
	case agentloop.EventWait:
		p.note, p.dirty, p.asks = e.Note, true, silence{}
	case agentloop.EventThinking:
		p.asks = silence{}
		if p.turn.Thinks {
			p.note, p.dirty = "thinking", true
		}
	}
}

// Follow takes the line of what was done so far.
func (p *Progress) Follow(steps string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.steps != steps {
		p.steps, p.dirty = steps, true
	}
}

func (p *Progress) start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended || p.on.base.Err() != nil {
		return
	}
	ctx, cancel := context.WithCancel(p.on.base)
	p.cancel, p.done = cancel, make(chan struct{})
	go p.show(ctx) // Stop waits for done
}

// Stop ends what is shown and returns the streamed answer to finish, if there is one.
func (p *Progress) Stop() Answer {
	if p.turn.Channel == nil {
		return Answer{Out: p.open.Out}
	}
	p.timer.Stop()
	p.mu.Lock()
	p.ended = true
	done, cancel := p.done, p.cancel
	p.mu.Unlock()
	if done != nil {
		cancel()
		<-done
		if p.grows != nil {
			p.grows.close(p.on.base, p.turn.Channel.Log)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open
}

// show is the goroutine.
func (p *Progress) show(ctx context.Context) {
	defer close(p.done)
	defer workers.Guard(p.turn.Channel.Log, "progress")
	defer p.acknowledge(ctx)()
	typer, canType := channels.As[channels.Typer](p.turn.Channel.Adapter)
	editor, canEdit := channels.As[channels.Editor](p.turn.Channel.Adapter)
	canEdit = canEdit && p.turn.Channel.Streams()
	pace := p.turn.Channel.Traits.EditEvery
	if p.turn.Room.Kind != channels.DM && p.turn.Channel.Traits.EditGroup > 0 {
		pace = p.turn.Channel.Traits.EditGroup
	}
	pace = max(pace, 200*time.Millisecond)
	var lastType, lastEdit time.Time
	for ctx.Err() == nil {
		now := p.on.Now()
		if canType && p.turn.Channel.Traits.TypingEvery > 0 && now.Sub(lastType) >= p.turn.Channel.Traits.TypingEvery {
			lastType = now
			if err := typer.ShowTyping(ctx, p.turn.Room.Address); err != nil {
				p.turn.Channel.Log.Debug("typing cannot be shown", "err", err)
			}
		}
		if canEdit && now.Sub(p.began) >= p.turn.When.Placeholder {
			if !p.placed(ctx) {
				canEdit = false
			} else if now.Sub(lastEdit) >= pace {
				lastEdit = now
				p.grow(ctx, editor, now.Sub(p.began))
			}
		}
		if !channels.Sleep(ctx, p.next(now, lastType, lastEdit, canType, canEdit, pace)) {
			return
		}
	}
}

// acknowledge puts the network's mark on the message that is worked on, where typing cannot be shown, and returns what
// takes it away: after the answer, which does not wait for it.
func (p *Progress) acknowledge(ctx context.Context) (remove func()) {
	reactor, ok := channels.As[channels.Reactor](p.turn.Channel.Adapter)
	id := p.asked.Data.Message
	if !ok || p.turn.Channel.Traits.Ack == "" || id == "" {
		return func() {}
	}
	react := func(ctx context.Context, emoji string) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), editTimeout)
		defer cancel()
		if err := reactor.React(ctx, p.turn.Room.Address, id, emoji); err != nil {
			p.turn.Channel.Log.Debug("message cannot be marked", "err", err)
		}
	}
	react(ctx, p.turn.Channel.Traits.Ack)
	return func() {
		p.on.Delivery.Go(func() { react(ctx, "") })
	}
}

// next is how long nothing needs to be shown.
func (p *Progress) next(now, lastType, lastEdit time.Time, canType, canEdit bool, pace time.Duration) time.Duration {
	wait := longestSilence
	if every := p.turn.Channel.Traits.TypingEvery; canType && every > 0 {
		wait = min(wait, lastType.Add(every).Sub(now))
	}
	if canEdit {
		at := p.began.Add(p.turn.When.Placeholder)
		if next := lastEdit.Add(pace); next.After(at) {
			at = next
		}
		wait = min(wait, at.Sub(now))
	}
	return max(wait, 10*time.Millisecond)
}

// placed makes sure that the streamed answer's message exists; false when it cannot.
func (p *Progress) placed(ctx context.Context) bool {
	p.mu.Lock()
	open := p.open
	p.mu.Unlock()
	if open.Out == nil {
		p.turn.Lane.Shown()
		out := store.NewOutbound{Key: workspace.AnswerKey(p.turn.Run), RoomID: p.turn.Room.ID, RunID: p.turn.Run, Kind: workspace.OutAnswer,
			Open: true, Spans: []store.Span{{}}}
		if p.turn.Room.Kind != channels.DM {
			out.ReplyTo = p.asked.Data.Message // as an answer that is sent whole
		}
		list, err := p.on.Store.Outbound(out)
		if err != nil || len(list) == 0 {
			if err != nil && !errors.Is(err, store.ErrClosed) {
				p.turn.Channel.Log.Error("placeholder cannot be stored", "run", p.turn.Run, "err", err)
			}
			return false
		}
		var start delivery.Starter
		if p.grows != nil {
			start = p.grows.open
		}
		open = Answer{Out: &list[0], Job: p.on.Delivery.Open(list[0], start)}
		p.mu.Lock()
		p.open = open
		p.mu.Unlock()
	}
	if open.Job == nil {
		return p.remote() != ""
	}
	select {
	case <-open.Job.Done():
		return p.remote() != ""
	case <-ctx.Done():
		return false
	}
}

// remote is the placeholder's message, once the network has told it.
func (p *Progress) remote() channels.MessageID {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.open.Job != nil:
		return p.open.Job.Remote()
	case len(p.open.Out.Parts) == 0:
		return ""
	}
	return p.open.Out.Parts[0].RemoteID
}

// grow edits the message to the text so far, or to what is being waited for.
func (p *Progress) grow(ctx context.Context, editor channels.Editor, since time.Duration) {
	p.mu.Lock()
	silent := p.asks.news(p.on.Now())
	text, note, steps, dirty := p.text.String(), p.note, p.steps, p.dirty || silent
	p.dirty = false
	clock := ", " + since.Round(time.Second).String()
	if p.asks.told > 0 {
		note, clock = p.asks.say(), ""
	}
	p.mu.Unlock()
	if !dirty {
		return
	}
	if p.grows != nil && p.grows.streams() {
		p.grows.feed(ctx, text, p.turn.Channel.Log)
		return
	}
	post := channels.Post{To: p.turn.Room.Address}
	switch {
	case strings.TrimSpace(text) != "":
		if steps != "" {
			text = steps + "\n\n" + text
		}
		spans := markup.Cut(text, p.turn.Channel.Traits)
		if len(spans) == 0 {
			return
		}
		post.Text, post.Plain = p.on.Delivery.Render(text, spans[0], p.turn.Channel.Traits.Dialect)
	case note != "" || steps != "":
		line := strings.TrimRight(delivery.Placeholder+" "+note, " ") + clock
		if steps != "" {
			line = steps + "\n" + line
		}
		post.Text, _ = p.on.Delivery.Render(line, markup.Span{To: len(line)}, p.turn.Channel.Traits.Dialect)
		post.Plain = p.on.Hide.Redact(line)
	default:
		return
	}
	// an edit that is cut off might still arrive after the final one, so it may end by itself
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), editTimeout)
	defer cancel()
	err := editor.Edit(call, p.remote(), post)
	var e *channels.Error
	if errors.As(err, &e) && e.After > 0 {
		p.mu.Lock()
		p.dirty = true
		p.mu.Unlock()
		channels.Sleep(ctx, e.After)
	}
	if err != nil && ctx.Err() == nil {
		p.turn.Channel.Log.Debug("streamed edit failed", "run", p.turn.Run, "err", err)
	}
}

// Rest says in the message of the growing answer, where there is one, why it grows no more for now. It comes after Stop.
func (p *Progress) Rest(why string) {
	if p.turn.Channel == nil || p.open.Out == nil || p.grows != nil || p.remote() == "" {
		return
	}
	editor, ok := channels.As[channels.Editor](p.turn.Channel.Adapter)
	if !ok || !p.turn.Channel.Streams() {
		return
	}
	text := strings.TrimSpace(p.text.String())
	if text != "" {
		text += "\n\n"
	}
	text += "(" + why + ")"
	spans := markup.Cut(text, p.turn.Channel.Traits)
	if len(spans) == 0 {
		return
	}
	post := channels.Post{To: p.turn.Room.Address}
	post.Text, post.Plain = p.on.Delivery.Render(text, spans[0], p.turn.Channel.Traits.Dialect)
	ctx, cancel := context.WithTimeout(p.on.base, editTimeout)
	defer cancel()
	if err := editor.Edit(ctx, p.remote(), post); err != nil {
		p.turn.Channel.Log.Debug("suspended answer is not told so", "run", p.turn.Run, "err", err)
	}
}
