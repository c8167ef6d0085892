package openai

import (
	"regexp"
	"testing"

	"parley/agentloop/llm"
	"parley/agentloop/llm/llmtest"
)

var effortSent = regexp.MustCompile(`"reasoning_effort":"(\w+)"`)

// server refuses levels as OpenAI's models do that lack some of them.
func server(lacks map[string]bool, field string) (script llmtest.Script, sent *[]string) {
	sent = new([]string)
	return func(r *llmtest.Request) llmtest.Reply {
		level := ""
		if m := effortSent.FindSubmatch(r.Body); m != nil {
			level = string(m[1])
		}
		*sent = append(*sent, level)
		switch {
		case level != "" && field != "":
			return llmtest.Reply{Status: 400, ErrorBody: `{"error":{"message":"` + field + `"}}`}
		case lacks[level]:
			return llmtest.Reply{Status: 400, ErrorBody: `{"error":{"message":"Unsupported value: 'reasoning_effort' does not support '` + level + `' with this model."}}`}
		}
		return llmtest.Reply{Text: "fine"}
	}, sent
}

func TestALevelOfThinkingIsAsNearAsTheServerHasIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		level  string
		lacks  map[string]bool
		field  string
		want   string // the last that is sent; empty: none
		tries  int
		thinks llm.Knowledge
	}{
		"as it is":        {"high", nil, "", "high", 1, llm.Unknown},
		"off":             {"off", nil, "", "none", 1, llm.Unknown},
		"off, no none":    {"off", map[string]bool{"none": true}, "", "minimal", 2, llm.Unknown},
		"off, low only":   {"off", map[string]bool{"none": true, "minimal": true}, "", "low", 3, llm.Unknown},
		"no xhigh":        {"xhigh", map[string]bool{"xhigh": true}, "", "high", 2, llm.Unknown},
		"not that either": {"high", map[string]bool{"high": true}, "", "", 2, llm.No},
		"no such field":   {"low", nil, "Unrecognized request argument supplied: reasoning_effort", "", 2, llm.No},
		"none was asked":  {"", nil, "Unsupported parameter: reasoning_effort", "", 1, llm.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script, sent := server(c.lacks, c.field)
			_, m := serve(t, script)
			for range 2 { // what was learnt is not tried again
				if r, err := m.Stream(t.Context(), llm.Request{Think: c.level, Messages: []llm.Message{llmtest.User("hi")}}, nil); err != nil || r.Content[0].Text != "fine" {
					t.Fatalf("%+v, %v", r, err)
				}
			}
			if got := *sent; len(got) != c.tries+1 || got[len(got)-1] != c.want || got[len(got)-2] != c.want {
				t.Errorf("sent %q, want %d and %q", got, c.tries+1, c.want)
			}
			if got := m.Info().Thinks; got != c.thinks {
				t.Errorf("thinks: %q, want %q", got, c.thinks)
			}
		})
	}
}

func TestNamesTellWhoThinks(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]llm.Knowledge{"o3-mini": llm.Yes, "gpt-5.2": llm.Yes, "openai/gpt-5": llm.Yes, "gpt-4o": llm.No, "gpt-4.1-mini": llm.No,
		"openai/gpt-3.5-turbo": llm.No, "llama3.1": llm.Unknown, "moonshot": llm.Unknown} {
		if got := (&Model{o: Options{Model: name}}).thinks(); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
