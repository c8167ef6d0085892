package stream

import (
	"context"
	"errors"
	"time"

	"parley/agentloop"
	"parley/gateway/bus"
	"parley/gateway/control/view"
	"parley/gateway/live"
	"parley/workspace"
)

const (
	heartbeat  = 15 * time.Second
	feedBuffer = 512 // events that may wait for a reader
)

// sink is where a stream goes: server-sent events, or the live line.
type sink interface {
	// write sends one event; flush ends what belongs together.
	write(view.Event) error
	flush() error
	// still is called while nothing happens.
	still() error
	// caught is called once, when all that was stored has been written up to the cursor.
	caught(ses workspace.SessionID, cursor int64) error
}

// reader is one reader of a source.
type reader struct {
	feed    *live.Feed
	closing <-chan struct{}
	now     func() time.Time
	out     sink
	source  source
	cursor  int64
	buffer  int    // events that may wait for this reader
	told    bool   // that the backlog is behind
	begun   string // id of the answer that was started for this reader
	status  string // that was shown last
	done    map[workspace.RunID]int
	ended   map[workspace.RunID]bool // what was said live of these comes late
}

// endedKept bounds what a long stream remembers.
const endedKept = 64

// errClosing ends streams when the gateway stops.
var errClosing = errors.New("the gateway is stopping")

// run streams the source to its end, or until the reader leaves. It is errClosing when the gateway stops, and
// bus.ErrSlow when the reader fell behind: then it may run again. The subscription comes before the first read, so that
// nothing falls between them.
func (rd *reader) run(ctx context.Context, key string) error {
	sub, snapshot := rd.feed.Watch(key, rd.buffer)
	defer sub.Close()
	rd.begun = "" // the snapshot begins again
	ended, err := rd.catchUp(ctx)
	if err == nil && !ended {
		err = rd.tellCaught()
	}
	for _, l := range snapshot {
		if err == nil && !ended {
			err = rd.live(l)
		}
	}
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		if err == nil {
			err = rd.out.flush()
		}
		if err != nil || ended {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-rd.closing:
			return errClosing
		case <-beat.C:
			err = rd.out.still()
		case l, ok := <-sub.C:
			if !ok {
				return bus.ErrSlow
			}
			ended, err = rd.take(ctx, l, sub)
		}
	}
}

// tellCaught says once that the backlog is behind.
func (rd *reader) tellCaught() error {
	if rd.told {
		return nil
	}
	rd.told = true
	var ses workspace.SessionID
	if src, ok := rd.source.(*sessionSource); ok {
		ses = src.ses.ID
	}
	return rd.out.caught(ses, rd.cursor)
}

// take handles an event and what waits behind it, so that one flush carries them all.
func (rd *reader) take(ctx context.Context, l live.Update, sub *bus.Sub[live.Update]) (ended bool, err error) {
	for range feedBuffer {
		if l.Stored {
			ended, err = rd.catchUp(ctx)
		} else {
			err = rd.live(l)
		}
		if err != nil || ended {
			return ended, err
		}
		select {
		case next, ok := <-sub.C:
			if !ok {
				return false, nil // the next turn of run finds it closed
			}
			l = next
		default:
			return false, nil
		}
	}
	return false, nil
}

// catchUp sends what the record has beyond the cursor.
func (rd *reader) catchUp(ctx context.Context) (bool, error) {
	return rd.source.read(ctx, rd.cursor, func(e workspace.Entry) error {
		rd.cursor = e.N
		if e.Role == workspace.RoleAssistant {
			rd.done[e.RunID] = max(rd.done[e.RunID], e.StepN)
		}
		if e.Body.Type == "turn.ended" {
			delete(rd.done, e.RunID)
			if len(rd.ended) >= endedKept {
				clear(rd.ended)
			}
			rd.ended[e.RunID] = true
		}
		return rd.out.write(view.Stored(e))
	})
}

// live sends what is not stored, unless the record has it by now.
func (rd *reader) live(l live.Update) error {
	if !rd.source.wants(l) || l.Step <= rd.done[l.Run] || rd.ended[l.Run] {
		return nil
	}
	id := view.AnswerID(l.Run, l.Step)
	switch l.Event.Type {
	case agentloop.EventThinking, agentloop.EventWait: // told as often as a model likes, shown once
		status := id + string(l.Event.Type) + l.Event.Note
		if rd.status == status {
			return nil
		}
		rd.status = status
	case agentloop.EventAsk: // what it fails with next is news, in the same words too
		rd.status = ""
	}
	for _, ev := range view.Watched(l, rd.cursor+1, rd.now(), rd.begun == id) {
		if err := rd.out.write(ev); err != nil {
			return err
		}
	}
	if l.Event.Type == agentloop.EventText {
		rd.begun = id
	}
	return nil
}

// turn tells that a generation ended, if there was one, and that the next began.
func (rd *reader) turn(old, new workspace.Session) error {
	ev := func(kind string, ses workspace.Session) view.Event {
		return view.Event{EventID: string(ses.ID) + "." + kind, Sequence: rd.cursor + 1, Time: rd.now().UTC().Truncate(time.Millisecond),
			SessionID: string(ses.ID), Source: "daemon",
			Synthetic: true, Type: "session." + kind, Data: view.SessionData{Key: ses.Key.String(), Generation: ses.Gen}}
	}
	if old.ID != "" {
		if err := rd.out.write(ev("ended", old)); err != nil {
			return err
		}
		rd.cursor = 0
	}
	return rd.out.write(ev("started", new))
}

// tell ends a stream with a reason.
func (rd *reader) tell(code, message string) error {
	ev := view.Event{EventID: code, Sequence: rd.cursor + 1, Time: rd.now().UTC().Truncate(time.Millisecond), Source: "daemon",
		Synthetic: true, Type: "error", Data: view.ErrorData{Code: code, Message: message}}
	if err := rd.out.write(ev); err != nil {
		return err
	}
	return rd.out.flush()
}
