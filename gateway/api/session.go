package api

import (
	"net/http"

	"parley/gateway/api/stream"
	"parley/gateway/api/wire"
	"parley/gateway/control"
	"parley/gateway/control/file"
	"parley/gateway/control/view"
)

// sessions tells of transcripts and work folders.
type sessions struct {
	base
	streams *stream.Streams
}

func (s sessions) routes() []route {
	return []route{
		{"GET /v1/sessions/{key}/events", s.events, 0,
			operation{"sessions", "Follow a session", "after session_id", nil, one(200, view.Event{}), sseMedia}},
		{"DELETE /v1/sessions/{key}/files", s.removeFile, soon,
			operation{"sessions", "Remove a file, or a folder with all that is in it, from the work folder of a session", "path folder",
				wire.NoBody{}, one(200, file.Removed{}), ""}},
	}
}

// events streams a session. It may be watched before anything was said in it.
func (s sessions) events(w http.ResponseWriter, r *http.Request) error {
	return s.streams.Session(w, r, s.call(r))
}

// removeFile removes ?path= from the work folder of a session; a folder only with ?folder=true.
func (s sessions) removeFile(w http.ResponseWriter, r *http.Request) error {
	if err := wire.Decode(w, r, &wire.NoBody{}); err != nil {
		return err
	}
	q := r.URL.Query()
	folder := q.Get("folder")
	switch {
	case len(q["path"]) != 1 || q.Get("path") == "":
		return wire.Invalid("Say what to remove: path, once.")
	case folder != "" && folder != "true" && folder != "false":
		return wire.Invalid("folder is true or false.")
	}
	v, err := file.Remove.Call(r.Context(), s.control.Files, s.call(r),
		file.RemoveIn{Session: control.SessionWord(r.PathValue("key")), Path: q.Get("path"), Folder: folder == "true"})
	if err == nil {
		wire.Reply(w, http.StatusOK, v)
	}
	return err
}
