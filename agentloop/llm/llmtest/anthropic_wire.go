package llmtest

import (
	"encoding/json"
	"strconv"
)

// anthropicError is a body of https://platform.claude.com/docs/en/api/errors.
func anthropicError(status int, text string) string {
	kind := map[int]string{400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error",
		404: "not_found_error", 413: "request_too_large", 429: "rate_limit_error", 504: "timeout_error", 529: "overloaded_error"}[status]
	if kind == "" {
		kind = "api_error"
	}
	if text == "" {
		text = "Overloaded"
	}
	return `{"type":"error","error":{"type":"` + kind + `","message":` + quote(text) + `},"request_id":"req_test"}`
}

// eventWriter collects the events of a stream.
type eventWriter struct {
	out   [][]byte
	index int
}

func (w *eventWriter) add(name, fields string) {
	w.out = append(w.out, []byte("event: "+name+"\ndata: {\"type\":\""+name+"\""+fields+"}\n\n"))
}

func (w *eventWriter) begin(block string) {
	w.add("content_block_start", `,"index":`+strconv.Itoa(w.index)+`,"content_block":`+block)
}

func (w *eventWriter) delta(index int, kind, field, value string) {
	w.add("content_block_delta", `,"index":`+strconv.Itoa(index)+`,"delta":{"type":"`+kind+`","`+field+`":`+quote(value)+`}`)
}

func (w *eventWriter) end() {
	w.add("content_block_stop", `,"index":`+strconv.Itoa(w.index))
	w.index++
}

// events are a stream, https://platform.claude.com/docs/en/build-with-claude/streaming.
func events(req *Request, r Reply) [][]byte {
	w := &eventWriter{}
	w.add("message_start", `,"message":{"id":"msg_`+strconv.Itoa(req.N)+`","type":"message","role":"assistant","model":"test-model","content":[],`+
		`"stop_reason":null,"stop_sequence":null,"usage":`+messageUsage(req, r, 1)+`}`)
	w.add("ping", "")
	if r.Reasoning != "" {
		w.begin(`{"type":"thinking","thinking":"","signature":""}`)
		for _, p := range pieces(r.Reasoning, 24) {
			w.delta(w.index, "thinking_delta", "thinking", p)
		}
		w.delta(w.index, "signature_delta", "signature", "sig."+sign(req))
		w.end()
	}
	if r.Redacted != "" {
		w.begin(`{"type":"redacted_thinking","data":` + quote(r.Redacted+"."+sign(req)) + `}`)
		w.end()
	}
	if list := texts(r); len(list) > 0 {
		w.begin(`{"type":"text","text":""}`)
		for _, p := range list {
			w.delta(w.index, "text_delta", "text", p)
		}
		w.end()
	}
	w.calls(req, r.Calls)
	w.add("message_delta", `,"delta":`+stopFields(r)+`,"usage":{"output_tokens":`+strconv.Itoa(counted(req, r).Completion)+`}`)
	w.add("message_stop", "")
	return w.out
}

// calls announce every call first and then mix the fragments of their arguments, the hardest order to read.
func (w *eventWriter) calls(req *Request, calls []Call) {
	first := w.index
	rest := make([][]string, len(calls))
	for i, c := range calls {
		w.begin(`{"type":"tool_use","id":` + quote(callID(req, i, c)) + `,"name":` + quote(c.Name) + `,"input":{}}`)
		w.delta(w.index, "input_json_delta", "partial_json", "")
		w.index++
		rest[i] = pieces(c.Args, 7)
	}
	for more := true; more; {
		more = false
		for i := range rest {
			if len(rest[i]) == 0 {
				continue
			}
			w.delta(first+i, "input_json_delta", "partial_json", rest[i][0])
			rest[i], more = rest[i][1:], true
		}
	}
	w.index = first
	for range calls {
		w.end()
	}
}

func stopFields(r Reply) string {
	reason, details := r.Finish, "null"
	switch {
	case reason != "":
	case r.Refusal != "":
		reason, details = "refusal", `{"type":"refusal","category":null,"explanation":`+quote(r.Refusal)+`}`
	case len(r.Calls) > 0:
		reason = "tool_use"
	default:
		reason = "end_turn"
	}
	return `{"stop_reason":` + quote(reason) + `,"stop_sequence":null,"stop_details":` + details + `}`
}

func counted(req *Request, r Reply) Usage {
	if r.Usage == (Usage{}) {
		return Usage{Prompt: len(req.Body) / 4, Completion: (len(r.Text) + 3) / 4}
	}
	return r.Usage
}

// messageUsage has what was read from and written to the cache beside the input, not inside.
func messageUsage(req *Request, r Reply, output int) string {
	u := counted(req, r)
	return `{"input_tokens":` + strconv.Itoa(u.Prompt-u.Cached-u.Written) + `,"cache_creation_input_tokens":` + strconv.Itoa(u.Written) +
		`,"cache_read_input_tokens":` + strconv.Itoa(u.Cached) + `,"cache_creation":{"ephemeral_5m_input_tokens":` + strconv.Itoa(u.Written) +
		`,"ephemeral_1h_input_tokens":0},"output_tokens":` + strconv.Itoa(output) + `,"service_tier":"standard"}`
}

// wholeMessage is the answer without a stream.
func wholeMessage(req *Request, r Reply) []byte {
	content := []any{}
	if r.Reasoning != "" {
		content = append(content, map[string]any{"type": "thinking", "thinking": r.Reasoning, "signature": "sig." + sign(req)})
	}
	text := ""
	for _, p := range texts(r) {
		text += p
	}
	if text != "" {
		content = append(content, map[string]any{"type": "text", "text": text})
	}
	for i, c := range r.Calls {
		content = append(content, map[string]any{"type": "tool_use", "id": callID(req, i, c), "name": c.Name, "input": json.RawMessage(c.Args)})
	}
	var answer map[string]any
	if json.Unmarshal([]byte(stopFields(r)), &answer) != nil {
		return nil
	}
	answer["type"], answer["role"], answer["content"] = "message", "assistant", content
	answer["usage"] = json.RawMessage(messageUsage(req, r, counted(req, r).Completion))
	b, err := json.Marshal(answer)
	if err != nil {
		return nil
	}
	return b
}
