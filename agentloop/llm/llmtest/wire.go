package llmtest

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// The answers of Chat Completions, https://platform.openai.com/docs/api-reference/chat.

const (
	streamMark = `"stream":true`
	usageMark  = `"include_usage":true`
)

// streamed looks for the field as clients write it; quotes inside a JSON string would be escaped.
func streamed(body []byte) bool {
	if bytes.Contains(body, []byte(streamMark)) {
		return true
	}
	var v struct {
		Stream bool `json:"stream"`
	}
	return json.Unmarshal(body, &v) == nil && v.Stream
}

func wantsUsage(req *Request) bool {
	if bytes.Contains(req.Body, []byte(usageMark)) {
		return true
	}
	o := req.Chat().StreamOptions
	return o != nil && o.IncludeUsage
}

func rawChunks(lines []string) [][]byte {
	out := make([][]byte, len(lines))
	for i, l := range lines {
		out[i] = []byte(l + "\n\n")
	}
	return out
}

// chunks are the events of a stream, each with its blank line.
func chunks(req *Request, r Reply) [][]byte {
	var out [][]byte
	add := func(delta, finish string) {
		b := make([]byte, 0, 160+len(delta))
		b = append(b, `data: {"id":"chatcmpl-`...)
		b = strconv.AppendInt(b, int64(req.N), 10)
		b = append(b, `","object":"chat.completion.chunk","created":1,"model":"test-model","choices":[{"index":0,"delta":`...)
		b = append(b, delta...)
		b = append(b, `,"finish_reason":`...)
		b = append(b, finish...)
		out = append(out, append(b, "}]}\n\n"...))
	}
	add(`{"role":"assistant","content":""}`, "null")
	for _, p := range pieces(r.Reasoning, 24) {
		add(`{"reasoning_content":`+quote(p)+`}`, "null")
	}
	for _, p := range texts(r) {
		add(`{"content":`+quote(p)+`}`, "null")
	}
	if r.Refusal != "" {
		add(`{"refusal":`+quote(r.Refusal)+`}`, "null")
	}
	for _, d := range callDeltas(req, r.Calls) {
		add(d, "null")
	}
	add(`{}`, quote(finish(r)))
	if !r.NoUsage && wantsUsage(req) {
		out = append(out, []byte(`data: {"id":"chatcmpl-`+strconv.Itoa(req.N)+
			`","object":"chat.completion.chunk","created":1,"model":"test-model","choices":[],"usage":`+usage(req, r)+"}\n\n"))
	}
	return append(out, []byte("data: [DONE]\n\n"))
}

// callDeltas announce every call first and then mix the fragments of their arguments, the hardest order to read.
func callDeltas(req *Request, calls []Call) []string {
	var out []string
	rest := make([][]string, len(calls))
	for i, c := range calls {
		out = append(out, `{"tool_calls":[{"index":`+strconv.Itoa(i)+`,"id":`+quote(callID(req, i, c))+
			`,"type":"function","function":{"name":`+quote(c.Name)+`,"arguments":""}}]}`)
		rest[i] = pieces(c.Args, 7)
	}
	for more := true; more; {
		more = false
		for i := range rest {
			if len(rest[i]) == 0 {
				continue
			}
			out = append(out, `{"tool_calls":[{"index":`+strconv.Itoa(i)+`,"function":{"arguments":`+quote(rest[i][0])+`}}]}`)
			rest[i], more = rest[i][1:], true
		}
	}
	return out
}

// whole is the answer without a stream.
func whole(req *Request, r Reply) []byte {
	var text string
	for _, p := range texts(r) {
		text += p
	}
	msg := map[string]any{"role": "assistant", "content": text}
	if r.Reasoning != "" {
		msg["reasoning_content"] = r.Reasoning
	}
	if r.Refusal != "" {
		msg["refusal"] = r.Refusal
	}
	var calls []any
	for i, c := range r.Calls {
		calls = append(calls, map[string]any{"id": callID(req, i, c), "type": "function",
			"function": map[string]string{"name": c.Name, "arguments": c.Args}})
	}
	if calls != nil {
		msg["tool_calls"] = calls
	}
	answer := map[string]any{"id": "chatcmpl-" + strconv.Itoa(req.N), "object": "chat.completion", "created": 1, "model": "test-model",
		"choices": []any{map[string]any{"index": 0, "message": msg, "finish_reason": finish(r)}}}
	if !r.NoUsage {
		answer["usage"] = json.RawMessage(usage(req, r))
	}
	b, err := json.Marshal(answer)
	if err != nil {
		return nil
	}
	return b
}

func callID(req *Request, i int, c Call) string {
	if c.ID != "" {
		return c.ID
	}
	return "call_" + strconv.Itoa(req.N) + "_" + strconv.Itoa(i)
}

func finish(r Reply) string {
	switch {
	case r.Finish != "":
		return r.Finish
	case len(r.Calls) > 0:
		return "tool_calls"
	}
	return "stop"
}

func usage(req *Request, r Reply) string {
	u := r.Usage
	if u == (Usage{}) {
		u.Prompt, u.Completion = len(req.Body)/4, (len(r.Text)+3)/4
	}
	return `{"prompt_tokens":` + strconv.Itoa(u.Prompt) + `,"completion_tokens":` + strconv.Itoa(u.Completion) +
		`,"total_tokens":` + strconv.Itoa(u.Prompt+u.Completion) +
		`,"prompt_tokens_details":{"cached_tokens":` + strconv.Itoa(u.Cached) + `,"cache_write_tokens":` + strconv.Itoa(u.Written) +
		`},"completion_tokens_details":{"reasoning_tokens":` + strconv.Itoa(u.Reasoning) + `}}`
}

func texts(r Reply) []string {
	if r.Pieces != nil {
		return r.Pieces
	}
	return pieces(r.Text, 32)
}

// pieces cuts s after at least n bytes, between characters.
func pieces(s string, n int) []string {
	var out []string
	from := 0
	for i := range s {
		if i-from >= n {
			out = append(out, s[from:i])
			from = i
		}
	}
	if from < len(s) {
		out = append(out, s[from:])
	}
	return out
}

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return `""`
	}
	return string(b)
}
