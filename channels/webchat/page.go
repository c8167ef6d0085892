package webchat

import (
	"embed"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"

	"parley/workspace/lazy"
)

// dist is the built page. It stays in the binary's own pages of memory: nothing of it is read at the start.
//
//go:embed all:ui/dist
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
		if name == "" || !fs.ValidPath(name) || !asset && !isFile(files, name) {
			name = "index.html"
		}
		if !isFile(files, name) {
			http.Error(w, "There is nothing at this path.", http.StatusNotFound)
			return
		}
		h.Set("Cache-Control", "no-store")
		if hashed().MatchString(name) {
			h.Set("Cache-Control", "public, max-age=31536000, immutable")
		}
		serveFile(w, r, files, name)
	})
}

// hashed are files whose name holds the hash of what is in them: a browser may keep them for ever.
var hashed = lazy.Regexp(`^assets/.+-[A-Za-z0-9_-]{8}\.[a-z0-9]+$`)

func isFile(files fs.FS, name string) bool {
	info, err := fs.Stat(files, name)
	return err == nil && info.Mode().IsRegular()
}

// serveFile sends a file, compressed where the build has it so and the browser takes it.
func serveFile(w http.ResponseWriter, r *http.Request, files fs.FS, name string) {
	h := w.Header()
	kind := mime.TypeByExtension(path.Ext(name))
	switch path.Ext(name) { // not what the machine's own table says
	case ".js":
		kind = "text/javascript; charset=utf-8"
	case ".woff2":
		kind = "font/woff2"
	case ".webmanifest":
		kind = "application/manifest+json"
	}
	if kind == "" {
		kind = "application/octet-stream"
	}
	h.Set("Content-Type", kind)
	for _, way := range []struct{ coding, ext string }{{"br", ".br"}, {"gzip", ".gz"}} {
		if accepts(r, way.coding) && isFile(files, name+way.ext) {
			h.Set("Content-Encoding", way.coding)
			name += way.ext
			break
		}
	}
	f, err := files.Open(name)
	if err != nil {
		http.Error(w, "There is nothing at this path.", http.StatusNotFound)
		return
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil {
		h.Set("Content-Length", strconv.FormatInt(info.Size(), 10))
	}
	if r.Method != http.MethodHead {
		_, _ = io.Copy(w, f) // who left needs no page
	}
}

// accepts says whether the browser takes a content coding; "br;q=0" is a no.
func accepts(r *http.Request, coding string) bool {
	for _, one := range strings.Split(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		name, weight, _ := strings.Cut(strings.TrimSpace(one), ";")
		if strings.EqualFold(strings.TrimSpace(name), coding) {
			return strings.ReplaceAll(weight, " ", "") != "q=0"
		}
	}
	return false
}
