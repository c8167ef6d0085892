package anthropic

import (
	"net/http/httptest"
	"strings"
	"testing"

	"parley/agentloop/llm"
	"parley/agentloop/llm/llmtest"
)

// One call with its server in the same process: more than twice what the client alone costs.
func BenchmarkStream(b *testing.B) {
	srv := httptest.NewServer(llmtest.New(llmtest.Sequence(llmtest.Reply{Text: strings.Repeat("a short answer ", 7)})))
	defer srv.Close()
	m, err := New(Options{Model: "m", BaseURL: srv.URL, HTTP: llmtest.Client(b)})
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
	m, err := New(Options{Model: "m", HTTP: llmtest.Client(b)})
	if err != nil {
		b.Fatal(err)
	}
	req := llm.Request{System: strings.Repeat("You are helpful. ", 1000), Volatile: "Monday", Tools: tools()}
	for range 20 {
		req.Messages = append(req.Messages, llmtest.User("a question of some length, as people write them"))
		req.Messages = append(req.Messages, toolTurn()...)
	}
	b.ReportAllocs()
	for b.Loop() {
		m.write(req, 0).body()
	}
}

func BenchmarkPiece(b *testing.B) {
	piece := []byte(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" word"}}`)
	a := &answer{blocks: []*block{{start: start{Type: "text"}}}}
	b.ReportAllocs()
	for b.Loop() {
		if err := a.take(piece); err != nil {
			b.Fatal(err)
		}
	}
}
