// How far people have read.

package store

import (
	"time"

	"parley/workspace"
)

// Read is how far a person has read a session: up to a line of a generation.
type Read struct {
	Gen   int
	N     int64
	Since time.Time // since when marks are kept for the person: what is older counts as read. Zero: there are none yet
}

// Unread says whether there is something behind what was read in a session whose newest line this is.
func (r Read) Unread(gen int, last int64, updated time.Time) bool {
	switch {
	case r.Since.IsZero() || last == 0:
		return false
	case r.Gen == 0:
		return updated.After(r.Since)
	}
	return gen > r.Gen || gen == r.Gen && last > r.N
}

// ReadOf is how far a person has read a session.
func (s *Store) ReadOf(person workspace.PersonID, key workspace.Key) (r Read, err error) {
	err = s.db.Many(`SELECT session_key, gen, n, at FROM reads WHERE person_id = ? AND session_key IN ('', ?)`,
		[]any{string(person), key.String()}, func(scan func(...any) error) error {
			var of string
			var gen int
			var n, at int64
			if err := scan(&of, &gen, &n, &at); err != nil {
				return err
			}
			if of == "" {
				r.Since = fromMillis(at)
			} else {
				r.Gen, r.N = gen, n
			}
			return nil
		})
	return r, err
}

// KeepReads begins to keep marks for a person, whose sessions all count as read so far; again it does nothing.
func (s *Store) KeepReads(person workspace.PersonID) error {
	r, err := s.ReadOf(person, workspace.Key{})
	if err != nil || !r.Since.IsZero() {
		return err
	}
	return s.do("keep reads", func(t *tx) error { return t.keepReads(person) })
}

func (t *tx) keepReads(person workspace.PersonID) error {
	_, err := t.Exec(`INSERT INTO reads (person_id, session_key, at) VALUES (?, '', ?) ON CONFLICT (person_id, session_key) DO NOTHING`,
		string(person), t.Now)
	return err
}

// MarkRead notes how far a person has read a session. A mark never goes back: moved is false where it is as far already.
func (s *Store) MarkRead(person workspace.PersonID, key workspace.Key, gen int, n int64) (moved bool, err error) {
	err = s.do("mark read", func(t *tx) error {
		if err := t.keepReads(person); err != nil {
			return err
		}
		rows, err := t.Exec(`INSERT INTO reads (person_id, session_key, gen, n, at) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (person_id, session_key) DO UPDATE SET gen = excluded.gen, n = excluded.n, at = excluded.at
			WHERE excluded.gen > reads.gen OR excluded.gen = reads.gen AND excluded.n > reads.n`,
			string(person), key.String(), gen, n, t.Now)
		moved = rows > 0
		return err
	})
	return moved, err
}

// joinReads gives one person what another has read as well.
func (t *tx) joinReads(into, from workspace.PersonID) error {
	if _, err := t.Exec(`INSERT INTO reads (person_id, session_key, gen, n, at)
		SELECT ?, r.session_key, r.gen, r.n, r.at FROM reads r WHERE r.person_id = ?
		ON CONFLICT (person_id, session_key) DO UPDATE SET gen = excluded.gen, n = excluded.n, at = excluded.at
		WHERE excluded.gen > reads.gen OR excluded.gen = reads.gen AND excluded.n > reads.n`, string(into), string(from)); err != nil {
		return err
	}
	_, err := t.Exec(`DELETE FROM reads WHERE person_id = ?`, string(from))
	return err
}
