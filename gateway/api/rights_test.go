package api_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"parley/gateway/api"
)

// Every endpoint stands in docs/rights.md with what nobody may do there, and every way of the table below /v1 is one.
func TestEndpointsAreThoseOfTheRightsTable(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/rights.md")
	if err != nil {
		t.Fatal(err)
	}
	nobody := map[string]string{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 6 {
			continue
		}
		for i, way := range strings.Split(cells[1], "`") {
			if i%2 == 1 {
				nobody[way] = strings.TrimSpace(cells[5])
			}
		}
	}
	var have []string
	for _, rt := range api.Routes() {
		way := strings.NewReplacer("{", "<", "}", ">").Replace(rt.Pattern)
		have = append(have, way)
		switch what, ok := nobody[way]; {
		case !ok:
			t.Errorf("%s has no row", way)
		case rt.Open != (what == "yes"):
			t.Errorf("%s: open is %v, the table says %q to nobody", way, rt.Open, what)
		}
	}
	for way := range nobody {
		if strings.Contains(way, " /v1/") && !slices.Contains(have, way) {
			t.Errorf("the table names %s, which is not an endpoint", way)
		}
	}
}
