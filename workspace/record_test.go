package workspace_test

import (
	"encoding/json"
	"math"
	"testing"

	"pgregory.net/rapid"

	"parley/workspace"
)

func usd(v float64) *float64 { return &v }

func TestUnpricedPartMakesTheSumUnpriced(t *testing.T) {
	t.Parallel()
	none := workspace.Usage{}
	priced := workspace.Usage{Calls: 1, InputTokens: 10, OutputTokens: 2, CostUSD: usd(0.25)}
	unpriced := workspace.Usage{Calls: 1, InputTokens: 5}
	for _, c := range []struct {
		name string
		a, b workspace.Usage
		want *float64
	}{
		{"nothing and nothing", none, none, nil},
		{"nothing and priced", none, priced, usd(0.25)},
		{"priced and nothing", priced, none, usd(0.25)},
		{"priced twice", priced, priced, usd(0.5)},
		{"priced and unpriced", priced, unpriced, nil},
		{"unpriced and priced", unpriced, priced, nil},
		{"unpriced and nothing", unpriced, none, nil},
	} {
		got := c.a.Add(c.b).CostUSD
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	before := *priced.CostUSD
	priced.Add(priced)
	if *priced.CostUSD != before {
		t.Error("adding changed what was added")
	}
}

func drawUsage(t *rapid.T, label string) workspace.Usage {
	n := rapid.IntRange(0, 1000)
	u := workspace.Usage{Calls: rapid.IntRange(0, 3).Draw(t, label+" calls")}
	if u.Calls == 0 {
		return u
	}
	u.InputTokens, u.OutputTokens = n.Draw(t, label+" in"), n.Draw(t, label+" out")
	u.CacheReadTokens, u.CacheWriteTokens = n.Draw(t, label+" read"), n.Draw(t, label+" write")
	u.DurationMS = int64(n.Draw(t, label+" ms"))
	if rapid.Bool().Draw(t, label+" priced") {
		u.CostUSD = usd(float64(n.Draw(t, label+" cost")) / 64)
	}
	return u
}

func sameUsage(a, b workspace.Usage) bool {
	if (a.CostUSD == nil) != (b.CostUSD == nil) || a.CostUSD != nil && math.Abs(*a.CostUSD-*b.CostUSD) > 1e-9 {
		return false
	}
	a.CostUSD, b.CostUSD = nil, nil
	return a == b
}

// The order in which calls are summed up must not show in the bill.
func TestUsageSumsInAnyOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := drawUsage(t, "a"), drawUsage(t, "b"), drawUsage(t, "c")
		if !sameUsage(a.Add(b), b.Add(a)) {
			t.Errorf("%+v + %+v depends on the order", a, b)
		}
		if !sameUsage(a.Add(b).Add(c), a.Add(b.Add(c))) {
			t.Errorf("%+v + %+v + %+v depends on the grouping", a, b, c)
		}
		if sum := a.Add(b); sum.InputTokens != a.InputTokens+b.InputTokens || sum.OutputTokens != a.OutputTokens+b.OutputTokens ||
			sum.CacheReadTokens != a.CacheReadTokens+b.CacheReadTokens || sum.CacheWriteTokens != a.CacheWriteTokens+b.CacheWriteTokens ||
			sum.Calls != a.Calls+b.Calls || sum.DurationMS != a.DurationMS+b.DurationMS {
			t.Errorf("%+v + %+v is %+v", a, b, sum)
		}
	})
}

func TestUsageIsShownWithItsContractNames(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal(workspace.Usage{InputTokens: 1, OutputTokens: 2, CacheReadTokens: 3, CacheWriteTokens: 4, Calls: 5, DurationMS: 6})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"inputTokens":1,"outputTokens":2,"cacheReadTokens":3,"cacheWriteTokens":4,"calls":5,"totalCostUsd":null,"durationMs":6}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestPlainTextLeavesOutWhatIsNotText(t *testing.T) {
	t.Parallel()
	body := workspace.EntryBody{Content: []workspace.Content{
		{Kind: workspace.Text, Text: "one "}, {Kind: workspace.Reasoning, Text: "secret"},
		{Kind: workspace.ToolCall, Name: "exec", Text: "x"}, {Kind: workspace.Text, Text: "two"},
	}}
	if got := body.Plain(); got != "one two" {
		t.Errorf("got %q", got)
	}
	if got := (workspace.EntryBody{}).Plain(); got != "" {
		t.Errorf("of nothing: %q", got)
	}
}
