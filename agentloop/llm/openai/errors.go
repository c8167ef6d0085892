package openai

import (
	"encoding/json"
	"net/http"
	"strings"

	"parley/agentloop/llm"
	"parley/agentloop/llm/wire"
)

// refused reads the body of an answer with a status of 400 or more.
func refused(status int, body []byte) (text string, kind llm.Kind) {
	text, code := errorText(body)
	return text, classify(status, text, code)
}

// failure in the words of the many servers: {"error":{"message","type","code"}}, {"error":"…"}, {"message":"…"},
// {"detail":…}, a list of one of these, or no JSON at all.
type failure struct {
	Error   json.RawMessage `json:"error"`
	Message json.RawMessage `json:"message"`
	Detail  json.RawMessage `json:"detail"`
	Type    json.RawMessage `json:"type"`
	Code    json.RawMessage `json:"code"`
	Meta    struct {
		Raw string `json:"raw"` // OpenRouter: what the provider behind it said
	} `json:"metadata"`
}

// errorText finds the message and the code or type; a body that is not JSON is its own message.
func errorText(body []byte) (text, code string) {
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0]
	}
	var f failure
	if json.Unmarshal(body, &f) != nil {
		return string(body), ""
	}
	if inner := wire.Plain(f.Error); strings.HasPrefix(inner, "{") {
		return errorText(f.Error)
	} else if inner != "" {
		return inner, wire.Plain(f.Code)
	}
	code = wire.Plain(f.Code)
	if t := wire.Plain(f.Type); t != "" {
		code += " " + t
	}
	for _, v := range []json.RawMessage{f.Message, f.Detail} {
		if text = wire.Plain(v); text != "" {
			if f.Meta.Raw != "" {
				text += ": " + f.Meta.Raw
			}
			return text, code
		}
	}
	return string(body), code
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
