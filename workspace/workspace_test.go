package workspace_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"parley/workspace"
)

func TestR10_IDsStayUniqueWhileTheClockJumps(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ids := &workspace.IDs{Now: func() time.Time { return now }}
	seen := map[string]bool{}
	const year = 365 * 24 * time.Hour
	for round, jump := range []time.Duration{0, time.Hour, -2 * time.Hour, time.Hour, 10 * year, -20 * year, 10 * year, -60 * year, time.Millisecond} {
		now = now.Add(jump)
		for range 1000 {
			id := ids.New()
			if _, err := ulid.ParseStrict(id); err != nil || len(id) != 26 {
				t.Fatalf("after jump %d (%v): id %q: %v", round, jump, id, err)
			}
			if seen[id] {
				t.Fatalf("after jump %d (%v): %s came twice", round, jump, id)
			}
			seen[id] = true
		}
	}
}

// The same moment comes back after the clock was set: its ids are new ones all the same.
func TestR10_ARepeatedMillisecondGivesNewIDs(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	now := noon
	ids := &workspace.IDs{Now: func() time.Time { return now }}
	seen := map[string]bool{}
	for i := range 2000 {
		now = noon.Add(time.Duration(i%2) * time.Hour)
		seen[ids.New()] = true
	}
	if len(seen) != 2000 {
		t.Errorf("%d ids of 2000 are different", len(seen))
	}
}

func TestIDsGrowWithinAMillisecondAndOverMany(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ids := &workspace.IDs{Now: func() time.Time { return now }}
	var made []string
	for i := range 300 {
		if i%3 == 0 {
			now = now.Add(time.Millisecond)
		}
		made = append(made, ids.New())
	}
	if !slices.IsSorted(made) {
		t.Error("ids of a steady clock are out of order")
	}
}

func TestIDsAreMadeSideBySide(t *testing.T) {
	t.Parallel()
	ids := &workspace.IDs{Now: time.Now}
	made := make([][]string, 8)
	var wg sync.WaitGroup
	for i := range made {
		wg.Go(func() {
			for range 500 {
				made[i] = append(made[i], ids.New())
			}
		})
	}
	wg.Wait()
	all := slices.Concat(made...)
	slices.Sort(all)
	if n := len(slices.Compact(all)); n != 4000 {
		t.Errorf("%d ids of 4000 are different", n)
	}
}

func TestShortIsTheTailInLowerCase(t *testing.T) {
	t.Parallel()
	for id, want := range map[workspace.RunID]string{
		"01ARZ3NDEKTSV4RRFFQ69G5FAV": "9g5fav", "ABCDEF": "abcdef", "AB": "ab", "": "", "xy-Z_7": "xy-z_7",
	} {
		if got := workspace.Short(id); got != want {
			t.Errorf("%q: %q, want %q", id, got, want)
		}
	}
}

func TestSayKeepsTheCauseAndTheSentenceApart(t *testing.T) {
	t.Parallel()
	cause := fmt.Errorf("open task x: %w", workspace.ErrNotFound)
	err := fmt.Errorf("pause task: %w", workspace.Say(cause, "I can't find a task called %q.", "x"))
	if s, ok := workspace.Sentence(err); !ok || s != `I can't find a task called "x".` {
		t.Errorf("sentence %q, %t", s, ok)
	}
	if !errors.Is(err, workspace.ErrNotFound) || !strings.Contains(err.Error(), "open task x") || strings.Contains(err.Error(), "can't find") {
		t.Errorf("for the operator: %v", err)
	}
	if s, ok := workspace.Sentence(cause); ok || s != "" {
		t.Errorf("an error without a sentence has %q", s)
	}
	if got := workspace.Say(nil, "No.").Error(); got != "No." {
		t.Errorf("a sentence without a cause: %q", got)
	}
}

func TestRolesReachDownwardsOnly(t *testing.T) {
	t.Parallel()
	order := []workspace.Role{workspace.Nobody, workspace.Guest, workspace.Member, workspace.Owner}
	for i, has := range order {
		for j, want := range order {
			if has.AtLeast(want) != (i >= j) {
				t.Errorf("%q at least %q: %t", has, want, i < j)
			}
		}
	}
	if workspace.Role("admin").AtLeast(workspace.Guest) || workspace.Role("Owner").AtLeast(workspace.Guest) {
		t.Error("a role nobody knows reaches something")
	}
}
