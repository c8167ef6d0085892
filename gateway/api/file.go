package api

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"parley/channels"
	"parley/gateway/api/limit"
	"parley/gateway/api/wire"
	"parley/workspace"
)

const uploadWithin = 5 * time.Minute // for the whole body

// files are those that messages carry.
type files struct {
	base
	limits *limit.Limits
}

func (f files) routes() []route {
	return []route{
		{"POST /v1/files", f.put, upload | loose,
			operation{"page", "Upload a file that a message may carry", "name", rawBody{}, one(201, fileView{}), ""}},
		{"GET /v1/files/{ref}", f.get, bare,
			operation{"page", "Fetch a file", "name", nil, map[int]any{200: rawBody{}, 206: rawBody{}}, anyMedia}},
	}
}

// fileView is an uploaded file. Put its ref into a message.
type fileView struct {
	Ref  string `json:"ref"`
	Name string `json:"name"` // made safe
	MIME string `json:"mime"` // by its bytes
	Size int64  `json:"size"`
}

// put keeps the body of the request.
func (f files) put(w http.ResponseWriter, r *http.Request) error {
	call := f.call(r)
	leave, ok := f.limits.Uploads.Take(call.Actor.Person)
	if !ok {
		return wire.Busy("Too many files are coming in. Try again in a few seconds.")
	}
	defer leave()
	rc := http.NewResponseController(w)
	if err := rc.SetReadDeadline(time.Now().Add(uploadWithin)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")) // what it says is a hint
	body := http.MaxBytesReader(w, r.Body, workspace.MaxUpload+1)
	u, err := f.control.Files.Put(r.Context(), call, r.URL.Query().Get("name"), kind, max(r.ContentLength, 0), body)
	if errors.Is(err, channels.ErrTooLarge) {
		_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, workspace.MaxUpload)) // a browser reads the answer only when it has sent the rest
	}
	if err != nil {
		return err
	}
	wire.Reply(w, http.StatusCreated, fileView{u.Ref, u.Name, u.MIME, u.Size})
	return nil
}

// get sends a kept file. It is a stranger's: a browser shows it only where it is a picture, sound or plain text, and
// never as a page of this origin.
func (f files) get(w http.ResponseWriter, r *http.Request) error {
	u, kept, err := f.control.Files.Open(r.Context(), f.call(r), r.PathValue("ref"), r.URL.Query().Get("name"))
	if err != nil {
		return err
	}
	defer kept.Close()
	h := w.Header()
	kind, how := "application/octet-stream", "attachment"
	if harmless(u.MIME) {
		kind, how = u.MIME, "inline"
	}
	if kind == "text/plain" {
		kind += "; charset=utf-8"
	}
	h.Set("Content-Type", kind)
	h.Set("Content-Disposition", mime.FormatMediaType(how, map[string]string{"filename": u.Name}))
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("ETag", fmt.Sprintf("%q", u.Ref))
	if err := wire.WriteWithin(w, uploadWithin); err != nil {
		return err
	}
	http.ServeContent(w, r, "", time.Time{}, kept)
	return nil
}

// harmless are the types that a browser may show itself: nothing in them runs.
func harmless(mime string) bool {
	switch mime {
	case "image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp", "text/plain", "video/mp4", "video/webm",
		"video/ogg", "application/ogg":
		return true
	}
	return strings.HasPrefix(mime, "audio/")
}

// fileRequest names an uploaded file.
type fileRequest struct {
	Ref string `json:"ref"`
}

const maxFiles = 10 // in one message

// attached are the files that a message carries.
func attached(r *http.Request, b base, refs []fileRequest) ([]channels.Attachment, error) {
	if len(refs) > maxFiles {
		return nil, wire.Invalid(fmt.Sprintf("A message carries at most %d files.", maxFiles))
	}
	var list []channels.Attachment
	for _, f := range refs {
		a, err := b.control.Files.Attachment(r.Context(), b.call(r), f.Ref)
		if err != nil {
			return nil, err
		}
		list = append(list, a)
	}
	return list, nil
}
