package openai

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"parley/agentloop/llm"
	"parley/agentloop/llm/llmtest"
	"parley/agentloop/llm/wire"
)

// One call with its server in the same process: twice what the client alone costs.
func BenchmarkStream(b *testing.B) {
	srv := httptest.NewServer(llmtest.New(llmtest.Sequence(llmtest.Reply{Text: strings.Repeat("a short answer ", 7)})))
	defer srv.Close()
	m, err := New(Options{Model: "m", BaseURL: srv.URL + "/v1", HTTP: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}})
	if err != nil {
		b.Fatal(err)
	}
	req := llm.Request{System: strings.Repeat("You are helpful. ", 500), Volatile: "Monday", Tools: tools(), Messages: []llm.Message{llmtest.User("hi")}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.Stream(b.Context(), req, func(llm.Delta) {}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBody(b *testing.B) {
	m := &Model{o: Options{Model: "m"}, prefixes: wire.Prefixes{Encode: encodePrefix}}
	req := llm.Request{System: strings.Repeat("You are helpful. ", 1000), Volatile: "Monday", Tools: tools()}
	for range 20 {
		req.Messages = append(req.Messages, llmtest.User("a question of some length, as people write them"))
		req.Messages = append(req.Messages, toolTurn()...)
	}
	b.ReportAllocs()
	for b.Loop() {
		m.body(req, 0)
	}
}

func BenchmarkChunk(b *testing.B) {
	chunk := []byte(`{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":" word"},"finish_reason":null}]}`)
	a := &answer{}
	b.ReportAllocs()
	for b.Loop() {
		if err := a.take("", chunk); err != nil {
			b.Fatal(err)
		}
	}
}
