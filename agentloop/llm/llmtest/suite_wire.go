package llmtest

import (
	"strconv"
	"strings"

	"parley/agentloop/llm"
)

// Wire is how one wire format says what the suite needs to have said.
type Wire struct {
	headers   map[string]string // of a request; empty: it may not be there
	lead      int               // events before an answer's first, beyond those of Chat Completions
	tries     int               // how often a request is made that is refused without a reason that is known
	support   string            // the id that a failed request has, for the provider's support
	lists     bool              // an error may come inside a list
	documents bool              // PDFs are shown where pictures are
	stops     map[string]llm.Stop
	blind     map[string]bool // refusals of a picture; true: of every picture

	failure     func(status int, message string) string // the body of an error
	event       string                                  // what stands before such a body in a stream
	head, done  string                                  // around the pieces of a streamed text
	text        func(s string) string
	neverEnding func() map[string]*endless
}

// OpenAI is Chat Completions.
func OpenAI() Wire {
	chunk := func(delta string) string {
		return `data: {"choices":[{"index":0,"delta":{` + delta + `},"finish_reason":null}]}` + "\n\n"
	}
	return Wire{
		headers: map[string]string{"Authorization": "Bearer " + suiteKey, "Content-Type": "application/json", "X-Api-Key": ""},
		tries:   2, lists: true,
		stops: map[string]llm.Stop{"stop": llm.StopEnd, "eos": llm.StopEnd, "length": llm.StopLength, "max_tokens": llm.StopLength,
			"content_filter": llm.StopFiltered},
		blind: map[string]bool{
			"No endpoints found that support image input":                                                                        true,
			"test-1 is not a multimodal model":                                                                                   true,
			"image input is not supported - hint: if this is unexpected, you may need to provide the mmproj":                     true,
			"Failed to deserialize the JSON body into the target type: unknown variant `image_url`, expected `text`":             true,
			"'messages.0' : for 'role:user' the following must be satisfied[('messages.0.content' : value must be a string)]":    true,
			"Invalid content type. image_url is only supported by certain models.":                                               true,
			"You uploaded an unsupported image. Please make sure your image is below 20 MB in size and is of one of the formats": false,
			"Could not process image":       false,
			"Failed to decode image buffer": false,
			"Invalid base64 image_url.":     false,
		},
		failure: openAIError,
		event:   "data: ", done: "data: [DONE]\n\n",
		text: func(s string) string { return chunk(`"content":` + quote(s)) },
		neverEnding: func() map[string]*endless {
			const call = `"tool_calls":[{"index":0,`
			return map[string]*endless{
				"text":      {piece: chunk(`"content":` + quote(words(50))), kept: true},
				"one event": {head: `data: {"choices":[{"index":0,"delta":{"content":"wörd `, piece: words(50), kept: true},
				"whole": {whole: true, head: `{"choices":[{"message":{"content":"wörd `, piece: words(50),
					tail: `"},"finish_reason":"stop"}]}`, kept: true},
				"refusal": {piece: chunk(`"refusal":` + quote(words(50))), kept: true},
				"arguments": {head: chunk(call + `"id":"a","function":{"name":"f","arguments":"{\"x\":"}}]`),
					piece: chunk(call + `"function":{"arguments":` + quote(`"`+words(50)) + `}}]`)},
				"thoughts": {piece: chunk(`"reasoning_content":` + quote(words(50)))},
				"calls":    {piece: chunk(`"tool_calls":[{"id":"","function":{"name":"f","arguments":"{}"}}]`)},
				"unknown":  {piece: chunk(`"audio":` + quote(words(50))), unread: true},
				"comments": {piece: ": " + words(50) + "\n", unread: true},
			}
		},
	}
}

// openAIError is a body of https://platform.openai.com/docs/guides/error-codes, with the status as the code, as OpenRouter has it.
func openAIError(status int, message string) string {
	return `{"error":{"message":` + quote(message) + `,"type":"server_error","param":null,"code":` + strconv.Itoa(status) + `}}`
}

// Anthropic is Messages.
func Anthropic() Wire {
	event := func(body string) string {
		kind, _, _ := strings.Cut(strings.TrimPrefix(body, `{"type":"`), `"`)
		return "event: " + kind + "\ndata: " + body + "\n\n"
	}
	begin := event(`{"type":"message_start","message":{"usage":{"input_tokens":7,"output_tokens":1}}}`)
	block := func(what string) string {
		return begin + event(`{"type":"content_block_start","index":0,"content_block":{`+what+`}}`)
	}
	piece := func(delta string) string {
		return event(`{"type":"content_block_delta","index":0,"delta":{` + delta + `}}`)
	}
	text := func(s string) string { return piece(`"type":"text_delta","text":` + quote(s)) }
	head := block(`"type":"text","text":""`)
	return Wire{
		headers: map[string]string{"X-Api-Key": suiteKey, "Anthropic-Version": "2023-06-01", "Content-Type": "application/json",
			"Authorization": ""},
		lead: 2, tries: 1, support: "req_test", documents: true,
		stops: map[string]llm.Stop{"end_turn": llm.StopEnd, "stop_sequence": llm.StopEnd,
			"pause_turn": llm.StopEnd, "from the future": llm.StopEnd,
			"max_tokens": llm.StopLength, "model_context_window_exceeded": llm.StopLength, "refusal": llm.StopFiltered},
		blind: map[string]bool{
			"This model does not support image input":                           true,
			"messages.0.content.1.image.source.base64: Could not process image": false,
		},
		failure: anthropicError, event: "event: error\ndata: ",
		head: head, done: event(`{"type":"message_stop"}`), text: text,
		neverEnding: func() map[string]*endless {
			thought := block(`"type":"thinking","thinking":""`)
			return map[string]*endless{
				"text": {head: head, piece: text(words(50)), kept: true},
				"one event": {head: head + `data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"wörd `,
					piece: words(50), kept: true},
				"whole": {whole: true, head: `{"type":"message","content":[{"type":"text","text":"wörd `, piece: words(50),
					tail: `"}],"stop_reason":"end_turn"}`, kept: true},
				"input": {head: block(`"type":"tool_use","id":"a","name":"f","input":{}`),
					piece: piece(`"type":"input_json_delta","partial_json":` + quote(`"`+words(50)))},
				"thought":   {head: thought, piece: piece(`"type":"thinking_delta","thinking":` + quote(words(50)))},
				"signature": {head: thought, piece: piece(`"type":"signature_delta","signature":` + quote(words(50)))},
				"unknown":   {head: begin, piece: event(`{"type":"something_new","data":` + quote(words(50)) + `}`), unread: true},
			}
		},
	}
}
