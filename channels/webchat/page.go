package webchat

import (
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"

	"parley/workspace/lazy"
)

// dist is the built page, each file as brotli and gzip have it (ui/compress.ts): the plain ones would be in the binary for
// nobody. It stays in the binary's own pages of memory: nothing of it is read at the start.
//
//go:embed ui/dist/*.br ui/dist/*.gz ui/dist/assets/*.br ui/dist/assets/*.gz
var dist embed.FS

// policy is what the page may do: nothing that is not its own. No script and no style is inline.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; connect-src 'self'; font-src 'self'; " +
	"manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Page serves the page and its files. A path that is no file is one of the page's own addresses, and gets the page.
func Page() http.Handler { return page(sub(dist)) }

// sub is dist without the folders that only the build knows. The names are constant: it cannot fail.
func sub(f fs.FS) fs.FS {
	s, err := fs.Sub(f, "ui/dist")
	if err != nil {
		return f
	}
	return s
}

func page(files fs.FS) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(self), payment=(), usb=()")
		h.Set("Vary", "Accept-Encoding")
		name := strings.TrimPrefix(path.Clean("/"+r.URL.Path), "/")
		asset := strings.HasPrefix(name, "assets/")
		if name == "" || !fs.ValidPath(name) || !asset && !has(files, name) {
			name = "index.html"
		}
		if !has(files, name) {
			http.Error(w, "There is nothing at this path.", http.StatusNotFound)
			return
		}
		serveFile(w, r, files, name)
	})
}

// hashed are files whose name holds the hash of what is in them: a browser may keep them for ever.
var hashed = lazy.Regexp(`^assets/.+-[A-Za-z0-9_-]{8}\.[a-z0-9]+$`)

// forms are how the build has a file, best first, and what HTTP calls that.
var forms = []struct{ coding, ext string }{{"br", ".br"}, {"gzip", ".gz"}, {"", ""}}

// has says whether there is a file of this name, in whatever form. A form by itself is no file of the page.
func has(files fs.FS, name string) bool {
	if ext := path.Ext(name); ext == ".br" || ext == ".gz" {
		return false
	}
	for _, f := range forms {
		if isFile(files, name+f.ext) {
			return true
		}
	}
	return false
}

func isFile(files fs.FS, name string) bool {
	info, err := fs.Stat(files, name)
	return err == nil && info.Mode().IsRegular()
}

// serveFile sends a file in the best form that the browser takes, or nothing where it has that form.
func serveFile(w http.ResponseWriter, r *http.Request, files fs.FS, name string) {
	h := w.Header()
	h.Set("Content-Type", kindOf(name))
	stored, coding := formOf(r, files, name)
	f, err := files.Open(stored)
	if err != nil {
		http.Error(w, "There is nothing at this path.", http.StatusNotFound)
		return
	}
	defer f.Close()
	tag, err := tagOf(files, name, stored, coding)
	if err != nil {
		http.Error(w, "The file cannot be read.", http.StatusInternalServerError)
		return
	}
	h.Set("ETag", tag)
	h.Set("Cache-Control", "no-cache") // kept, and asked for again each time: the answer is short where it is the same
	if hashed().MatchString(name) {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	if holds(r, tag) {
		h.Del("Content-Type")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	var body io.Reader = f
	if stored != name && coding == "" { // who takes no coding gets what gzip has, unpacked
		if body, err = gzip.NewReader(f); err != nil {
			http.Error(w, "The file cannot be read.", http.StatusInternalServerError)
			return
		}
	} else if info, err := f.Stat(); err == nil {
		h.Set("Content-Length", strconv.FormatInt(info.Size(), 10))
	}
	if coding != "" {
		h.Set("Content-Encoding", coding)
	}
	if r.Method != http.MethodHead {
		_, _ = io.Copy(w, body) // who left needs no page
	}
}

// kindOf is a file's type. The machine's own table says it differently on each.
func kindOf(name string) string {
	switch path.Ext(name) {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".woff2":
		return "font/woff2"
	case ".webmanifest":
		return "application/manifest+json"
	}
	if kind := mime.TypeByExtension(path.Ext(name)); kind != "" {
		return kind
	}
	return "application/octet-stream"
}

// formOf is the stored form of a file that is sent, and its coding; without one it may have to be unpacked.
func formOf(r *http.Request, files fs.FS, name string) (stored, coding string) {
	for _, f := range forms {
		if (f.coding == "" || accepts(r, f.coding)) && isFile(files, name+f.ext) {
			return name + f.ext, f.coding
		}
	}
	return name + ".gz", ""
}

// tagOf is the entity tag of a form: the name where that has the hash in it, else a hash.
func tagOf(files fs.FS, name, stored, coding string) (string, error) {
	what := path.Base(name)
	if !hashed().MatchString(name) {
		data, err := fs.ReadFile(files, stored)
		if err != nil {
			return "", err
		}
		sum := sha256.Sum256(data)
		what = hex.EncodeToString(sum[:12])
	}
	if coding != "" {
		what += "-" + coding
	}
	return `"` + what + `"`, nil
}

// holds says whether the browser has what the tag names.
func holds(r *http.Request, tag string) bool {
	for one := range strings.SplitSeq(strings.Join(r.Header.Values("If-None-Match"), ","), ",") {
		if one = strings.TrimSpace(one); one == "*" || strings.TrimPrefix(one, "W/") == tag {
			return true
		}
	}
	return false
}

// accepts says whether the browser takes a content coding; "br;q=0" is a no.
func accepts(r *http.Request, coding string) bool {
	for one := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		name, weight, _ := strings.Cut(strings.TrimSpace(one), ";")
		if strings.EqualFold(strings.TrimSpace(name), coding) {
			_, q, weighed := strings.Cut(weight, "=")
			n, err := strconv.ParseFloat(strings.TrimSpace(q), 64)
			return !weighed || err == nil && n > 0
		}
	}
	return false
}
