// Which kept files the rows name.

package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"parley/workspace/lazy"
	"parley/workspace/store/engine"
)

// BlobRefs lists the kept files that rows name: uploads, parts, and what transcripts and steps carry. It reads all of
// them, behind whoever else wants the processor or the disk.
func (s *Store) BlobRefs(ctx context.Context) (list []string, err error) {
	err = s.db.ReadBehind(func(r *engine.Reader) (err error) {
		list, err = blobRefs(ctx, r)
		return err
	})
	return list, err
}

// BlobRefsIn is BlobRefs of a data directory that no gateway has open.
func BlobRefsIn(ctx context.Context, dir string) ([]string, error) {
	r, err := engine.OpenDir(ctx, dir)
	if err != nil || r.Empty() {
		return nil, err
	}
	defer r.Close()
	list, err := blobRefs(ctx, r)
	return list, r.Damage(err)
}

var (
	blobInBody = lazy.Regexp(`"blob":"([0-9a-f]{64})"`)
	blobRef    = lazy.Regexp(`^[0-9a-f]{64}$`)
)

func blobRefs(ctx context.Context, r *engine.Reader) ([]string, error) {
	refs := map[string]bool{}
	for _, from := range []struct{ table, keys, column string }{
		{"uploads", "ref, person_id", "ref"},
		{"parts", "outbound_id, n", "blob"},
		{"entries", "session_id, n", "body"},
		{"steps", "run_id, n", "body"},
	} {
		at, where := make([]any, 2), ""
		for {
			q := fmt.Sprintf(`SELECT %s, CASE WHEN %s LIKE '%%"blob":"%%' OR LENGTH(%s) = 64 THEN %s ELSE '' END FROM %s%s ORDER BY %s LIMIT %d`,
				from.keys, from.column, from.column, from.column, from.table, where, from.keys, engine.PieceRows)
			rows, err := r.Piece(ctx, q, at[:strings.Count(where, "?")]...)
			if err != nil {
				return nil, fmt.Errorf("kept files of %s: %w", from.table, err)
			}
			for _, row := range rows {
				if value := text(row[2]); blobRef().MatchString(value) {
					refs[value] = true
				} else {
					for _, m := range blobInBody().FindAllStringSubmatch(value, -1) {
						refs[m[1]] = true
					}
				}
				copy(at, row[:2])
			}
			if len(rows) < engine.PieceRows {
				break
			}
			where = ` WHERE (` + from.keys + `) > (?, ?)`
		}
	}
	list := make([]string, 0, len(refs))
	for ref := range refs {
		list = append(list, ref)
	}
	slices.Sort(list)
	return list, nil
}
