package approval

import (
	"testing"
	"testing/synctest"
	"time"

	"parley/workspace"
)

// R10: a question stands as long as it may, by the wall clock over a restart and by the steady clock within one, whatever
// the wall clock is set to meanwhile.
func TestR10_AQuestionExpiresInItsTime(t *testing.T) {
	t.Parallel()
	asked := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	ap := workspace.Approval{ID: "A", Created: asked, Expires: asked.Add(30 * time.Minute)}
	for name, c := range map[string]struct{ now, left time.Duration }{
		"at once":              {0, 30 * time.Minute},
		"after a restart":      {20 * time.Minute, 10 * time.Minute},
		"after a long one":     {time.Hour, 0},
		"ten years later":      {10 * 365 * 24 * time.Hour, 0},
		"an hour earlier":      {-time.Hour, 30 * time.Minute},
		"ten years earlier":    {-10 * 365 * 24 * time.Hour, 30 * time.Minute},
		"the very last moment": {30 * time.Minute, 0},
	} {
		if got := remaining(ap, asked.Add(c.now)); got != c.left {
			t.Errorf("%s: %s are left, want %s", name, got, c.left)
		}
	}
	for name, jump := range map[string]time.Duration{"none": 0, "forward": 10 * 365 * 24 * time.Hour, "back": -10 * 365 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				wall := func() time.Time { return time.Now() }
				expired := make(chan time.Duration, 1)
				d := newDeadlines(func() time.Time { return wall() }, func(workspace.ApprovalID) { expired <- time.Since(began) })
				d.watch(workspace.Approval{ID: "A", Created: began, Expires: began.Add(30 * time.Minute)})
				wall = func() time.Time { return time.Now().Add(jump) }
				d.watch(workspace.Approval{ID: "A", Created: began, Expires: began.Add(30 * time.Minute)}) // seen again: nothing changes
				soon := time.NewTimer(30*time.Minute - time.Second)
				<-soon.C
				if d.over("A") || len(expired) > 0 {
					t.Error("it expired too soon")
				}
				if got := <-expired; got != 30*time.Minute {
					t.Errorf("it expired after %s", got)
				}
				if !d.over("A") {
					t.Error("it can still be answered")
				}
				d.watch(workspace.Approval{ID: "B", Created: wall(), Expires: wall().Add(time.Hour)})
				d.stop()
				d.watch(workspace.Approval{ID: "C"})
				if len(expired) > 0 || d.due["C"] != nil {
					t.Error("something expires after the end")
				}
			})
		})
	}
}
