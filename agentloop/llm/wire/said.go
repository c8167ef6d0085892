package wire

import (
	"encoding/json"
	"strings"
)

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

// ErrorText finds the message and the code or type; a body that is not JSON is its own message.
func ErrorText(body []byte) (text, code string) {
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0]
	}
	var f failure
	if json.Unmarshal(body, &f) != nil {
		return string(body), ""
	}
	if inner := Plain(f.Error); strings.HasPrefix(inner, "{") {
		return ErrorText(f.Error)
	} else if inner != "" {
		return inner, Plain(f.Code)
	}
	code = Plain(f.Code)
	if t := Plain(f.Type); t != "" {
		code += " " + t
	}
	for _, v := range []json.RawMessage{f.Message, f.Detail} {
		if text = Plain(v); text != "" {
			if f.Meta.Raw != "" {
				text += ": " + f.Meta.Raw
			}
			return text, code
		}
	}
	return string(body), code
}
