package store_test

import (
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"parley/workspace/store"
	"parley/workspace/storetest"
)

// big tables are read by an index that fits, or by a partial index that holds open rows only.
var whole = regexp.MustCompile(`^SCAN (inputs|i|entries|e|steps|runs|r|outbound|o|parts|approvals)\b`)

// TestSQLitePassesTheSuiteAndNoQueryReadsAWholeTable looks, after the suite, at the plan of each query that it used.
func TestSQLitePassesTheSuiteAndNoQueryReadsAWholeTable(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	seen := map[string]bool{}
	t.Run("suite", func(t *testing.T) {
		storetest.Run(t, func(t testing.TB) *store.Store {
			s := storetest.SQLite(t).Open(t)
			t.Cleanup(func() {
				list, err := s.Queries()
				if errors.Is(err, store.ErrClosed) {
					return
				}
				mu.Lock()
				defer mu.Unlock()
				for _, q := range list {
					seen[q] = true
				}
			})
			return s
		})
	})
	s := storetest.SQLite(t).Open(t)
	for _, q := range slices.Sorted(maps.Keys(seen)) {
		if q == "COMMIT" || q == "ROLLBACK" || strings.HasPrefix(q, "BEGIN") {
			continue
		}
		plan, err := s.Plan(t.Context(), q)
		if err != nil {
			t.Errorf("%s: %v", q, err)
		}
		for _, line := range plan {
			open := strings.Contains(line, "inputs_open") || strings.Contains(line, "parts_open") || strings.Contains(line, "one_live_run") || strings.Contains(line, "approvals_open")
			if whole.MatchString(line) && !open {
				t.Errorf("reads a whole table: %s\n  %s", q, line)
			}
			if strings.Contains(line, "AUTOMATIC") {
				t.Errorf("makes an index for itself: %s\n  %s", q, line)
			}
		}
	}
	if len(seen) < 60 {
		t.Errorf("only %d queries were seen", len(seen))
	}
}
