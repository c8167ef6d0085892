package stream

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"parley/gateway/bus"
	"parley/gateway/control"
	"parley/gateway/control/session"
	"parley/gateway/live"
	"parley/workspace"
)

// sessionFrame is a session of any channel that has changed.
type sessionFrame struct {
	Type string       `json:"type"`
	Item session.Item `json:"item"`
}

// sessionsFrame says that more changed than was kept: the list must be read again.
type sessionsFrame struct {
	Type string `json:"type"`
}

// Waiting is how much waits for a person.
type Waiting struct {
	Pairings  int `json:"pairings"`
	Approvals int `json:"approvals"`
	Failing   int `json:"failing"` // runs of theirs that a model fails
}

type needsFrame struct {
	Type string `json:"type"`
	Waiting
}

const (
	changedAfter = 200 * time.Millisecond // how long changes are gathered
	changedMost  = 20                     // sessions told at once; more say "read the list"
	runningEvery = 2 * time.Second        // how often a session that was told as running is looked at again
	needsEvery   = 30 * time.Second       // how often what waits is counted although nothing told to
)

// Watch tells a live line what changes beside the sessions that it follows, until ctx ends: sessions of any channel, and
// what waits for the person.
func (s *Streams) Watch(ctx context.Context, call control.Call, put Put) error {
	if err := s.opt.Look(call); err != nil { // all counts as read until it works
		s.opt.Log.Warn("read marks are not kept yet", "person", call.Actor.Person, "err", err)
	}
	w := &watch{s: s, call: call, put: put, keys: map[string]bool{}, running: map[string]string{}}
	w.sub = s.opt.Feed.Changes(lineBuffer)
	defer func() { w.sub.Close() }()
	if err := w.needs(ctx); err != nil {
		return err
	}
	count, look := time.NewTicker(needsEvery), time.NewTicker(runningEvery)
	defer count.Stop()
	defer look.Stop()
	var due <-chan time.Time
	for {
		if due == nil && (len(w.keys) > 0 || w.lost) {
			due = time.After(changedAfter) // what follows at once, such as the end of a turn, goes along
		}
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.opt.Closing:
			return nil
		case <-count.C:
			err = w.needs(ctx)
		case <-look.C:
			err = w.look(ctx)
		case <-due:
			due = nil
			err = w.tell(ctx)
		case c, ok := <-w.sub.C:
			err = w.take(ctx, c, ok)
		}
		if err != nil {
			return err
		}
	}
}

// watch is one line's view of what changes.
type watch struct {
	s       *Streams
	call    control.Call
	put     Put
	sub     *bus.Sub[live.Change]
	keys    map[string]bool   // changed since it was last told
	running map[string]string // the state of those that were told as not idle
	lost    bool
	last    needsFrame
}

func (w *watch) take(ctx context.Context, c live.Change, ok bool) error {
	switch {
	case !ok: // it fell behind: the list is read again
		w.sub, w.lost = w.s.opt.Feed.Changes(lineBuffer), true
	case c.Needs:
		return w.needs(ctx)
	case c.Person == "" || c.Person == w.call.Actor.Person:
		w.keys[c.Key] = true
	}
	return nil
}

// tell sends what has changed since it was last called.
func (w *watch) tell(ctx context.Context) error {
	keys, lost := slices.Sorted(maps.Keys(w.keys)), w.lost || len(w.keys) > changedMost
	clear(w.keys)
	w.lost = false
	if lost {
		clear(w.running) // the list says it
		return w.put(sessionsFrame{"sessions"})
	}
	for _, key := range keys {
		if err := w.tellOne(ctx, key, true); err != nil {
			return err
		}
	}
	return nil
}

// look tells the end of turns that ended in no line of a transcript.
func (w *watch) look(ctx context.Context) error {
	for _, key := range slices.Sorted(maps.Keys(w.running)) {
		if err := w.tellOne(ctx, key, false); err != nil {
			return err
		}
	}
	return nil
}

// tellOne sends a session as it is now; changed says that this is news even if it does what it did.
func (w *watch) tellOne(ctx context.Context, key string, changed bool) error {
	v, err := w.s.sessions.item(string(w.call.Actor.Person), key, w.s.opt.Now(), func() (session.Item, error) {
		return w.s.opt.Show(ctx, w.call, key)
	})
	if errors.Is(err, workspace.ErrNotFound) {
		delete(w.running, key)
		return nil // nothing of it is stored yet, or it is somebody else's
	}
	if err != nil || !changed && v.State == w.running[key] {
		return err
	}
	if delete(w.running, key); v.State != "idle" {
		w.running[key] = v.State
	}
	return w.put(sessionFrame{"session", v})
}

// needs counts what waits for the person and tells it when it is not what was told last.
func (w *watch) needs(ctx context.Context) error {
	n := needsFrame{Type: "needs"}
	var err error
	if n.Waiting, err = w.s.opt.Needs(w.call); err != nil {
		return err
	}
	if n == w.last {
		return nil
	}
	w.last = n
	return w.put(n)
}
