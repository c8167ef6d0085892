package configs_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

func TestDiscoveryOrder(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		env    []string
		serves string // the address where somebody answers
		want   string
		asked  int
	}{
		"nothing":             {want: "offline offline", asked: 3},
		"anthropic first":     {env: []string{"ANTHROPIC_API_KEY=a", "OPENAI_API_KEY=o"}, want: "anthropic claude-sonnet-4-5 https://api.anthropic.com, openai gpt-5-mini https://api.openai.com/v1, offline offline"},
		"openai":              {env: []string{"OPENAI_API_KEY=o", "OPENAI_MODEL=x"}, want: "openai x https://api.openai.com/v1, offline offline"},
		"another openai":      {env: []string{"OPENAI_API_KEY=o", "OPENAI_BASE_URL=http://h:1/v1"}, serves: "http://h:1/v1", want: "openai served http://h:1/v1, offline offline", asked: 1},
		"another, silent":     {env: []string{"OPENAI_API_KEY=o", "OPENAI_BASE_URL=http://h:1/v1"}, want: "openai gpt-5-mini http://h:1/v1, offline offline", asked: 1},
		"empty keys are none": {env: []string{"OPENAI_API_KEY= ", "ANTHROPIC_API_KEY="}, want: "offline offline", asked: 3},
		"base without key":    {env: []string{"OPENAI_BASE_URL=http://h:1/v1"}, want: "offline offline", asked: 3},
		"ollama":              {serves: "http://127.0.0.1:11434/v1", want: "local served http://127.0.0.1:11434/v1, offline offline", asked: 1},
		"llama.cpp":           {serves: "http://127.0.0.1:8080/v1", want: "local served http://127.0.0.1:8080/v1, offline offline", asked: 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := 0
			probe := func(_ context.Context, base string) (string, bool) {
				asked++
				if base != c.serves {
					return "", false
				}
				return "served", true
			}
			var got []string
			for _, m := range mustParse(t, "").Discover(t.Context(), env(c.env...), probe) {
				got = append(got, strings.TrimSpace(fmt.Sprint(m.Name, " ", m.Model, " ", m.BaseURL)))
				if m.Found == "" || m.ContextWindow == 0 || m.API == "" {
					t.Errorf("incomplete: %+v", m)
				}
			}
			if s := strings.Join(got, ", "); s != c.want || asked != c.asked {
				t.Errorf("got %s after %d probes, want %s after %d", s, asked, c.want, c.asked)
			}
		})
	}
}

// TestDiscoveryReadsTheProcess: without a lookup the environment is the process's own.
func TestDiscoveryReadsTheProcess(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "")
	t.Setenv("OPENAI_API_KEY", "o")
	t.Setenv("OPENAI_BASE_URL", "")
	t.Setenv("OPENAI_MODEL", "mine")
	if got := mustParse(t, "").Discover(t.Context(), nil, nil); len(got) != 2 || got[0].Model != "mine" || got[0].APIKey.Reveal() != "o" {
		t.Errorf("got %v", got)
	}
}

func TestDiscoveryIsForNoModelsOnly(t *testing.T) {
	t.Parallel()
	c := mustParse(t, "models: [{name: m, api: offline}]")
	if got := c.Discover(t.Context(), env("OPENAI_API_KEY=o"), nil); got != nil {
		t.Errorf("got %v", got)
	}
	if got := mustParse(t, "").Discover(t.Context(), env(), nil); len(got) != 1 || got[0].API != "offline" {
		t.Errorf("got %v", got)
	}
}
