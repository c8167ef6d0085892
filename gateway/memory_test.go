package gateway

import (
	"testing"
	"time"
)

// TestQuietIsToldOnceUntilThereIsWorkAgain: memory is given back after a burst, and not again and again.
func TestQuietIsToldOnceUntilThereIsWorkAgain(t *testing.T) {
	t.Parallel()
	var q quiet
	begin := time.Unix(1_700_000_000, 0)
	for i, row := range []struct {
		after     time.Duration
		allocated uint64
		want      bool
	}{
		{0, 50 << 20, false},
		{quietFor - time.Millisecond, 51 << 20, false},
		{quietFor, 51 << 20, true},
		{2 * quietFor, 52 << 20, false},
		{2*quietFor + time.Second, 60 << 20, false},
		{3*quietFor + time.Millisecond, 70 << 20, false}, // busy all the time
		{4 * quietFor, 70 << 20, false},
		{4*quietFor + 2*time.Millisecond, 70 << 20, true},
	} {
		if got := q.begins(begin.Add(row.after), row.allocated); got != row.want {
			t.Errorf("%d: after %s with %d MiB: %t", i, row.after, row.allocated>>20, got)
		}
	}
}
