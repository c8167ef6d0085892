package session

import (
	"context"
	"errors"

	"parley/gateway/control"
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

// EntriesBefore lists the newest lines of a generation that stand before a line, oldest first.
func (c *Sessions) EntriesBefore(ses workspace.Session, before int64, limit int) ([]workspace.Entry, error) {
	return c.Store.EntriesBefore(ses.ID, before, limit)
}

// Last is the number of the generation's newest line; 0: it has none.
func (c *Sessions) Last(ses workspace.Session) (int64, error) {
	last, err := c.Store.LastEntries(ses.ID, 1)
	if err != nil || len(last) == 0 {
		return 0, err
	}
	return last[0].N, nil
}
