package configs_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"parley/configs"
)

func TestDiscoveryOrder(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		env    []string
		serves string // the address where somebody answers
		want   string
		asked  int
		known  bool // without asking
	}{
		"nothing":             {want: "offline offline", asked: 3},
		"anthropic first":     {env: []string{"ANTHROPIC_API_KEY=a", "OPENAI_API_KEY=o"}, want: "anthropic claude-sonnet-4-5 https://api.anthropic.com", known: true},
		"openai":              {env: []string{"OPENAI_API_KEY=o", "OPENAI_MODEL=x"}, want: "openai x https://api.openai.com/v1", known: true},
		"openai by its url":   {env: []string{"OPENAI_API_KEY=o", "OPENAI_BASE_URL=https://api.openai.com/v1"}, want: "openai gpt-5-mini https://api.openai.com/v1", known: true},
		"another openai":      {env: []string{"OPENAI_API_KEY=o", "OPENAI_BASE_URL=http://h:1/v1"}, serves: "http://h:1/v1", want: "openai served http://h:1/v1", asked: 1},
		"another, named":      {env: []string{"OPENAI_API_KEY=o", "OPENAI_BASE_URL=http://h:1/v1", "OPENAI_MODEL=mine"}, want: "openai mine http://h:1/v1", known: true},
		"another, silent":     {env: []string{"OPENAI_API_KEY=o", "OPENAI_BASE_URL=http://h:1/v1"}, want: "openai gpt-5-mini http://h:1/v1", asked: 1},
		"empty keys are none": {env: []string{"OPENAI_API_KEY= ", "ANTHROPIC_API_KEY="}, want: "offline offline", asked: 3},
		"base without key":    {env: []string{"OPENAI_BASE_URL=http://h:1/v1"}, serves: "http://h:1/v1", want: "local served http://h:1/v1", asked: 4},
		"ollama":              {serves: "http://127.0.0.1:11434/v1", want: "local served http://127.0.0.1:11434/v1", asked: 3},
		"llama.cpp":           {serves: "http://127.0.0.1:8080/v1", want: "local served http://127.0.0.1:8080/v1", asked: 3},
		"a wanted local one":  {env: []string{"OPENAI_MODEL=second"}, serves: "http://127.0.0.1:8080/v1", want: "local second http://127.0.0.1:8080/v1", asked: 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			asked := 0
			probe := func(_ context.Context, base, _ string) ([]string, error) {
				mu.Lock()
				defer mu.Unlock()
				asked++
				if base != c.serves {
					return nil, errors.New("nobody answers")
				}
				return []string{"text-embedding-nomic", "served", "second"}, nil
			}
			d := configs.Discover(t.Context(), env(c.env...), probe)
			m := d.Model
			if s := strings.TrimSpace(fmt.Sprint(m.Name, " ", m.Model, " ", m.BaseURL)); s != c.want || asked != c.asked {
				t.Errorf("got %s after %d probes, want %s after %d", s, asked, c.want, c.asked)
			}
			if m.Found == "" || m.ContextWindow == 0 || m.API == "" {
				t.Errorf("incomplete: %+v", m)
			}
			found := slices.IndexFunc(d.Looked, func(l configs.Look) bool { return l.Found })
			if len(d.Looked) == 0 || (found < 0) != (m.API == "offline") {
				t.Errorf("looked %+v", d.Looked)
			}
			for _, l := range d.Looked {
				if l.Where == "" || l.Why == "" {
					t.Errorf("a look that tells nothing: %+v", l)
				}
			}
			if known, ok := configs.FromEnv(env(c.env...)); ok != c.known || ok && known.Model != m.Model {
				t.Errorf("without asking: %v, %+v", ok, known)
			}
		})
	}
}

// Servers are asked side by side: each of these answers only when all have been asked.
func TestDiscoveryAsksServersAtOnce(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	all.Add(len(configs.LocalServers()))
	probe := func(context.Context, string, string) ([]string, error) {
		all.Done()
		all.Wait()
		return nil, errors.New("nobody answers")
	}
	if d := configs.Discover(t.Context(), env(), probe); d.Model.API != "offline" {
		t.Errorf("found %+v", d.Model)
	}
}

// TestDiscoveryReadsTheProcess: without a lookup the environment is the process's own.
func TestDiscoveryReadsTheProcess(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "")
	t.Setenv("OPENAI_API_KEY", "o")
	t.Setenv("OPENAI_BASE_URL", "")
	t.Setenv("OPENAI_MODEL", "mine")
	if m, ok := configs.FromEnv(nil); !ok || m.Model != "mine" || m.APIKey.Reveal() != "o" {
		t.Errorf("got %v, %v", m, ok)
	}
}
