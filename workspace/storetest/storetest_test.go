package storetest

import (
	"testing"

	"parley/workspace/store"
)

func TestSQLitePassesTheSuite(t *testing.T) {
	t.Parallel()
	Run(t, func(t testing.TB) *store.Store { return SQLite(t).Open(t) })
}

func TestPostgresPassesTheSuite(t *testing.T) {
	t.Parallel()
	Postgres(t) // skips or fails once, aloud
	Run(t, func(t testing.TB) *store.Store { return Postgres(t).Open(t) })
}
