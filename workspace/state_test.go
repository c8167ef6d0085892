package workspace_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"parley/workspace"
)

// The edges as the design draws them, written a second time by hand: "-" is what is not yet stored.
const (
	drawnInputs = `
- refused context noted queued taken
queued taken answered failed cancelled dropped stale
taken answered silent failed stopped queued
stale queued
refused
context
noted
answered
silent
failed
stopped
cancelled
dropped`

	drawnRuns = `
- pending running
pending queued starting failed user_stopped
queued starting failed user_stopped
starting running failed user_stopped
running completed failed timeout user_stopped waiting paused
waiting running failed user_stopped
paused running failed user_stopped
completed
failed
timeout
user_stopped`

	drawnSteps = `
- done planned
planned started refused cancelled
started done failed unknown
done
failed
unknown
refused
cancelled`

	drawnParts = `
- ready sending
ready sending dead cancelled parked
sending live sent ready unknown dead cancelled parked
live sent dead cancelled parked
unknown sent ready dead cancelled parked
parked ready cancelled
dead ready
sent
cancelled`

	drawnApprovals = `
- pending
pending approved denied expired cancelled
approved consumed cancelled
consumed
denied
expired
cancelled`
)

func TestStatesFollowTheDrawnEdgesOnly(t *testing.T) {
	t.Parallel()
	t.Run("inputs", func(t *testing.T) { t.Parallel(); edges(t, workspace.Inputs, drawnInputs) })
	t.Run("runs", func(t *testing.T) { t.Parallel(); edges(t, workspace.Runs, drawnRuns) })
	t.Run("steps", func(t *testing.T) { t.Parallel(); edges(t, workspace.Steps, drawnSteps) })
	t.Run("parts", func(t *testing.T) { t.Parallel(); edges(t, workspace.Parts, drawnParts) })
	t.Run("approvals", func(t *testing.T) { t.Parallel(); edges(t, workspace.Approvals, drawnApprovals) })
}

// edges asks a table for every pair of its states: each drawn edge can be gone, and no other; each state can be
// reached from the beginning; the final ones are those that nothing follows.
func edges[S ~string](t *testing.T, table workspace.Table[S], drawing string) {
	drawn := map[S][]S{}
	for line := range strings.Lines(strings.TrimSpace(drawing)) {
		var states []S
		for _, word := range strings.Fields(line) {
			states = append(states, S(strings.TrimPrefix(word, "-")))
		}
		drawn[states[0]] = states[1:]
	}
	reached := map[S]bool{"": true}
	for frontier := []S{""}; len(frontier) > 0; frontier = frontier[1:] {
		for to := range drawn {
			if table.Can(frontier[0], to) && !reached[to] {
				reached[to] = true
				frontier = append(frontier, to)
			}
		}
	}
	all := append(slices.Collect(maps.Keys(drawn)), "no such state")
	for _, from := range all {
		for _, to := range all {
			if want := slices.Contains(drawn[from], to); table.Can(from, to) != want {
				t.Errorf("%q -> %q: can is %t, drawn is %t", from, to, !want, want)
			}
		}
		if want := len(drawn[from]) == 0; table.Final(from) != want {
			t.Errorf("%q: final is %t", from, !want)
		}
		if known := from != "no such state"; reached[from] != known {
			t.Errorf("%q: reached is %t", from, !known)
		}
	}
	for from, tos := range table { // nothing in the table that the drawing has never heard of
		for _, s := range append(tos, from) {
			if _, known := drawn[s]; !known {
				t.Errorf("%q is not drawn", s)
			}
		}
		if seen := slices.Compact(slices.Sorted(slices.Values(tos))); len(seen) != len(tos) {
			t.Errorf("%q lists an edge twice: %v", from, tos)
		}
	}
}

// A failure and a stop must be possible at any moment of a run's life.
func TestEveryRunThatGoesOnCanFailOrBeStopped(t *testing.T) {
	t.Parallel()
	for s := range workspace.Runs {
		if s == "" {
			continue
		}
		if !workspace.Runs.Can(s, workspace.RunFailed) || !workspace.Runs.Can(s, workspace.RunStopped) {
			t.Errorf("%s cannot fail, or cannot be stopped", s)
		}
	}
}

func TestLiveRunsHoldTheirSession(t *testing.T) {
	t.Parallel()
	for s, want := range map[workspace.RunState]bool{
		workspace.RunRunning: true, workspace.RunWaiting: true, workspace.RunPaused: true,
		"": false, workspace.RunPending: false, workspace.RunQueued: false, workspace.RunStarting: false,
		workspace.RunCompleted: false, workspace.RunFailed: false, workspace.RunTimeout: false, workspace.RunStopped: false,
	} {
		if s.Live() != want {
			t.Errorf("%q: live is %t", s, !want)
		}
	}
}
