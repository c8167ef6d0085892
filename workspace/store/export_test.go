package store

import (
	"context"
	"strings"
)

// Queries are the texts of all statements that the writer and the readers have prepared.
func (s *Store) Queries() (list []string, err error) {
	err = s.do("queries", func(t *tx) error {
		list = nil
		for q := range t.link.stmts {
			list = append(list, q)
		}
		return nil
	})
	s.texts.Range(func(q, _ any) bool {
		list = append(list, q.(string))
		return true
	})
	return list, err
}

// Plan is SQLite's plan of a query.
func (s *Store) Plan(ctx context.Context, q string) (lines []string, err error) {
	rows, err := s.read.QueryContext(ctx, "EXPLAIN QUERY PLAN "+q, make([]any, strings.Count(q, "?"))...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int
		var line string
		if err := rows.Scan(&id, &parent, &unused, &line); err != nil {
			return nil, err
		}
		lines = append(lines, line)
	}
	return lines, rows.Err()
}

// Batch hands units to the writer so that it takes them as one batch; unit i fails when fail holds it. It returns
// what each was answered.
func (s *Store) Batch(n int, fail map[int]error, run func(i int)) []error {
	open := make(chan struct{})
	s.queue <- &unit{name: "gate", run: func(*tx) error { <-open; return nil }}
	units := make([]*unit, n)
	for i := range units {
		units[i] = &unit{name: "one of many", done: make(chan error, 1), run: func(t *tx) error {
			if _, err := t.exec(`INSERT INTO settings (name, value) VALUES (?, '') ON CONFLICT (name) DO UPDATE SET value = settings.value || '+'`, string(rune('a'+i))); err != nil {
				return err
			}
			run(i)
			return fail[i]
		}}
		s.queue <- units[i]
	}
	close(open)
	out := make([]error, n)
	for i, u := range units {
		out[i] = <-u.done
	}
	return out
}
