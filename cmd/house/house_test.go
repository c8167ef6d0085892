package main

import (
	"slices"
	"strings"
	"testing"
)

func graphOf(n int, arrows ...[2]int) *graph {
	g := newGraph(n)
	for _, a := range arrows {
		g.add(a[0], a[1])
	}
	return g
}

func TestGraph(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		g               *graph
		back, component int
	}{
		"a chain":               {graphOf(4, [2]int{0, 1}, [2]int{1, 2}, [2]int{2, 3}), 0, 1},
		"a diamond":             {graphOf(4, [2]int{0, 1}, [2]int{0, 2}, [2]int{1, 3}, [2]int{2, 3}), 0, 1},
		"two that need another": {graphOf(3, [2]int{0, 1}, [2]int{1, 0}, [2]int{1, 2}), 1, 2},
		"a ring":                {graphOf(4, [2]int{0, 1}, [2]int{1, 2}, [2]int{2, 3}, [2]int{3, 0}), 1, 4},
		"two rings that touch":  {graphOf(5, [2]int{0, 1}, [2]int{1, 0}, [2]int{1, 2}, [2]int{2, 3}, [2]int{3, 4}, [2]int{4, 2}), 2, 3},
	} {
		largest := 0
		for _, group := range c.g.components() {
			largest = max(largest, len(group))
		}
		if got := c.g.backArrows(); got != c.back || largest != c.component {
			t.Errorf("%s: %d arrows back and a component of %d, want %d and %d", name, got, largest, c.back, c.component)
		}
		order := c.g.order()
		slices.Sort(order)
		if order = slices.Compact(order); len(order) != len(c.g.out) {
			t.Errorf("%s: the order has %d nodes of %d", name, len(order), len(c.g.out))
		}
	}
}

func TestPatterns(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		"gateway/... gateway": true, "gateway/... gateway/api": true, "gateway/... gatewayx": false, "gateway gateway/api": false, "... routes": true, "./routes routes": true,
	} {
		pattern, path, _ := strings.Cut(line, " ")
		if fits(pattern, path) != want {
			t.Errorf("%q fits %q: %v, want %v", pattern, path, !want, want)
		}
	}
}
