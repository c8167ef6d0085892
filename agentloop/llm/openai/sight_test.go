package openai

import (
	"encoding/json"
	"strings"
	"testing"

	"parley/agentloop/llm"
	"parley/agentloop/llm/llmtest"
	"parley/workspace"
)

func pictures(m *Model) llm.Request {
	m.o.Blobs = func(ref string) ([]byte, error) { return []byte(ref), nil }
	return llm.Request{Messages: []llm.Message{{Role: llm.User, Content: []workspace.Content{{Kind: workspace.Text, Text: "look"},
		{Kind: workspace.Image, Name: "cat.jpg", MIME: "image/jpeg", Blob: "pixels", Text: "[attached image: inbox/cat.jpg]"},
		{Kind: workspace.FileRef, Name: "a.pdf", MIME: pdf, Blob: "pages", Text: "[attached file: inbox/a.pdf]"}}}}}
}

func TestPicturesAndDocumentsAreParts(t *testing.T) {
	t.Parallel()
	srv, m := serve(t, llmtest.Echo)
	var msg struct {
		Messages []struct{ Content []json.RawMessage }
	}
	if err := json.Unmarshal([]byte(llmtest.Sent(t, srv, m, pictures(m))), &msg); err != nil || len(msg.Messages[0].Content) != 2 {
		t.Fatalf("%s, %v: an unknown server is not sent documents", srv.Bodies()[0], err)
	}
	m.given = 0
	if err := json.Unmarshal([]byte(llmtest.Sent(t, srv, m, pictures(m))), &msg); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{`{"type":"text","text":"look\n\n[attached image: inbox/cat.jpg]\n\n[attached file: inbox/a.pdf]"}`,
		`{"type":"image_url","image_url":{"url":"data:image/jpeg;base64,cGl4ZWxz"}}`,
		`{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,cGFnZXM="}}`} {
		if got := string(msg.Messages[0].Content[i]); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestDocumentsAreToldWhereTheyAreRefused(t *testing.T) {
	t.Parallel()
	srv, m := serve(t, func(q *llmtest.Request) llmtest.Reply {
		if strings.Contains(string(q.Body), `"type":"file"`) {
			return llmtest.Reply{Status: 400, ErrorBody: `{"error":{"message":"Unsupported content part type: file"}}`}
		}
		return llmtest.Echo(q)
	})
	m.proven.Store(true)
	m.given = 0
	for range 2 {
		if b := llmtest.Sent(t, srv, m, pictures(m)); !strings.Contains(b, "inbox/a.pdf] (only told") || !strings.Contains(b, "cGl4ZWxz") {
			t.Fatal(b)
		}
	}
	if srv.Count() != 3 {
		t.Errorf("%d requests", srv.Count())
	}
}
