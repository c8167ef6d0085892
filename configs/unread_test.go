package configs

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestUnreadKeysWarnWhereTheyAreWritten(t *testing.T) {
	t.Parallel()
	const text = `data_dir: /x
budgets: [{scope: person, usd_per_day: 2}]
agents:
  - id: a
    heartbeat: {every: 1h}
    roles: {strong: m, summarizer: m}
    may: {tasks: true}
models: [{name: m, api: offline}]
retention: {runs: 10d}
`
	env := func(name string) (string, bool) {
		v, ok := map[string]string{"PARLEY_RETENTION_TRANSCRIPTS": "30d"}[name]
		return v, ok
	}
	c, err := Parse([]byte(text), LoadOptions{Env: env})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range c.Warnings(func(ExecRule) string { return "" }) {
		if !strings.HasPrefix(p.Text, "is accepted, but nothing reads it yet: ") {
			t.Errorf("%v", p)
		}
		got = append(got, fmt.Sprint(p.Path, " ", p.Line, p.Env))
	}
	if want := []string{"budgets 2", "agents[0].heartbeat 5", "agents[0].roles.strong 6", "agents[0].may.tasks 7", "retention 9", "retention.transcripts 0PARLEY_RETENTION_TRANSCRIPTS"}; !slices.Equal(got, want) {
		t.Errorf("warned of %q, want %q", got, want)
	}
	c, err = Parse([]byte("data_dir: /x\n"), LoadOptions{Env: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	if w := c.Warnings(func(ExecRule) string { return "" }); len(w) > 0 {
		t.Errorf("defaults warn: %v", w)
	}
}
