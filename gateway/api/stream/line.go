package stream

import (
	"context"
	"errors"

	"parley/gateway/api/wire"
	"parley/gateway/bus"
	"parley/gateway/control"
	"parley/gateway/control/view"
	"parley/workspace"
)

// Put hands one frame to a live line. It may wait for a reader, and fails when the line has ended.
type Put func(frame any) error

// Following is what a live line wants to follow.
type Following struct {
	Key   string // of the session
	Was   workspace.SessionID
	After int64 // sequence that the reader has, of the generation Was
	// Who follows, with the rights that they have now: a line lives long.
	Who func() control.Call
}

// eventFrame is an event of a followed session.
type eventFrame struct {
	Type  string     `json:"type"`
	Key   string     `json:"key"`
	Event view.Event `json:"event"`
}

// caughtFrame says that the stored backlog of a session was sent.
type caughtFrame struct {
	Type      string `json:"type"`
	Key       string `json:"key"`
	SessionID string `json:"session_id"`
	Sequence  int64  `json:"sequence"`
}

// liveSink is a stream as frames of a live line.
type liveSink struct {
	key string
	put Put
}

func (o *liveSink) write(ev view.Event) error { return o.put(eventFrame{"event", o.key, ev}) }
func (o *liveSink) flush() error              { return nil }
func (o *liveSink) still() error              { return nil }

func (o *liveSink) caught(ses workspace.SessionID, cursor int64) error {
	return o.put(caughtFrame{"caught_up", o.key, string(ses), cursor})
}

// Follow streams a session to a live line until ctx ends. A line that cannot keep up with what happens is not dropped for
// it: it goes on from the record.
func (s *Streams) Follow(ctx context.Context, call control.Call, f Following, put Put) error {
	key, err := s.opt.Sessions.Watch(ctx, call, control.SessionWord(f.Key))
	if err != nil {
		return err
	}
	after, err := s.inGeneration(ctx, call, key, f.Was, f.After)
	if err != nil {
		return err
	}
	leave, ok := s.opt.Limits.Follows.Take(call.Actor.Person)
	if !ok {
		return wire.Busy("Too many sessions are followed. Close some pages.")
	}
	defer leave()
	s.open.Add(1)
	defer s.open.Add(-1)
	rd := s.newReader(&liveSink{key.String(), put}, &sessionSource{sessions: s.opt.Sessions, call: call, key: key.String(),
		output: s.sees(f.Who)}, after)
	rd.buffer = lineBuffer
	for {
		err := rd.run(ctx, key.String())
		switch {
		case errors.Is(err, bus.ErrSlow):
			s.slow.Add(1)
			continue
		case errors.Is(err, errClosing):
			return nil
		}
		return err
	}
}

// lineBuffer is how many events may wait for a live line, of each session: it begins again from the record when more come.
const lineBuffer = 64
