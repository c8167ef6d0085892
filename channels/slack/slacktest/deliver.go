package slacktest

import (
	"encoding/json"
	"slices"
	"time"
)

// Kind is the type of a socket's envelope.
type Kind string

const (
	EventsAPI   Kind = "events_api"
	Slash       Kind = "slash_commands"
	Interactive Kind = "interactive"
)

// Delivery is one event on its way to the app. Copies of it are given out.
type Delivery struct {
	ID          string // event_id, or trigger_id of a command or press
	Kind        Kind
	Team        string
	Event       string // the inner event's type
	Channel, TS string // of the message that it is about
	Attempts    []Attempt
	Acked       bool // in time
	AckedAt     time.Time
	Response    json.RawMessage // what the acknowledgement carried
	Lost        bool            // given up

	payload json.RawMessage
	timer   *time.Timer
	again   bool // it was delivered a second time on purpose
}

// Attempt is one offer of a delivery.
type Attempt struct {
	Envelope string // empty over HTTP
	Socket   int    // 0: there was nobody to offer it to
	Reason   string // why it was offered again
	At       time.Time
	AckedAt  time.Time // zero: not acknowledged
	Late     bool      // after Options.AckWithin: it counted as not acknowledged
}

func (d *Delivery) stopTimers() {
	if d.timer != nil {
		d.timer.Stop()
	}
}

// Faults spoil the delivery of events.
type Faults struct {
	Redeliver float64 // the chance that an acknowledged event is delivered once more
	LoseAck   float64 // the chance that an acknowledgement is lost on its way
	Drop      float64 // the chance that the socket breaks in the middle of an event
	DropNext  int     // so many next events break their socket
	Reorder   int     // so many events are held and then given out in the reverse order; 0: none
}

// deliveries is the queue, guarded by the server's lock.
type deliveries struct {
	all    map[string]*Delivery
	order  []*Delivery
	mode   Faults
	held   []*Delivery
	strays int // acknowledgements of envelopes that nobody sent
}

// Disturb sets how deliveries are spoiled from now on; what was held for reordering goes out.
func (s *Server) Disturb(f Faults) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events.mode = f
	s.flushHeld()
}

func (s *Server) flushHeld() {
	held := s.events.held
	s.events.held = nil
	for _, d := range slices.Backward(held) {
		s.offer(d, "")
	}
}

// deliver takes a new event in. The caller holds s.mu.
func (s *Server) deliver(d *Delivery) {
	s.events.all[d.ID] = d
	s.events.order = append(s.events.order, d)
	s.forget()
	s.watch.Changed()
	if n := s.events.mode.Reorder; n > 1 && d.Kind == EventsAPI {
		s.events.held = append(s.events.held, d)
		if len(s.events.held) >= n {
			s.flushHeld()
		}
		return
	}
	s.offer(d, "")
}

// forget drops what is done where the server keeps only so much.
func (s *Server) forget() {
	keep := s.opts.Keep
	if keep == 0 || len(s.events.order) < 64+keep*len(s.chans) {
		return
	}
	s.events.order = slices.DeleteFunc(s.events.order, func(d *Delivery) bool {
		done := d.Acked || d.Lost
		if done {
			delete(s.events.all, d.ID)
		}
		return done
	})
}

// offer makes one attempt. The caller holds s.mu.
func (s *Server) offer(d *Delivery, reason string) {
	if s.closed() {
		return
	}
	if s.post.url != "" {
		s.post.push(d, reason)
		return
	}
	a := Attempt{Reason: reason, At: time.Now()}
	sock := s.anySocket()
	if sock == nil {
		d.Attempts = append(d.Attempts, a)
		s.retry(d, "no_connection")
		return
	}
	a.Envelope, a.Socket = s.id("env-"), sock.n
	d.Attempts = append(d.Attempts, a)
	env := reply{"envelope_id": a.Envelope, "type": d.Kind, "payload": d.payload, "accepts_response_payload": d.Kind != EventsAPI}
	if d.Kind == EventsAPI {
		env["retry_attempt"], env["retry_reason"] = len(d.Attempts)-1, reason
	}
	mode := &s.events.mode
	breaks := mode.DropNext > 0 || mode.Drop > 0 && s.rng.Float64() < mode.Drop
	if mode.DropNext > 0 {
		mode.DropNext--
	}
	sock.send(frame{text: mustJSON(env), breaks: breaks})
	n := len(d.Attempts)
	d.stopTimers()
	d.timer = time.AfterFunc(s.opts.AckWithin, func() { s.expire(d, n) })
}

// expire ends the wait for the acknowledgement of the n-th attempt.
func (s *Server) expire(d *Delivery, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed() || d.Acked || d.Lost || len(d.Attempts) != n {
		return
	}
	s.retry(d, "timeout")
}

// retry plans the next attempt, or gives up. Commands and presses are not repeated: the person sees that they failed.
func (s *Server) retry(d *Delivery, reason string) {
	n := len(d.Attempts)
	if d.Kind != EventsAPI || n > len(s.opts.Retries) {
		d.Lost = true
		s.watch.Changed()
		return
	}
	d.stopTimers()
	d.timer = time.AfterFunc(s.opts.Retries[n-1], func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.closed() && !d.Acked && !d.Lost && len(d.Attempts) == n {
			s.offer(d, reason)
		}
	})
}

// acknowledge takes an acknowledgement from a socket.
func (s *Server) acknowledge(envelope string, response json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.watch.Changed()
	for _, d := range slices.Backward(s.events.order) {
		for i := range d.Attempts {
			if d.Attempts[i].Envelope == envelope {
				s.acked(d, &d.Attempts[i], response)
				return
			}
		}
	}
	s.events.strays++
}

// acked notes an acknowledgement; one that comes late counts as none.
func (s *Server) acked(d *Delivery, a *Attempt, response json.RawMessage) {
	if mode := s.events.mode; mode.LoseAck > 0 && s.rng.Float64() < mode.LoseAck {
		return
	}
	now := time.Now()
	a.AckedAt = now
	if a.Late = now.Sub(a.At) > s.opts.AckWithin; a.Late || d.Acked {
		return
	}
	d.stopTimers()
	d.Acked, d.AckedAt, d.Response = true, now, response
	if mode := s.events.mode; d.Kind == EventsAPI && !d.again && mode.Redeliver > 0 && s.rng.Float64() < mode.Redeliver {
		d.again = true
		s.offerAgain(d)
	}
}

// offerAgain delivers what was acknowledged once more, as Slack does when the acknowledgement got lost behind its socket.
func (s *Server) offerAgain(d *Delivery) {
	lost := d.Lost
	s.offer(d, "timeout")
	if d.Acked {
		d.stopTimers()
		d.Lost = lost
	}
}

// Redeliver gives an event out once more, acknowledged or not, and says whether it is known.
func (s *Server) Redeliver(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.events.all[id]
	if d == nil {
		return false
	}
	s.offerAgain(d)
	return true
}

// lostSocket makes the attempts that a socket took with it fail at once.
func (s *Server) lostSocket(n int) {
	for _, d := range s.events.order {
		if len(d.Attempts) == 0 || d.Acked || d.Lost {
			continue
		}
		if last := d.Attempts[len(d.Attempts)-1]; last.Socket == n && last.AckedAt.IsZero() {
			s.retry(d, "connection_failed")
		}
	}
}

func mustJSON(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // our own maps
	}
	return raw
}
