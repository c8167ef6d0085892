package slacktest

import (
	"context"
	"slices"
)

// View reads what the server has seen. What it returns are copies.
type View struct{ s *Server }

// View looks at the server now.
func (s *Server) View() View { return View{s} }

// Messages are all messages of a channel, from people and the bot, oldest first, deleted and ephemeral ones included.
func (v View) Messages(channel string) []Message {
	v.s.mu.Lock()
	defer v.s.mu.Unlock()
	ch := v.s.chans[channel]
	if ch == nil {
		return nil
	}
	all := make([]Message, len(ch.msgs))
	for i, m := range ch.msgs {
		all[i] = m.clone()
	}
	return all
}

// Sent are the bot's messages that everybody in the channel sees, those in threads among them.
func (v View) Sent(channel string) []Message {
	return slices.DeleteFunc(v.Messages(channel), func(m Message) bool { return m.Deleted || m.BotID == "" || m.For != "" })
}

// Ephemerals are the bot's messages that only user sees.
func (v View) Ephemerals(channel, user string) []Message {
	return slices.DeleteFunc(v.Messages(channel), func(m Message) bool { return m.Deleted || m.For != user })
}

// Message is one message, also a deleted one.
func (v View) Message(channel, ts string) (Message, bool) {
	for _, m := range v.Messages(channel) {
		if m.TS == ts {
			return m, true
		}
	}
	return Message{}, false
}

// Statuses are all that assistant.threads.setStatus showed; an answer clears with an empty one.
func (v View) Statuses() []Status {
	v.s.mu.Lock()
	defer v.s.mu.Unlock()
	return slices.Clone(v.s.statuses)
}

// Calls is how often a method was called, whatever came of it.
func (v View) Calls(method string) int64 {
	m := v.s.methods[method]
	if m == nil {
		return 0
	}
	v.s.mu.Lock()
	defer v.s.mu.Unlock()
	return m.calls
}

// Deliveries are all events that were meant for the app, in the order in which they happened.
func (v View) Deliveries() []Delivery {
	v.s.mu.Lock()
	defer v.s.mu.Unlock()
	all := make([]Delivery, len(v.s.events.order))
	for i, d := range v.s.events.order {
		all[i] = *d
		all[i].Attempts = slices.Clone(d.Attempts)
	}
	return all
}

// Delivery is one of Deliveries by its id.
func (v View) Delivery(id string) (Delivery, bool) {
	for _, d := range v.Deliveries() {
		if d.ID == id {
			return d, true
		}
	}
	return Delivery{}, false
}

// Acked says that every event about the creation of a message was acknowledged in time.
func (v View) Acked(channel, ts string) bool {
	v.s.mu.Lock()
	defer v.s.mu.Unlock()
	found := false
	for _, d := range v.s.events.order {
		if d.Channel == channel && d.TS == ts && (d.Event == "message" || d.Event == "app_mention") {
			if !d.Acked {
				return false
			}
			found = true
		}
	}
	return found
}

// Pending is how many events are neither acknowledged nor given up.
func (v View) Pending() int {
	v.s.mu.Lock()
	defer v.s.mu.Unlock()
	n := 0
	for _, d := range v.s.events.order {
		if !d.Acked && !d.Lost {
			n++
		}
	}
	return n
}

// Sockets is how many are open; Connected how many were opened so far; Strays how many acknowledgements named no envelope.
func (v View) Sockets() int {
	v.s.mu.Lock()
	defer v.s.mu.Unlock()
	return len(v.s.sockets)
}

// Connected is how many sockets were opened so far.
func (v View) Connected() int {
	v.s.mu.Lock()
	defer v.s.mu.Unlock()
	return v.s.socketN
}

// Pings is how many pings sockets have had.
func (v View) Pings() int {
	v.s.mu.Lock()
	defer v.s.mu.Unlock()
	return v.s.pings
}

// Strays is how many acknowledgements named an envelope that nobody sent.
func (v View) Strays() int {
	v.s.mu.Lock()
	defer v.s.mu.Unlock()
	return v.s.events.strays
}

// WaitFor blocks until cond holds. It is asked again after every call of the app and every event.
func (s *Server) WaitFor(ctx context.Context, cond func(View) bool) error {
	return s.watch.Wait(ctx, func() bool { return cond(s.View()) })
}

// WaitSent waits until the bot has n messages in a channel, and returns them.
func (s *Server) WaitSent(ctx context.Context, channel string, n int) ([]Message, error) {
	var got []Message
	err := s.WaitFor(ctx, func(v View) bool {
		got = v.Sent(channel)
		return len(got) >= n
	})
	return got, err
}
