package anthropic

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

func readAll(stream string) (llm.Response, error) {
	a := &answer{client: &wire.Client{}}
	if err := a.Read(bufio.NewReaderSize(strings.NewReader(stream), 16)); err != nil {
		return llm.Response{}, err
	}
	return a.response(origin{account: "acc", prefix: "pre"}, map[string]bool{"toolu_0": true}), nil
}

func lines(l ...string) string { return strings.Join(l, "\n\n") + "\n\n" }

func TestEndOfStream(t *testing.T) {
	t.Parallel()
	stop := `data: {"type":"message_stop"}`
	for stream, ok := range map[string]bool{
		lines(messageStart, textStart, textPiece, messageEnd, stop):                                   true,
		lines(messageStart, textStart, textPiece, messageEnd):                                         true,
		strings.TrimSpace(lines(messageStart, textStart, textPiece, messageEnd)):                      true,
		lines(textStart, textPiece, stop):                                                             true,
		"\xef\xbb\xbf: hello\n" + lines(textStart, `data: {"type":"ping"}`, "data:", textPiece, stop): true,
		lines(messageStart, textStart, textPiece):                                                     false,
		textStart: false,
		"":        false,
	} {
		r, err := readAll(stream)
		if (err == nil) != ok || ok && (len(r.Content) != 1 || r.Content[0].Text != "a") {
			t.Errorf("%q: %+v, %v", stream, r, err)
		}
	}
}

func TestUsageIsTheLastTotal(t *testing.T) {
	t.Parallel()
	end := func(u string) string {
		return `data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":` + u + `}`
	}
	start := func(u string) string { return `data: {"type":"message_start","message":{"usage":` + u + `}}` }
	full := `{"input_tokens":10,"cache_creation_input_tokens":20,"cache_read_input_tokens":30,"output_tokens":1}`
	for stream, want := range map[string]workspace.Usage{
		lines(start(full), end(`{"output_tokens":7}`)):                                                                                 {InputTokens: 10, CacheWriteTokens: 20, CacheReadTokens: 30, OutputTokens: 7},
		lines(start(full), end(`{"input_tokens":11,"output_tokens":7}`)):                                                               {InputTokens: 11, CacheWriteTokens: 20, CacheReadTokens: 30, OutputTokens: 7},
		lines(start(`{"output_tokens":1}`), end(full)):                                                                                 {InputTokens: 10, CacheWriteTokens: 20, CacheReadTokens: 30, OutputTokens: 1},
		lines(start(`{"input_tokens":-4}`), end(`{"output_tokens":2}`)):                                                                {OutputTokens: 2},
		lines(`data: {"type":"message_start"}`, end(`{"output_tokens":null}`)):                                                         {},
		lines(start(`{"input_tokens":1,"cache_creation":{"ephemeral_5m_input_tokens":4,"ephemeral_1h_input_tokens":5}}`), end(`null`)): {InputTokens: 1, CacheWriteTokens: 9},
	} {
		if r, err := readAll(stream); err != nil || r.Usage != want {
			t.Errorf("%s: %+v, %v", stream, r.Usage, err)
		}
	}
}

func TestUnknownBlocksAndDeltasArePassedOver(t *testing.T) {
	t.Parallel()
	r, err := readAll(lines(`data: {"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"s","name":"web_search","input":{}}}`,
		`data: {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"q\":1}"}}`,
		strings.ReplaceAll(textStart, `"index":0`, `"index":1`), strings.ReplaceAll(textPiece, `"index":0`, `"index":1`),
		`data: {"type":"content_block_delta","index":1,"delta":{"type":"citations_delta","citation":{"type":"x"}}}`,
		`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"not of a text block"}}`,
		`data: {"type":"from_the_future","index":"seven"}`, `data: {"type":"message_stop"}`))
	if err == nil {
		t.Errorf("an index that is no number was read: %+v", r)
	}
	r, err = readAll(lines(`data: {"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"s","name":"web_search","input":{}}}`,
		strings.ReplaceAll(textStart, `"index":0`, `"index":1`), strings.ReplaceAll(textPiece, `"index":0`, `"index":1`),
		`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"not of a text block"}}`,
		`data: {"type":"from_the_future"}`, `data: {"type":"message_stop"}`))
	if err != nil || len(r.Content) != 1 || r.Content[0].Text != "a" {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestBlocksOutOfOrderAreMalformed(t *testing.T) {
	t.Parallel()
	for _, stream := range []string{
		lines(strings.ReplaceAll(textStart, `"index":0`, `"index":1`)),
		lines(strings.ReplaceAll(textStart, `"index":0`, `"index":-1`)),
		lines(textStart, textStart),
		lines(textStart, strings.ReplaceAll(textPiece, `"index":0`, `"index":-1`)),
		lines(textStart, strings.ReplaceAll(textPiece, `"index":0`, `"index":9`)),
	} {
		if _, err := readAll(stream); llm.KindOf(err) != llm.Malformed {
			t.Errorf("%q: %v", stream, err)
		}
	}
}

func TestTooManyBlocksAreRefused(t *testing.T) {
	t.Parallel()
	block := `{"type":"tool_use","id":"x","name":"x","input":{}}`
	body := func(n int) string {
		return `{"type":"message","stop_reason":"tool_use","content":[` + strings.TrimSuffix(strings.Repeat(block+",", n), ",") + `]}`
	}
	if r, err := readAll(body(maxBlocks)); err != nil || len(r.ToolCalls()) != maxBlocks {
		t.Error(err)
	}
	if _, err := readAll(body(maxBlocks + 1)); llm.KindOf(err) != llm.TooLong {
		t.Error(err)
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add([]byte(lines(messageStart, textStart, textPiece, messageEnd)))
	f.Add([]byte(lines(`data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_0","name":"f","input":{}}}`,
		`data: {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":" "}}`,
		`data: {"type":"message_delta","delta":{"stop_reason":"max_tokens"}}`)))
	f.Add([]byte(`{"type":"message","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"redacted_thinking","data":"d"},{"type":"tool_use","name":"f","input":"{}"}],"stop_reason":"refusal","stop_details":{"explanation":"e"}}`))
	f.Add([]byte(`data: {"type":"error","error":[{}]}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		r, err := readAll(string(in))
		if err != nil {
			return
		}
		llmtest.CheckCalls(t, r)
		for _, c := range r.Content {
			if len(c.Opaque) > 0 && !json.Valid(c.Opaque) {
				t.Fatalf("opaque %s", c.Opaque)
			}
		}
	})
}

func TestPlainDeltaIsOnlyTaken(t *testing.T) {
	t.Parallel()
	const start = `{"type":"content_block_delta","index":12,"delta":{"type":"text_delta","text":`
	for in, want := range map[string]string{
		start + `"a \"b\"\n\u00e9"}}`:        "a \"b\"\n\u00e9",
		start + `"a"}}   `:                   "a",
		start + `"a"}`:                       "",
		start + `"a","x":"b"}}`:              "",
		start + `"a"},"delta":{"text":"b"}}`: "",
		start + `"a\"}}`:                     "",
		start + `null}}`:                     "",
		start:                                "",
		strings.Replace(start, "12", "-1", 1) + `"a"}}`:  "",
		strings.Replace(start, "12", "", 1) + `"a"}}`:    "",
		strings.Replace(start, "12", "1e9", 1) + `"a"}}`: "",
	} {
		if index, got, ok := plainDelta([]byte(in)); got != want || ok != (want != "") || ok && index != 12 {
			t.Errorf("%s: %d, %q, %v", in, index, got, ok)
		}
	}
}

func FuzzPlainDelta(f *testing.F) {
	f.Add([]byte(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a \"b\""}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		index, text, ok := plainDelta(in)
		if !ok {
			return
		}
		var e event
		if err := json.Unmarshal(in, &e); err != nil || e.Type != "content_block_delta" || e.Index != index || e.Delta.Text != text {
			t.Fatalf("%s: %d %q, decoded %+v, %v", in, index, text, e, err)
		}
	})
}
