package store

import (
	"slices"

	"parley/workspace"
)

// EntriesBefore lists the newest entries of a session that stand before a line, oldest first, at most limit: for a
// reader who goes back.
func (s *Store) EntriesBefore(session workspace.SessionID, before int64, limit int) ([]workspace.Entry, error) {
	list, err := s.entries(`SELECT `+entryRead+` WHERE e.session_id = ? AND e.n < ? ORDER BY e.n DESC LIMIT ?`, string(session), before, limit)
	slices.Reverse(list)
	return list, err
}
