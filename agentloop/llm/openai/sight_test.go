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
	if err := json.Unmarshal([]byte(sent(t, srv, m, pictures(m))), &msg); err != nil || len(msg.Messages[0].Content) != 2 {
		t.Fatalf("%s, %v: an unknown server is not sent documents", srv.Bodies()[0], err)
	}
	m.given = 0
	if err := json.Unmarshal([]byte(sent(t, srv, m, pictures(m))), &msg); err != nil {
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

func TestWhatAServerDoesNotSeeIsToldOnceItRefused(t *testing.T) {
	t.Parallel()
	for says, lasts := range map[string]bool{
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
	} {
		t.Run(says, func(t *testing.T) {
			t.Parallel()
			srv, m := serve(t, func(q *llmtest.Request) llmtest.Reply {
				if strings.Contains(string(q.Body), `"type":"image_url"`) {
					body, _ := json.Marshal(map[string]any{"error": map[string]string{"message": says}})
					return llmtest.Reply{Status: 400, ErrorBody: string(body)}
				}
				return llmtest.Echo(q)
			})
			m.proven.Store(true)
			for range 2 {
				if b := sent(t, srv, m, pictures(m)); !strings.Contains(b, "[attached image: inbox/cat.jpg] (only told, not shown") {
					t.Fatal(b)
				}
			}
			if want := map[bool]int{true: 3, false: 4}[lasts]; srv.Count() != want {
				t.Errorf("%d requests, want %d", srv.Count(), want)
			}
		})
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
		if b := sent(t, srv, m, pictures(m)); !strings.Contains(b, "inbox/a.pdf] (only told") || !strings.Contains(b, "cGl4ZWxz") {
			t.Fatal(b)
		}
	}
	if srv.Count() != 3 {
		t.Errorf("%d requests", srv.Count())
	}
}

func TestSightIsTakenFromTheConfiguration(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		sight llm.Sight
		model string
		shown bool
	}{
		{llm.SightUnknown, "test-1", true}, {llm.SightUnknown, "deepseek-chat", false}, {llm.Sees, "deepseek-chat", true}, {llm.Blind, "gpt-5", false},
	} {
		srv := llmtest.Start(t, llmtest.Echo)
		srv.Key = testKey
		m := open(t, srv, func(o *Options) { o.Sight, o.Model = c.sight, c.model })
		if b := sent(t, srv, m, pictures(m)); strings.Contains(b, "cGl4ZWxz") != c.shown || strings.Contains(b, "cGFnZXM") != (c.sight == llm.Sees) {
			t.Errorf("%+v: %s", c, b)
		}
	}
}
