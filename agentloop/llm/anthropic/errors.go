package anthropic

import (
	"encoding/json"
	"strings"

	"parley/agentloop/llm"
	"parley/agentloop/llm/wire"
)

// failure is the body of an error, https://platform.claude.com/docs/en/api/errors. Copies of the API send other
// shapes too: {"error":"…"}, {"message":"…"}.
type failure struct {
	Error     json.RawMessage `json:"error"`
	Type      json.RawMessage `json:"type"`
	Message   json.RawMessage `json:"message"`
	Detail    json.RawMessage `json:"detail"`
	RequestID string          `json:"request_id"`
}

// errorText finds the message and the type; a body that is not JSON is its own message.
func errorText(body []byte) (text, kind string) {
	var f failure
	if json.Unmarshal(body, &f) != nil {
		return string(body), ""
	}
	kind = wire.Plain(f.Type)
	switch inner := wire.Plain(f.Error); {
	case strings.HasPrefix(inner, "{"):
		text, kind = errorText(f.Error)
	case inner != "":
		text = inner
	case wire.Plain(f.Message) != "":
		text = wire.Plain(f.Message)
	case wire.Plain(f.Detail) != "":
		text = wire.Plain(f.Detail)
	default:
		text = string(body)
	}
	if f.RequestID != "" {
		text += " (" + f.RequestID + ")" // what the provider's support asks for
	}
	return text, kind
}

// refused reads the body of an answer with a status of 400 or more.
func refused(status int, body []byte) (string, llm.Kind) {
	text, kind := errorText(body)
	return text, classify(status, text, kind)
}

// statusOf is the status that an error in the stream would have had.
func statusOf(kind string) int {
	switch kind {
	case "invalid_request_error":
		return 400
	case "authentication_error":
		return 401
	case "billing_error":
		return 402
	case "permission_error":
		return 403
	case "not_found_error":
		return 404
	case "request_too_large":
		return 413
	case "rate_limit_error":
		return 429
	case "timeout_error":
		return 504
	case "overloaded_error":
		return 529
	}
	return 500
}

func classify(status int, text, kind string) llm.Kind {
	low := strings.ToLower(kind + " " + text)
	switch {
	case status == 413, kind == "request_too_large", status != 401 && status != 403 && status != 429 && wire.Overflows(low):
		return llm.Overflow
	case status == 401, status == 402, status == 403, status == 400 && unpaid(low):
		return llm.Auth
	case status == 429:
		return llm.Limited
	case status == 408, status >= 500:
		return llm.Overload
	}
	return llm.Rejected
}

// unpaid knows the words of a 400 that says that the account may spend no more: no other request would work.
func unpaid(low string) bool {
	for _, w := range []string{"credit balance is too low", "api usage limits", "spend limit", "billing_error"} {
		if strings.Contains(low, w) {
			return true
		}
	}
	return false
}
