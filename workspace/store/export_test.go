package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Queries are the texts of all statements that the writer and the readers have prepared.
func (s *Store) Queries() ([]string, error) { return s.db.Queries() }

// Plan is SQLite's plan of a query.
func (s *Store) Plan(ctx context.Context, q string) (lines []string, err error) {
	rows, err := s.db.Reader().Piece(ctx, "EXPLAIN QUERY PLAN "+q, make([]any, strings.Count(q, "?"))...)
	for _, row := range rows {
		lines = append(lines, text(row[3]))
	}
	return lines, err
}

// Batch hands units to the writer so that it takes them as one batch; unit i fails when fail holds it. It returns when all
// have been run.
func (s *Store) Batch(n int, fail map[int]error) error {
	open := make(chan struct{})
	s.post("gate", func(*tx) error { <-open; return nil })
	for i := range n {
		s.post("one of many", func(t *tx) error {
			return errors.Join(t.Set("batch", fmt.Sprint(i)), fail[i])
		})
	}
	close(open)
	return s.do("behind them", func(*tx) error { return nil })
}
