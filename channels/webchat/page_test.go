package webchat

import (
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"testing"
	"testing/fstest"
)

// get asks for a file of the page with these headers, name and value in turn.
func get(t *testing.T, h http.Handler, method, where string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "/", nil)
	r.URL.Path = where
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// Files of the page are sent as they are in the build: compressed where the browser takes it, for ever where their name
// holds their hash; any other path is the page.
func TestPageFiles(t *testing.T) {
	t.Parallel()
	h := page(fstest.MapFS{"index.html": {Data: []byte("<page>")}, "index.html.br": {Data: []byte("br page")}, "robots.txt": {Data: []byte("no")},
		"assets/app-0a1B2c3D.js.br": {Data: []byte("br")}, "assets/app-0a1B2c3D.js.gz": {Data: gzipped(t, "plain")}, "assets/icon.svg": {Data: []byte("<svg>")}})
	const page, js, svg, text = "text/html; charset=utf-8", "text/javascript; charset=utf-8", "image/svg+xml", "text/plain; charset=utf-8"
	const ever = "public, max-age=31536000, immutable"
	gz := string(gzipped(t, "plain"))
	for _, c := range []struct{ path, accept, body, coding, kind, cache string }{
		{"/", "br", "br page", "br", page, "no-cache"},
		{"/", "gzip", "<page>", "", page, "no-cache"},
		{"/chat/agent:a:local:main", "", "<page>", "", page, "no-cache"},
		{"/assets", "", "<page>", "", page, "no-cache"},
		{"/index.html.br", "", "<page>", "", page, "no-cache"},
		{"/robots.txt", "", "no", "", text, "no-cache"},
		{"/assets/app-0a1B2c3D.js", "gzip, deflate, br", "br", "br", js, ever},
		{"/assets/app-0a1B2c3D.js", "gzip;q=1.0, br;q=0", gz, "gzip", js, ever},
		{"/assets/app-0a1B2c3D.js", "gzip; q=0.5, br; q=0.000", gz, "gzip", js, ever},
		{"/assets/app-0a1B2c3D.js", "br;q=x, gzip;q=0.0", "plain", "", js, ever},
		{"/assets/app-0a1B2c3D.js", "", "plain", "", js, ever},
		{"/assets/app-0a1B2c3D.js.gz", "", "There is nothing at this path.\n", "", text, ""},
		{"/assets/icon.svg", "br", "<svg>", "", svg, "no-cache"},
		{"/assets/gone-0a1B2c3D.js", "", "There is nothing at this path.\n", "", text, ""},
		{"/assets/../../../etc/passwd", "", "<page>", "", page, "no-cache"},
	} {
		w := get(t, h, "GET", c.path, "Accept-Encoding", c.accept)
		got := w.Header()
		if w.Body.String() != c.body || got.Get("Content-Encoding") != c.coding || got.Get("Content-Type") != c.kind || got.Get("Cache-Control") != c.cache {
			t.Errorf("%s for %q: %q, %v", c.path, c.accept, w.Body, got)
		}
		if got.Get("Content-Security-Policy") != policy || got.Get("Vary") != "Accept-Encoding" || got.Get("Accept-Ranges") != "" {
			t.Errorf("%s without its policy, or kept for who takes another coding, or in ranges: %v", c.path, got)
		}
	}
}

// What a browser has is not sent again, HEAD says what GET would, and a range is answered with the whole.
func TestPageAskedAgain(t *testing.T) {
	t.Parallel()
	h := page(fstest.MapFS{"index.html.br": {Data: []byte("br page")}, "index.html.gz": {Data: gzipped(t, "<page>")},
		"assets/app-0a1B2c3D.js.br": {Data: []byte("br")}, "assets/app-0a1B2c3D.js.gz": {Data: gzipped(t, "plain")}})
	tags := map[string]bool{}
	for _, where := range []string{"/", "/assets/app-0a1B2c3D.js"} {
		for _, coding := range []string{"br", "gzip", ""} {
			first := get(t, h, "GET", where, "Accept-Encoding", coding)
			tag := first.Header().Get("ETag")
			if tags[tag] || tag == "" {
				t.Errorf("%s as %q: the tag %q is another's, or none", where, coding, tag)
			}
			tags[tag] = true
			for _, has := range []string{tag, `"other", W/` + tag, "*"} {
				w := get(t, h, "GET", where, "Accept-Encoding", coding, "If-None-Match", has)
				if w.Code != http.StatusNotModified || w.Body.Len() > 0 || w.Header().Get("Cache-Control") != first.Header().Get("Cache-Control") || w.Header().Get("Vary") == "" {
					t.Errorf("%s as %q for who has %s: %d %v %q", where, coding, has, w.Code, w.Header(), w.Body)
				}
			}
			if w := get(t, h, "GET", where, "Accept-Encoding", coding, "If-None-Match", `"other"`); w.Code != http.StatusOK || w.Body.String() != first.Body.String() {
				t.Errorf("%s as %q for who has another: %d", where, coding, w.Code)
			}
			head := get(t, h, "HEAD", where, "Accept-Encoding", coding)
			if head.Body.Len() > 0 || head.Header().Get("Content-Length") != first.Header().Get("Content-Length") || head.Header().Get("Content-Encoding") != first.Header().Get("Content-Encoding") {
				t.Errorf("HEAD of %s as %q: %v %q", where, coding, head.Header(), head.Body)
			}
			if w := get(t, h, "GET", where, "Accept-Encoding", coding, "Range", "bytes=1-"); w.Code != http.StatusOK || w.Body.String() != first.Body.String() {
				t.Errorf("a range of %s as %q: %d %q", where, coding, w.Code, w.Body)
			}
		}
	}
}

// The embedded page is the one that lies in ui/dist, whole, for every browser. What brotli made is unpacked by .ci/ui, which has Node.js.
func TestPageIsWhole(t *testing.T) {
	t.Parallel()
	dir, h, files := os.DirFS("ui/dist"), Page(), 0
	err := fs.WalkDir(dir, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) == ".br" || path.Ext(name) == ".gz" {
			return err
		}
		files++
		plain, err := fs.ReadFile(dir, name)
		if err != nil {
			return err
		}
		for _, coding := range []string{"br", "gzip", ""} {
			w := get(t, h, "GET", "/"+name, "Accept-Encoding", coding)
			if w.Code != http.StatusOK || w.Header().Get("Content-Encoding") != coding {
				t.Errorf("%s as %q: %d %v", name, coding, w.Code, w.Header())
			}
			body := w.Body.Bytes()
			if coding == "gzip" {
				body = unzipped(t, body)
			}
			if coding != "br" && !bytes.Equal(body, plain) {
				t.Errorf("%s as %q is not the file", name, coding)
			}
		}
		return nil
	})
	if err != nil || files < 3 {
		t.Fatalf("%d files, %v", files, err)
	}
}

func gzipped(t *testing.T, s string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := io.WriteString(w, s); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func unzipped(t *testing.T, data []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
