package llmtest

import "net/http"

// Replies that fail as real servers do.

// Unauthorized is OpenAI's answer to a bad key.
func Unauthorized() Reply {
	return Reply{Status: http.StatusUnauthorized, ErrorBody: `{"error":{"message":"Incorrect API key provided.",` +
		`"type":"invalid_request_error","param":null,"code":"invalid_api_key"}}`}
}

// TooMany is a 429. retryAfter is the header's value, seconds or an HTTP date; empty: no header.
func TooMany(retryAfter string) Reply {
	r := Reply{Status: http.StatusTooManyRequests, ErrorBody: `{"error":{"message":"Rate limit reached for requests",` +
		`"type":"requests","param":null,"code":"rate_limit_exceeded"}}`}
	if retryAfter != "" {
		r.Header = map[string]string{"Retry-After": retryAfter}
	}
	return r
}

// Failing is an answer with a status of 400 or more and OpenAI's error shape.
func Failing(status int) Reply { return Reply{Status: status} }

// Hang never answers.
func Hang() Reply { return Reply{HangBefore: true} }

// HangMid falls silent after the first half of text.
func HangMid(text string) Reply {
	return Reply{Pieces: halves(text), HangAfter: 2}
}

// Cut closes the connection after the first half of text.
func Cut(text string) Reply {
	return Reply{Pieces: halves(text), CutAfter: 2}
}

// CutCall closes the connection in the middle of a tool call's arguments.
func CutCall(name, args string) Reply {
	return Reply{Calls: []Call{{Name: name, Args: args}}, CutAfter: 3}
}

// OnlyReasoning thinks and answers nothing.
func OnlyReasoning(thoughts string) Reply { return Reply{Reasoning: thoughts} }

// BadArguments calls a tool with text that is not JSON.
func BadArguments(name string) Reply {
	return Reply{Calls: []Call{{Name: name, Args: `{"path": "a", `}}}
}

// Overflows are the answers of known servers to a prompt that is too long, by server.
func Overflows() map[string]Reply {
	body := func(status int, s string) Reply { return Reply{Status: status, ErrorBody: s} }
	return map[string]Reply{
		"openai": body(400, `{"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`),
		"vllm":   body(400, `{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens in the messages, Please reduce the length of the messages.","type":"BadRequestError","param":null,"code":400}`),
		"llama.cpp": body(400, `{"error":{"code":400,"message":"request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it",`+
			`"type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":8192}}`),
		"anthropic":  body(400, `{"error":{"code":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum","type":"invalid_request_error","param":null}}`),
		"gemini":     body(400, `[{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048575).","status":"INVALID_ARGUMENT"}}]`),
		"mistral":    body(400, `{"object":"error","message":"Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length","type":"invalid_request_prompt","code":"3051"}`),
		"groq":       body(400, `{"error":{"message":"Please reduce the length of the messages or completion.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`),
		"xai":        body(400, `{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is 131072 but the request contains 537812 tokens."}`),
		"openrouter": body(400, `{"error":{"message":"This endpoint's maximum context length is 32768 tokens. However, you requested about 40000 tokens","code":400}}`),
		"lm studio":  body(400, `{"error":"Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens"}`),
		"proxy":      body(413, `<html><body>413 Request Entity Too Large</body></html>`),
	}
}

func halves(text string) []string {
	n := len(text) / 2
	return []string{text[:n], text[n:]}
}
