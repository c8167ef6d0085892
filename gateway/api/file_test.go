package api_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	"parley/gateway/client"
)

// upload sends a file and returns what was kept of it.
func (r *rig) upload(name, kind, data string) map[string]any {
	r.t.Helper()
	a := r.ask("POST", "/v1/files?name="+name, data, func(q *http.Request) { q.Header.Set("Content-Type", kind) })
	if a.StatusCode != 201 {
		r.t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	return a.fields(r.t)
}

const pixel = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89"

// A stranger's file never becomes a page of Parley's, whatever it says it is; what it is is read from its bytes.
func filesComeBackHarmless(t *testing.T, r *rig) {
	for _, f := range []struct{ name, kind, data, mime, as, how string }{
		{"a.png", "text/html", pixel, "image/png", "image/png", "inline"},
		{"notes.txt", "text/html", "plain words", "text/plain", "text/plain; charset=utf-8", "inline"},
		{"x.png", "image/png", "<!doctype html><script>alert(1)</script>", "text/html", "application/octet-stream", "attachment"},
		{"x.svg", "image/png", `<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>`, "image/svg+xml", "application/octet-stream", "attachment"},
		{"x.pdf", "text/plain", "%PDF-1.7\n1 0 obj", "application/pdf", "application/octet-stream", "attachment"},
		{"x.xml", "text/plain", `<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"/>`, "", "application/octet-stream", "attachment"},
		{"..%2F..%2Fetc%2Fpa%22ss%0D%0Awd", "text/plain", "words", "text/plain", "text/plain; charset=utf-8", "inline"},
	} {
		kept := r.upload(f.name, f.kind, f.data)
		if f.mime != "" && kept["mime"] != f.mime || kept["size"] != float64(len(f.data)) || strings.ContainsAny(kept["name"].(string), "/\\\"\r\n") {
			t.Errorf("%s: %v", f.name, kept)
		}
		a := r.ask("GET", "/v1/files/"+kept["ref"].(string), "", nil)
		h := a.Header
		if a.body != f.data || h.Get("Content-Type") != f.as || !strings.HasPrefix(h.Get("Content-Disposition"), f.how+";") || strings.Contains(h.Get("Content-Disposition"), "etc/") {
			t.Errorf("%s: %q of %q as %q", f.name, h.Get("Content-Disposition"), h.Get("Content-Type"), a.body)
		}
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Content-Security-Policy") != "default-src 'none'; sandbox" || h.Get("Cross-Origin-Resource-Policy") != "same-origin" {
			t.Errorf("%s: %v", f.name, h)
		}
	}
	for _, ref := range []string{"x", strings.Repeat("a", 64), "..%2F..%2Ftoken", strings.Repeat("A", 64)} {
		r.ask("GET", "/v1/files/"+ref, "", nil).wantProblem(t, 404, "not_found")
	}
	a := r.ask("GET", "/v1/files/"+r.upload("s.bin", "", pixel+"0123456789")["ref"].(string), "", func(q *http.Request) { q.Header.Set("Range", "bytes=-4") })
	if a.StatusCode != 206 || a.body != "6789" {
		t.Errorf("a range: %d %q", a.StatusCode, a.body)
	}
}

// T18: what is too large is refused before it is read, or as soon as it is, and kept nowhere; a day has its end.
func uploadsHaveCaps(t *testing.T, r *rig) {
	raw := func(q *http.Request) { q.Header.Set("Content-Type", "application/octet-stream") }
	big := string(bytes.Repeat([]byte("0"), 20<<20))
	r.ask("POST", "/v1/files", big+"1", raw).wantProblem(t, 413, "too_large")
	r.ask("POST", "/v1/files", big+"1", func(q *http.Request) {
		raw(q)
		q.ContentLength = -1 // it does not say how much comes
	}).wantProblem(t, 413, "too_large")
	r.ask("POST", "/v1/files", "", raw).wantProblem(t, 400, "invalid")
	for i := range 25 {
		if a := r.ask("POST", "/v1/files", big[:len(big)-1]+string(rune('a'+i)), raw); a.StatusCode != 201 {
			t.Fatalf("file %d: %d %s", i, a.StatusCode, a.body)
		}
	}
	r.ask("POST", "/v1/files", "one more", raw).wantProblem(t, 400, "invalid")
	r.clock.add(24*time.Hour + time.Minute)
	if a := r.ask("POST", "/v1/files", "one more", raw); a.StatusCode != 201 {
		t.Errorf("on the next day: %d %s", a.StatusCode, a.body)
	}
}

// A file that was uploaded goes with a message of the page and of the API, over a restart, and stands in the transcript.
func uploadedFileGoesWithAMessage(t *testing.T, r *rig) (after func(*testing.T, *rig)) {
	ref := r.upload("shopping.txt", "text/plain", "milk and bread")["ref"].(string)
	return func(t *testing.T, r *rig) {
		p := r.page(r.signIn())
		p.send(map[string]any{"type": "follow", "key": r.key()})
		p.send(map[string]any{"type": "message", "id": "file", "session": r.session, "text": "what is on it?", "files": []map[string]any{{"ref": ref}}})
		p.until("the file in the transcript", func(f map[string]any) bool {
			text := string(mustJSON(t, f))
			return event("item.completed")(f) && strings.Contains(text, ref) && strings.Contains(text, "shopping.txt")
		})
		p.until("the end", event("turn.ended"))
		a := r.post(`"text":"and now?","wait":20,"files":[{"ref":"`+ref+`"}]`, nil)
		if a.StatusCode != 200 {
			t.Fatalf("%d %s", a.StatusCode, a.body)
		}
		r.ask("POST", "/v1/messages", `{"text":"x","files":[{"ref":"`+strings.Repeat("b", 64)+`"}]}`, nil).wantProblem(t, 404, "not_found")
		r.send(client.Message{Text: "bye", Wait: 20})
		asked := 0
		for len(r.model.asked) > 0 {
			if strings.Contains(<-r.model.asked, "shopping.txt") {
				asked++
			}
		}
		if asked < 2 {
			t.Errorf("the model is told of the file %d times", asked)
		}
	}
}
