package stream

import (
	"context"
	"errors"

	"parley/agentloop"
	"parley/gateway/control"
	"parley/gateway/control/run"
	"parley/gateway/live"
	"parley/workspace"
)

// readAtOnce is how many lines of a transcript are read at once.
const readAtOnce = 500

// Runs is what streams read of runs. *run.Runs is.
type Runs interface {
	// Of finds a run, or the input that waits for one; Lines are what the record has of it.
	Of(ctx context.Context, call control.Call, word control.RunWord) (run.Found, error)
	Lines(f run.Found) ([]workspace.Entry, error)
}

// Sessions is what streams read of sessions. *session.Sessions is.
type Sessions interface {
	// Watch is the key of a session that the caller may watch, also before anything was said in it.
	Watch(ctx context.Context, call control.Call, word control.SessionWord) (workspace.Key, error)
	// Of is a session's newest generation, or the one that id names.
	Of(ctx context.Context, call control.Call, key control.SessionWord, id string) (workspace.Session, error)
	EntriesAfter(ses workspace.Session, after int64, limit int) ([]workspace.Entry, error)
	Last(ses workspace.Session) (int64, error)
}

// source is what a stream reads of the record.
type source interface {
	// read hands over the events after the cursor that are stored by now, in order, and says whether it has ended.
	read(ctx context.Context, after int64, each func(workspace.Entry) error) (ended bool, err error)
	// wants says whether a live event is part of it.
	wants(live.Update) bool
}

// runSource is one run, or the input that waits for one.
type runSource struct {
	runs   Runs
	call   control.Call
	found  run.Found
	output func() bool // may see what commands write
}

func (s *runSource) read(ctx context.Context, after int64, each func(workspace.Entry) error) (bool, error) {
	var err error
	if !s.found.Ended() { // before its lines: then an end has all of them
		if s.found, err = s.runs.Of(ctx, s.call, control.RunWord(s.found.ID)); err != nil {
			return false, err
		}
	}
	lines, err := s.runs.Lines(s.found)
	for _, e := range lines {
		if err == nil && e.N > after {
			err = each(e)
		}
	}
	return s.found.Ended(), err
}

func (s *runSource) wants(l live.Update) bool {
	return l.Run == s.found.Run.ID && l.Run != "" && seen(l, s.output)
}

// seen says that what is told is for everybody who follows, or for this one too.
func seen(l live.Update, output func() bool) bool {
	return l.Event.Type != agentloop.EventOutput || output()
}

// sessionSource is the newest generation of a session, and the next one when that ends.
type sessionSource struct {
	sessions Sessions
	call     control.Call
	key      string
	ses      workspace.Session
	turn     func(old, new workspace.Session) error // told when a generation begins
	output   func() bool                            // may see what commands write
}

func (s *sessionSource) read(ctx context.Context, after int64, each func(workspace.Entry) error) (bool, error) {
	ses, err := s.sessions.Of(ctx, s.call, control.SessionWord(s.key), "")
	if errors.Is(err, workspace.ErrNotFound) {
		return false, nil // nothing was said in it yet
	}
	if err != nil {
		return false, err
	}
	if ses.ID == s.ses.ID {
		return false, s.lines(after, each)
	}
	if s.ses.ID != "" { // what the old generation was told last comes before the new one
		if err := s.lines(after, each); err != nil {
			return false, err
		}
		after = 0
	}
	old := s.ses
	s.ses = ses
	if err := s.turn(old, ses); err != nil {
		return false, err
	}
	return false, s.lines(after, each)
}

func (s *sessionSource) lines(after int64, each func(workspace.Entry) error) error {
	for {
		list, err := s.sessions.EntriesAfter(s.ses, after, readAtOnce)
		if err != nil {
			return err
		}
		for _, e := range list {
			if err := each(e); err != nil {
				return err
			}
			after = e.N
		}
		if len(list) < readAtOnce {
			return nil
		}
	}
}

func (s *sessionSource) wants(l live.Update) bool { return l.Session == s.ses.ID && seen(l, s.output) }
