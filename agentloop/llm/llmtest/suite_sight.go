package llmtest

import (
	"encoding/base64"
	"strings"

	"parley/agentloop/llm"
	"parley/workspace"
)

// What an adapter promises of pictures and documents.

const (
	picture  = "\x89PNG\r\n\x1a\n…"
	document = "%PDF-1.7 …"
)

func withBlobs(o *Options) {
	o.Blobs = func(ref string) ([]byte, error) { return []byte(ref), nil }
}

// look is a request with a picture and a document.
func look() llm.Request {
	return llm.Request{Messages: []llm.Message{{Role: llm.User, Content: []workspace.Content{{Kind: workspace.Text, Text: "look"},
		{Kind: workspace.Image, Name: "cat.png", MIME: "image/png", Blob: picture, Text: "[attached image: inbox/cat.png]"},
		{Kind: workspace.FileRef, Name: "a.pdf", MIME: "application/pdf", Blob: document, Text: "[attached file: inbox/a.pdf]"}}}}}
}

func holds(body, blob string) bool {
	return strings.Contains(body, base64.StdEncoding.EncodeToString([]byte(blob)))
}

func showsPictures(r *rig) {
	srv, m := r.serve(Echo, withBlobs)
	body := Sent(r, srv, m, look())
	if !holds(body, picture) || holds(body, document) != r.Wire.documents {
		r.Errorf("not shown: %s", body)
	}
	if !strings.Contains(body, "inbox/cat.png") || !strings.Contains(body, "inbox/a.pdf") {
		r.Errorf("not told: %s", body)
	}
	srv, m = r.serve(Echo, nil)
	body = Sent(r, srv, m, look())
	if !strings.Contains(body, "cat.png") || !strings.Contains(body, "a.pdf") || strings.Contains(body, "base64") {
		r.Errorf("without a blob store: %s", body)
	}
}

func tellsWhatIsNotSeen(r *rig) {
	for says, lasts := range r.Wire.blind {
		srv, m := r.serve(func(q *Request) Reply {
			if holds(string(q.Body), picture) {
				return Reply{Status: 400, ErrorBody: r.Wire.failure(400, says)}
			}
			return Echo(q)
		}, withBlobs)
		if _, err := m.Stream(r.Context(), Ask("hi"), nil); err != nil { // of a server that is known to work nothing else is tried
			r.Fatal(err)
		}
		for range 2 {
			if body := Sent(r, srv, m, look()); !strings.Contains(body, "[attached image: inbox/cat.png] (only told, not shown") {
				r.Fatal(body)
			}
		}
		if want := map[bool]int{true: 4, false: 5}[lasts]; srv.Count() != want {
			r.Errorf("%s: %d requests, want %d", says, srv.Count(), want)
		}
	}
}

func takesSightFromOptions(r *rig) {
	for _, c := range []struct {
		sight llm.Sight
		model string
		shown bool
	}{
		{llm.SightUnknown, "test-1", true}, {llm.SightUnknown, "deepseek-chat", false},
		{llm.Sees, "deepseek-chat", true}, {llm.Blind, "gpt-5", false},
	} {
		srv, m := r.serve(Echo, func(o *Options) {
			withBlobs(o)
			o.Sight, o.Model = c.sight, c.model
		})
		read := c.shown && r.Wire.documents || c.sight == llm.Sees
		if body := Sent(r, srv, m, look()); holds(body, picture) != c.shown || holds(body, document) != read {
			r.Errorf("%+v: %s", c, body)
		}
	}
}
