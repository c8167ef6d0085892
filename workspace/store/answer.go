// Answers to writes of clients that gave a key.

package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"parley/workspace"
	"parley/workspace/store/engine"
)

// Answer is what a client was told of a write that it gave a key.
type Answer struct {
	Hash   string // of what was asked
	Status int
	Body   string // JSON; empty: none
}

// answersKept is how long a key is known.
const answersKept = 30 * 24 * time.Hour

// AnswerOf reads what a person's key was answered; workspace.ErrNotFound: it is new.
func (s *Store) AnswerOf(person workspace.PersonID, key string) (a Answer, err error) {
	var check int64
	err = s.db.One(`SELECT hash, status, body, sum FROM answers WHERE person_id = ? AND key = ?`, []any{string(person), key}, &a.Hash,
		&a.Status, &a.Body, &check)
	if err == nil && engine.Sum(a.Body) != check {
		err = s.db.Seen(fmt.Errorf("answer of key %.40q: %w", key, ErrDamaged))
	}
	return a, err
}

// PutAnswer keeps an answer under its key for 30 days. workspace.ErrConflict: the key has one already.
func (s *Store) PutAnswer(person workspace.PersonID, key string, a Answer) error {
	return s.do("put answer", putAnswer(person, key, a))
}

// PutAnswerSoon is PutAnswer for an act that is done and must not wait for a store that takes nothing: as AuditSoon.
func (s *Store) PutAnswerSoon(ctx context.Context, person workspace.PersonID, key string, a Answer, within time.Duration) error {
	return s.db.DoWithin(ctx, within, "put answer", putAnswer(person, key, a))
}

func putAnswer(person workspace.PersonID, key string, a Answer) unit {
	return func(t *tx) error {
		if _, err := t.Exec(`DELETE FROM answers WHERE created < ?`, t.Now-answersKept.Milliseconds()); err != nil {
			return err
		}
		n, err := t.Exec(`INSERT INTO answers (person_id, key, hash, status, body, sum, created) VALUES (?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (person_id, key) DO NOTHING`, string(person), key, a.Hash, a.Status, a.Body, engine.Sum(a.Body), t.Now)
		if err == nil && n == 0 {
			err = errors.Join(workspace.ErrConflict, errors.New("put answer"))
		}
		return err
	}
}
