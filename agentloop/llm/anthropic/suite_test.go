package anthropic

import (
	"testing"

	"parley/agentloop/llm"
	"parley/agentloop/llm/llmtest"
)

// refusal is an error in the API's shape.
func refusal(status int, kind, message string) llmtest.Reply {
	return llmtest.Reply{Status: status, ErrorBody: `{"type":"error","error":{"type":"` + kind + `","message":"` + message + `"},"request_id":"req_1"}`}
}

const (
	messageStart = "event: message_start\n" + `data: {"type":"message_start","message":{"type":"message","content":[],"usage":{"input_tokens":3,"output_tokens":1}}}`
	textStart    = `data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`
	textPiece    = `data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}`
	messageEnd   = `data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}`
)

func TestSuite(t *testing.T) {
	t.Parallel()
	llmtest.Suite(t, llmtest.Maker{
		New:  func(o llmtest.Options) (llm.Model, error) { return New(Options(o)) },
		Wire: llmtest.Anthropic(),
		Failures: []llmtest.Failure{
			{Name: "credit", Reply: refusal(400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API."), Kind: llm.Auth},
			{Name: "usage limit", Reply: refusal(400, "invalid_request_error", "You have reached your specified API usage limits."), Kind: llm.Auth},
			{Name: "begun, nothing said", Kind: llm.Overload, Reply: llmtest.Reply{Raw: []string{messageStart,
				`data: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`}}},
			{Name: "half an event", Reply: llmtest.Reply{Raw: []string{`data: {"type":"content_`}}, Kind: llm.Malformed},
			{Name: "a piece without its block", Reply: llmtest.Reply{Raw: []string{messageStart, textPiece}}, Kind: llm.Malformed},
		},
	})
}
