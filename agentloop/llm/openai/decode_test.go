package openai

import (
	"bufio"
	"encoding/json"
	"strings"
	"testing"

	"parley/agentloop/llm"
	"parley/agentloop/llm/llmtest"
	"parley/agentloop/llm/wire"
	"parley/workspace"
)

// callOf is a chunk with one fragment of a tool call.
func callOf(fragment string) string {
	return `data: {"choices":[{"delta":{"tool_calls":[` + fragment + `]}}]}` + "\n\n"
}

func readAll(t *testing.T, stream string) (llm.Response, error) {
	t.Helper()
	a := &answer{client: &wire.Client{}}
	if err := a.Read(bufio.NewReaderSize(strings.NewReader(stream), 16)); err != nil {
		return llm.Response{}, err
	}
	return a.response("", map[string]bool{"call_0": true}), nil
}

func TestToolCallsOfCarelessServers(t *testing.T) {
	t.Parallel()
	frag := func(index, id, name, args string) string {
		f := map[string]any{"function": map[string]string{"name": name, "arguments": args}}
		if index != "" {
			f["index"] = json.Number(index)
		}
		if id != "" {
			f["id"] = id
		}
		b, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		return callOf(string(b))
	}
	a, b := `{"a":1}`, `{"b":2}`
	for name, stream := range map[string]string{
		"all index 0, other ids":         frag("0", "x", "one", a) + frag("0", "y", "two", b),
		"all index 0, no ids":            frag("0", "", "one", a) + frag("0", "", "two", b),
		"all index 0, one id":            frag("0", "x", "one", a) + frag("0", "x", "two", b),
		"no index":                       frag("", "x", "one", a) + frag("", "y", "two", b),
		"no index, no ids":               frag("", "", "one", a) + frag("", "", "two", b),
		"no index, no ids, fragments":    frag("", "", "one", `{"a"`) + frag("", "", "", ":1}") + frag("", "", "two", b),
		"no index, ids repeated":         frag("", "x", "one", `{"a"`) + frag("", "x", "one", ":1}") + frag("", "y", "two", b),
		"id and name with every piece":   frag("0", "x", "one", `{"a"`) + frag("0", "x", "one", ":1}") + frag("0", "x", "one", "") + frag("1", "y", "two", b),
		"ids that the history has":       frag("0", "call_0", "one", a) + frag("1", "call_0", "two", b),
		"arguments as an object":         callOf(`{"index":0,"id":"x","function":{"name":"one","arguments":{"a":1}}}`) + frag("1", "y", "two", b),
		"wrapped into a string":          frag("0", "x", "one", `"{\"a\":1}"`) + frag("1", "y", "two", b),
		"index from 1":                   frag("1", "x", "one", a) + frag("2", "y", "two", b),
		"name late":                      frag("0", "x", "", "") + frag("0", "", "one", a) + frag("1", "y", "two", b),
		"white space around":             frag("0", "x", "one", "\n"+a+" ") + frag("1", "y", "two", b),
		"a nameless one is not a call":   frag("0", "x", "one", a) + frag("1", "y", "two", b) + frag("2", "z", "", "{}"),
		"both in one chunk, mixed":       callOf(`{"index":0,"id":"x","function":{"name":"one","arguments":"{\"a"}},{"index":1,"id":"y","function":{"name":"two","arguments":"{\"b"}}`) + frag("1", "", "", `":2}`) + frag("0", "", "", `":1}`),
		"comments, CRLF, no blank lines": ": hi\r\n" + strings.ReplaceAll(frag("0", "x", "one", a)+frag("1", "y", "two", b), "\n\n", "\r\n"),
	} {
		r, err := readAll(t, stream+"data: [DONE]\n\n")
		calls := r.ToolCalls()
		if err != nil || len(calls) != 2 || r.Stop != llm.StopToolCalls {
			t.Errorf("%s: %+v, %v", name, r, err)
			continue
		}
		one, two := calls[0], calls[1]
		if one.Name != "one" || two.Name != "two" || string(one.Args) != a || string(two.Args) != b {
			t.Errorf("%s: %+v", name, calls)
		}
		if one.CallID == two.CallID || one.CallID == "call_0" || two.CallID == "call_0" || one.CallID == "" || two.CallID == "" {
			t.Errorf("%s: ids %q %q", name, one.CallID, two.CallID)
		}
	}
}

func TestCallWithoutArgumentsIsNotMixedWithTheNext(t *testing.T) {
	t.Parallel()
	for _, index := range []string{`"index":0,`, ``} {
		r, err := readAll(t, callOf(`{`+index+`"id":"x","function":{"name":"one"}}`)+callOf(`{`+index+`"id":"y","function":{"name":"two","arguments":"{\"b\":2}"}}`)+"data: [DONE]\n")
		if calls := r.ToolCalls(); err != nil || len(calls) != 2 || string(calls[0].Args) != "{}" || string(calls[1].Args) != `{"b":2}` {
			t.Errorf("%s: %+v, %v", index, r, err)
		}
	}
}

func TestEndOfStream(t *testing.T) {
	t.Parallel()
	text, end := `data: {"choices":[{"delta":{"content":"hi"}}]}`, `data: {"choices":[{"delta":{},"finish_reason":"stop"}]}`
	for stream, ok := range map[string]bool{
		text + "\n\n" + end + "\n\ndata: [DONE]\n\n": true,
		text + "\n\n" + end + "\n\n":                 true,
		text + "\n\n" + end:                          true,
		text + "\n\ndata: [DONE]":                    true,
		text + "\n\n":                                false,
		text:                                         false,
		"":                                           false,
		"\xef\xbb\xbf" + text + "\n" + end:           true,
	} {
		r, err := readAll(t, stream)
		if (err == nil) != ok || ok && (len(r.Content) != 1 || r.Content[0].Text != "hi") {
			t.Errorf("%q: %+v, %v", stream, r, err)
		}
	}
}

func TestContentInParts(t *testing.T) {
	t.Parallel()
	r, err := readAll(t, `data: {"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"hi"}]}}]}`+
		"\n\ndata: [DONE]\n")
	if err != nil || len(r.Content) != 2 || r.Content[0].Text != "hm" || r.Content[1].Text != "hi" {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestDeepSeekAndOpenRouterCounters(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]workspace.Usage{
		`{"prompt_tokens":10,"completion_tokens":1,"prompt_cache_hit_tokens":4}`:                                              {InputTokens: 6, OutputTokens: 1, CacheReadTokens: 4},
		`{"prompt_tokens":10,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":4,"cache_write_tokens":5}}`:       {InputTokens: 1, OutputTokens: 1, CacheReadTokens: 4, CacheWriteTokens: 5},
		`{"prompt_tokens":3,"completion_tokens":-1,"prompt_tokens_details":{"cached_tokens":40}}`:                             {CacheReadTokens: 40},
		`{"prompt_tokens":10,"completion_tokens":1,"prompt_tokens_details":null,"completion_tokens_details":{"x":{"y":"z"}}}`: {InputTokens: 10, OutputTokens: 1},
	} {
		var u usage
		if err := json.Unmarshal([]byte(in), &u); err != nil {
			t.Fatal(err)
		}
		if got := u.counted(); got != want {
			t.Errorf("%s: %+v", in, got)
		}
	}
}

func TestTooManyCallsAreRefused(t *testing.T) {
	t.Parallel()
	one := callOf(`{"function":{"name":"x","arguments":"{}"}}`)
	if _, err := readAll(t, strings.Repeat(one, maxCalls)+"data: [DONE]\n"); err != nil {
		t.Error(err)
	}
	if _, err := readAll(t, strings.Repeat(one, maxCalls+1)+"data: [DONE]\n"); llm.KindOf(err) != llm.TooLong {
		t.Error(err)
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add([]byte(callOf(`{"index":0,"id":"x","function":{"name":"one","arguments":"{\"a"}}`) + "data: [DONE]\n"))
	f.Add([]byte(`{"choices":[{"message":{"content":"hi","tool_calls":[{"function":{"name":"f","arguments":{}}}]}}]}`))
	f.Add([]byte("data: {\"choices\":[{\"delta\":{\"content\":\"<think>a</think>b\"},\"finish_reason\":\"length\"}]}\n\nevent: error\ndata: []\n"))
	f.Add([]byte(`data: {"error":{"message":[{}],"code":429.5}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		r, err := readAll(t, string(in))
		if err != nil {
			return
		}
		llmtest.CheckCalls(t, r)
	})
}

func TestPlainDeltaIsOnlyTaken(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"id":"x","choices":[{"index":0,"delta":{"content":"a \"b\"\n\u00e9"},"finish_reason":null}]}`: "a \"b\"\n\u00e9",
		`{"choices":[{"finish_reason":null,"delta":{"content":"a"}}],"usage":null}`:                     "a",
		`{"choices":[{"delta":{"content":"\"delta\":{\"content\":\"no"},"finish_reason":null}]}`:        `"delta":{"content":"no`,
		`{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}`:                                "",
		`{"choices":[{"delta":{"content":"a","reasoning_content":"r"},"finish_reason":null}]}`:          "",
		`{"choices":[{"delta":{"content":"a"},"finish_reason":null}],"usage":{"prompt_tokens":1}}`:      "",
		`{"error":{"message":"x"},"choices":[{"delta":{"content":"a"},"finish_reason":null}]}`:          "",
		`{"choices":[{"delta":{"content":"a"},"finish_reason":null},{"delta":{"content":"b"}}]}`:        "",
		`{"choices":[{"delta":{"content":"a`:                                                            "",
		`{"choices":[{"delta":{"content":"a\`:                                                           "",
	} {
		if got, ok := plainDelta([]byte(in)); got != want || ok != (want != "") {
			t.Errorf("%s: %q, %v", in, got, ok)
		}
	}
}

func FuzzPlainDelta(f *testing.F) {
	f.Add([]byte(`{"choices":[{"index":0,"delta":{"content":"a \"b\""},"finish_reason":null}]}`))
	f.Add([]byte(`{"choices":[{"delta":{"content":"a"},"finish_reason":"stop","x":{"finish_reason":null}}],"x":{"usage":{"prompt_tokens":1}}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		text, ok := plainDelta(in)
		var c chunk
		if !ok || json.Unmarshal(in, &c) != nil || len(c.Choices) != 1 {
			return
		}
		// No server puts the marks elsewhere; where they stand in the first choice, both must say the same.
		if d := c.Choices[0]; d.Delta.Content.text != "" && d.Delta.Content.text != text {
			t.Fatalf("%s: %q, decoded %q", in, text, d.Delta.Content.text)
		}
	})
}
