package telegramtest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// View reads what the server has seen. What it returns are copies.
type View struct{ s *Server }

// View looks at the server now.
func (s *Server) View() View { return View{s} }

// Messages are all messages that chat still holds, from people and the bot, oldest first, deleted ones included.
func (v View) Messages(chatID int64) []Message {
	ch := v.s.chat(chatID)
	if ch == nil {
		return nil
	}
	ch.mu.Lock()
	defer ch.mu.Unlock()
	all := make([]Message, len(ch.msgs))
	for i, m := range ch.msgs {
		all[i] = m.clone()
	}
	return all
}

// Sent are the bot's messages among Messages, without the deleted ones.
func (v View) Sent(chatID int64) []Message {
	all := v.Messages(chatID)
	return slices.DeleteFunc(all, func(m Message) bool { return m.Deleted || m.From.ID != v.s.opts.Bot.ID })
}

// Message is one message, also a deleted one.
func (v View) Message(chatID, id int64) (Message, bool) {
	for _, m := range v.Messages(chatID) {
		if m.ID == id {
			return m, true
		}
	}
	return Message{}, false
}

// Actions are the chat actions of a chat, oldest first.
func (v View) Actions(chatID int64) []Action {
	ch := v.s.chat(chatID)
	if ch == nil {
		return nil
	}
	ch.mu.Lock()
	defer ch.mu.Unlock()
	return slices.Clone(ch.actions)
}

// Calls is how often a method was called, whatever came of it.
func (v View) Calls(method string) int64 {
	m := v.s.methods[method]
	if m == nil {
		return 0
	}
	return m.calls.Load()
}

// Pending is how many updates are not confirmed.
func (v View) Pending() int {
	v.s.queue.mu.Lock()
	defer v.s.queue.mu.Unlock()
	return len(v.s.queue.pend)
}

// Confirmed is the highest update id that was confirmed by an offset; 0: none.
func (v View) Confirmed() int64 {
	v.s.queue.mu.Lock()
	defer v.s.queue.mu.Unlock()
	return v.s.queue.confirmed
}

// Offered is how many times an unconfirmed update was given out.
func (v View) Offered(update int64) int {
	v.s.queue.mu.Lock()
	defer v.s.queue.mu.Unlock()
	for _, u := range v.s.queue.pend {
		if u.id == update {
			return u.offered
		}
	}
	return 0
}

// Polling says that a long poll is waiting now.
func (v View) Polling() bool {
	v.s.queue.mu.Lock()
	defer v.s.queue.mu.Unlock()
	return v.s.queue.poll != nil
}

func (m *Message) clone() Message {
	c := *m
	c.Edits = slices.Clone(m.Edits)
	return c
}

// watchers wakes WaitFor. Nobody waiting costs one atomic read per change.
type watchers struct {
	n   atomic.Int32
	mu  sync.Mutex
	all map[chan struct{}]bool
}

func (w *watchers) changed() {
	if w.n.Load() == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.all {
		select {
		case c <- struct{}{}:
		default: // it has a wake-up waiting
		}
	}
}

func (w *watchers) add() chan struct{} {
	c := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = map[chan struct{}]bool{}
	}
	w.all[c] = true
	w.n.Add(1)
	return c
}

func (w *watchers) remove(c chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.all, c)
	w.n.Add(-1)
}

// WaitFor blocks until cond holds. It is asked again after every call of the bot and every injected update.
func (s *Server) WaitFor(ctx context.Context, cond func(View) bool) error {
	c := s.watch.add()
	defer s.watch.remove(c)
	for {
		if cond(s.View()) {
			return nil
		}
		select {
		case <-c:
		case <-ctx.Done():
			return fmt.Errorf("wait for the fake: %w", ctx.Err())
		}
	}
}

// WaitSent waits until the bot has n messages in chat, and returns them.
func (s *Server) WaitSent(ctx context.Context, chatID int64, n int) ([]Message, error) {
	var got []Message
	err := s.WaitFor(ctx, func(v View) bool {
		got = v.Sent(chatID)
		return len(got) >= n
	})
	return got, err
}
