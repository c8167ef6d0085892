package channels_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"parley/channels"
)

func TestBackoffDoublesFromBaseToCeilingAndLeavesItsUpperHalfToChance(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		base := time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "base"))
		ceiling := time.Duration(rapid.Int64Range(int64(base), int64(24*time.Hour)).Draw(t, "ceiling"))
		try := rapid.OneOf(rapid.IntRange(0, 20), rapid.IntRange(0, 1<<40)).Draw(t, "try")
		whole := base
		for range min(try, 64) {
			whole = min(2*whole, ceiling)
		}
		for range 10 {
			if wait := channels.Backoff(try, base, ceiling); wait < whole/2 || wait > whole {
				t.Fatalf("try %d from %s to %s waits %s, not %s to %s", try, base, ceiling, wait, whole/2, whole)
			}
		}
	})
}

func TestBackoffOfManyIsSpread(t *testing.T) {
	t.Parallel()
	early, late := 0, 0
	for range 1000 {
		if channels.Backoff(0, time.Minute, time.Hour) < 45*time.Second {
			early++
		} else {
			late++
		}
	}
	if early == 0 || late == 0 { // of fair chance 1 in 2^999
		t.Errorf("%d of 1000 waits lie in the lower half of the range, %d in the upper", early, late)
	}
}
