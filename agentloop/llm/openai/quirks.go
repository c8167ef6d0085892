package openai

import (
	"errors"
	"strings"

	"parley/agentloop/llm"
	"parley/agentloop/llm/wire"
)

// quirk is a set of habits in which a server differs from OpenAI. They are learnt from its refusals and remembered
// once the changed request has worked.
type quirk uint32

const (
	noUsage          quirk = 1 << iota // refuses stream_options
	completionTokens                   // wants max_completion_tokens instead of max_tokens
	oneSystem                          // a system message only at the start: Volatile goes into the user's
	wantsReasoning                     // reasoning must come back with its tool calls (DeepSeek, Kimi)
	shortIDs                           // call ids of nine letters and digits (Mistral)
	sightless                          // the model sees no pictures
	noPictures                         // of this conversation: one of its pictures was refused, nobody says which
	noFiles                            // the server takes no PDFs
	noNone                             // knows no reasoning_effort none
	noMinimal                          // … none minimal
	noXhigh                            // … none xhigh
	noEffort                           // refuses reasoning_effort
)

// adapt says how to ask again after err. guess is true when the server did not say what it dislikes.
func (q quirk) adapt(err error, req llm.Request, proven bool) (next quirk, guess, ok bool) {
	var e *llm.Error
	var s *wire.ServerError
	if !errors.As(err, &e) || !errors.As(err, &s) || e.Kind != llm.Rejected && e.Status != 500 {
		return 0, false, false
	}
	said := strings.ToLower(s.Text)
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(said, w) {
				return true
			}
		}
		return false
	}
	if sent := q.effort(req.Think); sent != "" && has("reasoning_effort", "reasoning effort", "reasoning.effort") {
		return q.lessEffort(sent, has("parameter", "argument", "unrecognized", "unknown field", "not permitted", "extra")), false, true
	}
	switch {
	case q&noUsage == 0 && has("stream_options", "include_usage"):
		return q | noUsage, false, true
	case has("max_completion_tokens") && !proven:
		return q ^ completionTokens, false, true
	case q&completionTokens == 0 && has("max_completion_tokens"):
		return q | completionTokens, false, true
	case q&oneSystem == 0 && req.Volatile != "" && (has("must alternate") || has("system") && has("beginning", "first", "role", "start")):
		return q | oneSystem, false, true
	case q&wantsReasoning == 0 && has("reasoning_content"):
		return q | wantsReasoning, false, true
	case q&shortIDs == 0 && has("length of 9"):
		return q | shortIDs, false, true
	case q&noFiles == 0 && holds(req.Messages, document) && has("file", "pdf", "document"):
		return q | noFiles, false, true
	case q&(sightless|noPictures) == 0 && holds(req.Messages, picture) && has("image", "vision", "multimodal", "multi-modal", "must be a string", "expected a string", "content type"):
		if has("unsupported image", "invalid image", "image url", "base64", "too large", "process image", "decode") {
			return q | noPictures, false, true
		}
		return q | sightless, false, true
	case q&noUsage == 0 && !proven && (e.Status == 400 || e.Status == 422):
		return q | noUsage, true, true
	}
	return 0, false, false
}
