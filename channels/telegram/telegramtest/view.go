package telegramtest

import (
	"context"
	"slices"
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

// Edits is how often the bot edited in a chat, whatever came of it.
func (v View) Edits(chatID int64) int64 {
	ch := v.s.chat(chatID)
	if ch == nil {
		return 0
	}
	ch.mu.Lock()
	defer ch.mu.Unlock()
	return ch.edits
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

// WaitFor blocks until cond holds. It is asked again after every call of the bot and every injected update.
func (s *Server) WaitFor(ctx context.Context, cond func(View) bool) error {
	return s.watch.Wait(ctx, func() bool { return cond(s.View()) })
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
