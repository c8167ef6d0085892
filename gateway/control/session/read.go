package session

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"parley/gateway/control"
	"parley/gateway/control/view"
	"parley/gateway/spec"
	"parley/workspace"
	"parley/workspace/clip"
)

// Of finds one generation of a key, to be read; an empty id is the newest.
func (c *Sessions) Of(_ context.Context, call control.Call, key control.SessionWord, id string) (workspace.Session, error) {
	if err := c.Allow(call, "session.read"); err != nil {
		return workspace.Session{}, err
	}
	ses, err := c.Find.Session(call, key)
	if err != nil || id == "" || id == string(ses.ID) {
		return ses, err
	}
	old, err := c.Store.Session(workspace.SessionID(id))
	if errors.Is(err, workspace.ErrNotFound) || err == nil && old.Key != ses.Key {
		return workspace.Session{}, workspace.Say(workspace.ErrNotFound, "This session has no generation %q.", clip.Runes(id, 60))
	}
	return old, err
}

// EntriesAfter lists the transcript of one generation after n; ses is what Of found.
func (c *Sessions) EntriesAfter(ses workspace.Session, after int64, limit int) ([]workspace.Entry, error) {
	return c.Store.Entries(ses.ID, after, limit)
}

// Last is the number of the generation's newest line; 0: it has none.
func (c *Sessions) Last(ses workspace.Session) (int64, error) {
	last, err := c.Store.LastEntries(ses.ID, 1)
	if err != nil || len(last) == 0 {
		return 0, err
	}
	return last[0].N, nil
}

// EntriesIn says which events of a session are wanted.
type EntriesIn struct {
	BySession
	After  int64               `query:"after" help:"only events after this *number*" min:"0"`
	Before *int64              `query:"before" help:"only events before this *number*; next goes further back" min:"0"`
	From   workspace.SessionID `query:"session_id" help:"*id* of its generation; left out: the newest"`
	Limit  int                 `query:"limit" help:"how *many* at most" min:"1" max:"500" default:"50"`
}

// ListEntries lists the transcript of a generation as the events that a stream sends, oldest first.
var ListEntries = control.Verb[*Sessions, EntriesIn, spec.List[view.Event]]{
	Name: "session.read", Help: "List stored events of a session", Rights: readSession,
	HTTP: "GET /v1/sessions/{key}/entries", Group: "sessions", MCP: "read_session",
	Do: func(ctx context.Context, c *Sessions, call control.Call, in EntriesIn) (spec.List[view.Event], error) {
		none := spec.List[view.Event]{}
		ses, err := c.Of(ctx, call, in.Session, string(in.From))
		if err != nil {
			return none, err
		}
		var entries []workspace.Entry
		if in.Before != nil {
			entries, err = c.Store.EntriesBefore(ses.ID, *in.Before, in.Limit+1)
			slices.Reverse(entries) // the one too many is the oldest
		} else {
			entries, err = c.Store.Entries(ses.ID, in.After, in.Limit+1)
		}
		if err != nil {
			return none, err
		}
		var events []view.Event
		for _, e := range entries {
			events = append(events, view.Stored(e))
		}
		l := spec.PageOf(events, in.Limit, func(e view.Event) string { return strconv.FormatInt(e.Sequence, 10) })
		if in.Before != nil {
			slices.Reverse(l.Items)
		}
		return l, nil
	},
}
