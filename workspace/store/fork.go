// Forks: a generation that begins with a copy of another.

package store

import (
	"fmt"
	"slices"

	"parley/workspace"
)

// Fork begins a new generation of a key with a copy of what stands before entry Before of another one. Make it with
// Store.Fork, which reads the copy.
type Fork struct {
	Key     workspace.Key
	Session workspace.SessionID // the newest generation
	From    workspace.SessionID // the one that is copied
	Before  int64
	Origin  string // as Create's

	lines     []workspace.Entry
	compacted int64
}

// Fork reads what a fork copies: everything before the entry numbered before, without the beginning of a turn that
// would have nothing in it. It is stored as a Change. It returns workspace.ErrNotFound when the
// transcript does not reach that far.
func (s *Store) Fork(key workspace.Key, session workspace.SessionID, before int64, origin string) (*Fork, error) {
	f := &Fork{Key: key, Session: session, From: session, Before: before, Origin: origin}
	last, err := s.LastEntries(session, 1)
	if err != nil {
		return nil, err
	}
	if before < 1 || len(last) == 0 && before > 1 || len(last) == 1 && before > last[0].N+1 {
		return nil, fmt.Errorf("fork before entry %d: %w", before, workspace.ErrNotFound)
	}
	for len(f.lines) < int(before-1) {
		list, err := s.Entries(session, int64(len(f.lines)), int(min(before-1-int64(len(f.lines)), 1000)))
		if err != nil {
			return nil, err
		}
		if len(list) == 0 {
			return nil, s.db.Seen(fmt.Errorf("session %s ends at entry %d: %w", session, len(f.lines), ErrDamaged))
		}
		f.lines = append(f.lines, list...)
	}
	f.lines = whole(f.lines)
	for i := range f.lines {
		e := &f.lines[i]
		e.InputID, e.Body.Usage = "", nil // each input has one entry, and what was spent is spent once; the copy holds the text
		if e.Role == workspace.RoleEvent && e.Body.Type == workspace.EventCompacted {
			f.compacted = e.N
		}
	}
	return f, nil
}

// whole drops the beginning of a turn at the end of a copy, and ends one that was cut in the middle.
func whole(lines []workspace.Entry) []workspace.Entry {
	started := func(e workspace.Entry) bool { return e.Role == workspace.RoleEvent && e.Body.Type == "turn.started" }
	for len(lines) > 0 && started(lines[len(lines)-1]) {
		lines = lines[:len(lines)-1]
	}
	for i := len(lines) - 1; i >= 0; i-- {
		e := lines[i]
		if e.Role == workspace.RoleEvent && e.Body.Type == "turn.ended" {
			break
		}
		if started(e) {
			end := workspace.Entry{N: int64(len(lines)) + 1, RunID: e.RunID, Role: workspace.RoleEvent, At: lines[len(lines)-1].At,
				Body: workspace.EntryBody{Type: "turn.ended", Reason: endReason(workspace.RunStopped, "forked")}}
			return append(slices.Clip(lines), end)
		}
	}
	return lines
}

func (f Fork) origin() string { return f.Origin }

func (f Fork) apply(t *tx, did *Did) error {
	old, err := t.newest(f.Key, f.Session)
	if err != nil {
		return err
	}
	next, err := t.nextGeneration(f.Key, old, f.Origin)
	if err != nil {
		return err
	}
	did.Session, did.next = next.id, next.id
	if err := t.One("note the fork", `UPDATE sessions SET forked_from = ?, forked_before = ? WHERE id = ?`, string(f.From), f.Before,
		string(next.id)); err != nil {
		return err
	}
	if f.compacted > 0 {
		if err := t.One("keep the summary", `UPDATE sessions SET compacted = ? WHERE id = ?`, f.compacted, string(next.id)); err != nil {
			return err
		}
	}
	return t.copyEntries(next.id, f.lines)
}
