package price

import (
	"encoding/json"
	"math"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"parley/workspace"
)

func today() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }

func load(t *testing.T, overrides string) *Table {
	t.Helper()
	table, err := Load(strings.NewReader(overrides), today)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

// What Claude Code itself reported for this call.
func TestCostAgreesWithARealBill(t *testing.T) {
	t.Parallel()
	u := workspace.Usage{InputTokens: 240, CacheWriteTokens: 6000, CacheReadTokens: 18000, OutputTokens: 50, Calls: 1}
	usd, ok := load(t, `{}`).Cost("anthropic/claude-opus-4-8", u)
	if !ok || !near(usd, 0.04895) {
		t.Errorf("%v, %v", usd, ok)
	}
}

// The library's own results for all models with tiers or dates and a fifth of the others.
func TestCostAgreesWithTheLibrary(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/crosscheck.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Model string
		At    time.Time
		Usage struct {
			Input  int `json:"input_tokens"`
			Read   int `json:"cache_read_tokens"`
			Write  int `json:"cache_write_tokens"`
			Output int `json:"output_tokens"`
		}
		USD float64
	}
	if err := json.Unmarshal(raw, &cases); err != nil || len(cases) < 300 {
		t.Fatal(len(cases), err)
	}
	prices := map[string]Price{}
	table := load(t, `{}`)
	for _, c := range cases {
		p, ok := prices[c.Model]
		if !ok {
			if p, ok = table.Find(c.Model); !ok {
				t.Errorf("%s is unpriced", c.Model)
				continue
			}
			prices[c.Model] = p
		}
		p.now = func() time.Time { return c.At }
		u := c.Usage // their input holds the cached tokens, ours does not
		got := p.Cost(workspace.Usage{InputTokens: u.Input - u.Read - u.Write, CacheReadTokens: u.Read, CacheWriteTokens: u.Write,
			OutputTokens: u.Output, Calls: 1})
		if !near(got, c.USD) {
			t.Errorf("%s at %s: %v, the library says %v", c.Model, c.At, got, c.USD)
		}
	}
}

func TestEveryProviderCanBeRead(t *testing.T) {
	t.Parallel()
	table := load(t, `{}`)
	if date, source := table.Date(); date == "" || !strings.Contains(source, "MIT") {
		t.Errorf("%q %q", date, source)
	}
	for _, p := range table.providers {
		if _, err := regexp.Compile(p.API); err != nil {
			t.Error(err)
		}
		raw, err := embedded.ReadFile("data/" + p.ID + ".json")
		if err != nil {
			t.Fatal(err)
		}
		var models []model
		if err := json.Unmarshal(raw, &models); err != nil || len(models) == 0 {
			t.Errorf("%s: %d models, %v", p.ID, len(models), err)
		}
		for _, m := range models {
			m.Match.check(t)
		}
	}
}

// check finds what Go cannot match.
func (m match) check(t *testing.T) {
	t.Helper()
	for _, re := range []string{m.Regex, m.NoRegex} {
		if _, err := regexp.Compile(re); err != nil {
			t.Error(err)
		}
	}
	for _, o := range append(m.Or, m.And...) {
		o.check(t)
	}
	if reflect.ValueOf(m).IsZero() {
		t.Error("an empty match")
	}
}

func TestUnknownIsUnpricedAndNotFree(t *testing.T) {
	t.Parallel()
	table := load(t, `{}`)
	for _, ref := range []string{"openai/nothing-9", "localhost:11434/gpt-5", "gpt-5", "", "/", "../index/x", "openai/text-embedding-3-small"} {
		if usd, ok := table.Cost(ref, workspace.Usage{InputTokens: 1e6}); ok {
			t.Errorf("%q costs %v", ref, usd)
		}
	}
	for _, ref := range []string{"openai/gpt-5", "openai/GPT-5-2025-08-07", "mistral/mistral-large-latest", "google/gemini-2.5-flash", "x-ai/grok-4"} {
		if usd, ok := table.Cost(ref, workspace.Usage{InputTokens: 1e6}); !ok || usd <= 0 {
			t.Errorf("%q: %v, %v", ref, usd, ok)
		}
	}
}

func TestRefKnowsProvidersByTheirAddress(t *testing.T) {
	t.Parallel()
	table := load(t, `{}`)
	for base, want := range map[string]string{
		"https://api.openai.com/v1":                               "openai/m",
		"https://api.anthropic.com":                               "anthropic/m",
		"https://openrouter.ai/api/v1":                            "openrouter/m",
		"https://generativelanguage.googleapis.com/v1beta/openai": "google/m",
		"http://localhost:11434/v1":                               "localhost:11434/m",
		"http://evil.example/?https://api.openai.com/v1":          "evil.example/m",
		"": "m",
	} {
		if got := table.Ref(base, "m"); got != want {
			t.Errorf("%q: %q", base, got)
		}
	}
}

func TestOverridesComeFirst(t *testing.T) {
	t.Parallel()
	table := load(t, `{"models":[{"model":"openai/gpt-5","input":1,"output":2},{"model":"llama3","input":0,"output":0,"cache_read":0}]}`)
	if usd, ok := table.Cost("openai/GPT-5", workspace.Usage{InputTokens: 1e6, OutputTokens: 1e6, CacheReadTokens: 1e6}); !ok || usd != 4 {
		t.Errorf("%v, %v", usd, ok)
	}
	if usd, ok := table.Cost("localhost:11434/llama3", workspace.Usage{InputTokens: 1e6}); !ok || usd != 0 {
		t.Errorf("%v, %v", usd, ok)
	}
	for _, bad := range []string{`{"models":[{"model":"x","input":1}]}`, `{"models":[{"input":1,"output":1}]}`, `{"x":1}`, `nonsense`,
		`{"models":[{"model":"x","input":-1,"output":1}]}`, `{"models":[{"model":"x","inputs":1,"output":1}]}`} {
		if _, err := Load(strings.NewReader(bad), today); err == nil {
			t.Errorf("accepted: %s", bad)
		}
	}
	if _, err := Load(nil, today); err != nil {
		t.Error(err)
	}
}

func BenchmarkCost(b *testing.B) {
	table, err := Load(nil, today)
	if err != nil {
		b.Fatal(err)
	}
	p, _ := table.Find("openai/gpt-5")
	for b.Loop() {
		p.Cost(workspace.Usage{InputTokens: 1000, CacheReadTokens: 500, OutputTokens: 100})
	}
}

func BenchmarkLoadAndFind(b *testing.B) {
	for b.Loop() {
		table, err := Load(nil, today)
		if err != nil {
			b.Fatal(err)
		}
		if _, ok := table.Find("openai/gpt-5"); !ok {
			b.Fatal("unpriced")
		}
	}
}
