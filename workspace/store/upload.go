// Files that people uploaded.

package store

import (
	"fmt"
	"time"

	"parley/workspace"
	"parley/workspace/store/engine"
)

// AddUpload notes a file that a person uploaded, whose blob is durable already. The same file again is the same upload,
// under its newest name. More than most bytes of one person since the given time are workspace.ErrConflict.
func (s *Store) AddUpload(u workspace.Upload, since time.Time, most int64) error {
	return s.do("add upload", func(t *tx) error {
		var sum int64
		if err := t.Row(`SELECT CAST(COALESCE(SUM(size), 0) AS INTEGER) FROM uploads WHERE person_id = ? AND created >= ? AND ref <> ?`,
			[]any{string(u.Person), millis(since), u.Ref}, &sum); err != nil {
			return err
		}
		if sum+u.Size > most {
			return fmt.Errorf("uploads of %s: %d bytes and %d more: %w", u.Person, sum, u.Size, workspace.ErrConflict)
		}
		_, err := t.Exec(`INSERT INTO uploads (ref, person_id, kind, name, mime, size, created) VALUES (?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (ref, person_id) DO UPDATE SET kind = excluded.kind, name = excluded.name, created = excluded.created`,
			u.Ref, string(u.Person), engine.Clean(u.Kind), engine.Clean(u.Name), engine.Clean(u.MIME), u.Size, millis(u.Created))
		return err
	})
}

// UploadedSince is how many bytes a person has uploaded since then.
func (s *Store) UploadedSince(p workspace.PersonID, since time.Time) (sum int64, err error) {
	err = s.db.One(`SELECT CAST(COALESCE(SUM(size), 0) AS INTEGER) FROM uploads WHERE person_id = ? AND created >= ?`,
		[]any{string(p), millis(since)}, &sum)
	return sum, err
}

// Upload finds a person's file.
func (s *Store) Upload(p workspace.PersonID, ref string) (u workspace.Upload, err error) {
	var created int64
	err = s.db.One(`SELECT ref, person_id, kind, name, mime, size, created FROM uploads WHERE ref = ? AND person_id = ?`,
		[]any{ref, string(p)}, &u.Ref, &u.Person, &u.Kind, &u.Name, &u.MIME, &u.Size, &created)
	u.Created = fromMillis(created)
	return u, err
}
