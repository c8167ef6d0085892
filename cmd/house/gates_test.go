package main

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"testing"
)

// gates are what every package keeps to. A component is a group of files that all need one another.
var gates = map[string]int{"files": 20, "lines": 2500, "fields": 20, "methods": 8, "columns": 0, "component": 12, "knot": 1500}

func gated(f figures) map[string]int {
	return map[string]int{"files": f.files, "lines": f.lines, "fields": f.widestStruct.n, "methods": f.widestInterface.n,
		"columns": f.longLines, "component": f.component, "knot": f.componentLines}
}

// Every package keeps to the gates, or stands in gates.txt with how far it is from them, why, and when it will: it may come
// nearer and no further away.
func TestPackagesKeepToTheGates(t *testing.T) {
	t.Parallel()
	list, err := os.Open("gates.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer list.Close()
	listed := map[string]int{}
	for lines := bufio.NewScanner(list); lines.Scan(); {
		line := lines.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		cells := strings.SplitN(strings.Join(strings.Fields(line), " "), " ", 5)
		if len(cells) < 5 {
			t.Errorf("%q: package, figure, how much, until when, and why", line)
			continue
		}
		n, err := strconv.Atoi(cells[2])
		if _, known := gates[cells[1]]; err != nil || !known {
			t.Errorf("%q names no gate", line)
		}
		listed[cells[0]+" "+cells[1]] = n
	}
	all, err := load("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if len(p.files) == 0 {
			continue
		}
		for figure, n := range gated(measure(p)) {
			what := p.path + " " + figure
			most, excused := listed[what]
			delete(listed, what)
			switch {
			case n <= gates[figure] && excused:
				t.Errorf("%s: %d keeps to the gate of %d: take it out of gates.txt", what, n, gates[figure])
			case n > max(gates[figure], most):
				t.Errorf("%s: %d, at most %d", what, n, max(gates[figure], most))
			}
		}
	}
	for what := range listed {
		t.Errorf("gates.txt names %s, which is not there", what)
	}
}
