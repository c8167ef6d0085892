package anthropic

import (
	"encoding/json"
	"testing"

	"parley/agentloop/llm"
	"parley/agentloop/llm/llmtest"
)

// thought is what a request says of thinking.
type thought struct {
	MaxTokens int `json:"max_tokens"`
	Thinking  *struct {
		Type   string `json:"type"`
		Budget int    `json:"budget_tokens"`
	} `json:"thinking"`
	Output *struct {
		Effort string `json:"effort"`
	} `json:"output_config"`
}

// thinker answers requests whose thinking it accepts.
func thinker(sent *[]thought, refuse func(thought) string) llmtest.Script {
	return func(r *llmtest.Request) llmtest.Reply {
		var q thought
		if err := json.Unmarshal(r.Body, &q); err != nil {
			return llmtest.Reply{Status: 400}
		}
		*sent = append(*sent, q)
		if why := refuse(q); why != "" {
			return refusal(400, "invalid_request_error", why)
		}
		return llmtest.Reply{Text: "fine"}
	}
}

func TestALevelOfThinkingIsSentAsTheModelTakesIt(t *testing.T) {
	t.Parallel()
	accept := func(thought) string { return "" }
	for name, c := range map[string]struct {
		model, level string
		refuse       func(thought) string
		kind, effort string
		budget, most int
		calls        int // of two requests
		thinks       llm.Knowledge
	}{
		"unasked":       {"claude-sonnet-4-5", "", accept, "", "", 0, 8192, 2, llm.Yes},
		"a budget":      {"claude-sonnet-4-5", "high", accept, "enabled", "", 16384, 8192 + 16384, 2, llm.Yes},
		"the least":     {"claude-haiku-4-5", "minimal", accept, "enabled", "", 1024, 8192 + 1024, 2, llm.Yes},
		"off":           {"claude-sonnet-4-5", "off", accept, "disabled", "", 0, 8192, 2, llm.Yes},
		"an effort":     {"claude-opus-4-7", "minimal", accept, "adaptive", "low", 0, 8192, 2, llm.Yes},
		"a plain model": {"claude-3-5-haiku-latest", "high", accept, "", "", 0, 8192, 2, llm.No},
		"learnt to be adaptive": {"claude-new", "medium", func(q thought) string {
			if q.Thinking != nil && q.Thinking.Type == "enabled" {
				return `"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort".`
			}
			return ""
		}, "adaptive", "medium", 0, 8192, 3, llm.Yes},
		"no xhigh": {"claude-opus-4-6", "xhigh", func(q thought) string {
			if q.Output != nil && q.Output.Effort == "xhigh" {
				return "output_config.effort: Input should be 'low', 'medium' or 'high'"
			}
			return ""
		}, "adaptive", "high", 0, 8192, 3, llm.Yes},
		"none at all": {"other", "high", func(q thought) string {
			if q.Thinking != nil {
				return "thinking: Extra inputs are not permitted; this model does not support thinking"
			}
			return ""
		}, "", "", 0, 8192, 3, llm.No},
		"a small limit": {"claude-sonnet-4-5", "xhigh", func(q thought) string {
			if q.MaxTokens > 20000 {
				return "max_tokens: 40960 > 20000, which is the maximum allowed number of output tokens for m"
			}
			return ""
		}, "enabled", "", 20000 - 1024, 20000, 3, llm.Yes},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sent []thought
			_, m := serve(t, thinker(&sent, c.refuse))
			m.o.Model = c.model
			req := llmtest.Ask("hi")
			req.Think = c.level
			for range 2 {
				if r, err := m.Stream(t.Context(), req, nil); err != nil || r.Content[0].Text != "fine" {
					t.Fatalf("%+v, %v after %+v", r, err, sent)
				}
			}
			last := sent[len(sent)-1]
			kind, budget, effort := "", 0, ""
			if last.Thinking != nil {
				kind, budget = last.Thinking.Type, last.Thinking.Budget
			}
			if last.Output != nil {
				effort = last.Output.Effort
			}
			if kind != c.kind || budget != c.budget || effort != c.effort || last.MaxTokens != c.most || len(sent) != c.calls {
				t.Errorf("%d calls, the last with %q, %d, %q, max_tokens %d", len(sent), kind, budget, effort, last.MaxTokens)
			}
			if got := m.Info().Thinks; got != c.thinks {
				t.Errorf("thinks: %q", got)
			}
		})
	}
}
