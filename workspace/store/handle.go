package store

import (
	"errors"

	"parley/workspace"
)

// InputHandle is what the answer to an input may go through, as channels.ReplyHandle packs it; empty: nothing. It is a
// secret, so that it is in no other reader.
func (s *Store) InputHandle(id workspace.InputID) (packed string, err error) {
	err = s.db.One(`SELECT handle FROM inputs WHERE id = ?`, []any{string(id)}, &packed)
	if errors.Is(err, workspace.ErrNotFound) {
		return "", nil
	}
	return packed, err
}
