package openai

import (
	"testing"

	"parley/agentloop/llm"
	"parley/agentloop/llm/llmtest"
)

func TestSuite(t *testing.T) {
	t.Parallel()
	llmtest.Suite(t, llmtest.Maker{
		New:  func(o llmtest.Options) (llm.Model, error) { return New(Options(o)) },
		Wire: llmtest.OpenAI(),
		Failures: []llmtest.Failure{
			{Name: "quota", Kind: llm.Auth, Reply: llmtest.Reply{Status: 429,
				ErrorBody: `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`}},
			{Name: "error event", Kind: llm.Overload, Reply: llmtest.Reply{Raw: []string{"event: error\ndata: {\"message\":\"boom\"}"}}},
		},
	})
}
