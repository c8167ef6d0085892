package openai

import (
	"net/http"
	"strings"

	"parley/agentloop/llm"
	"parley/agentloop/llm/wire"
)

// refused reads the body of an answer with a status of 400 or more.
func refused(status int, body []byte) (text string, kind llm.Kind) {
	text, code := wire.ErrorText(body)
	return text, classify(status, text, code)
}

func classify(status int, text, code string) llm.Kind {
	low := strings.ToLower(code + " " + text)
	switch {
	case status == http.StatusRequestEntityTooLarge, status != 401 && status != 403 && status != 429 && wire.Overflows(low):
		return llm.Overflow
	case status == 401, status == 402, status == 403, strings.Contains(low, "insufficient_quota"):
		return llm.Auth
	case status == 429:
		return llm.Limited
	case status == 408, status >= 500:
		return llm.Overload
	}
	return llm.Rejected
}
