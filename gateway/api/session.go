package api

import (
	"net/http"
	"slices"
	"strconv"

	"parley/gateway/api/stream"
	"parley/gateway/api/view"
	"parley/gateway/api/wire"
	"parley/gateway/control"
	"parley/gateway/control/file"
	"parley/gateway/spec"
	"parley/workspace"
)

// sessions tells of transcripts and work folders.
type sessions struct {
	base
	streams *stream.Streams
}

func (s sessions) routes() []route {
	return []route{
		{"GET /v1/sessions/{key}/entries", s.entries, 0,
			operation{"sessions", "List stored events of a session", "after before session_id limit",
				nil, one(200, spec.List[view.Event]{}), ""}},
		{"GET /v1/sessions/{key}/events", s.events, 0,
			operation{"sessions", "Follow a session", "after session_id", nil, one(200, view.Event{}), sseMedia}},
		{"DELETE /v1/sessions/{key}/files", s.removeFile, soon,
			operation{"sessions", "Remove a file, or a folder with all that is in it, from the work folder of a session", "path folder",
				wire.NoBody{}, one(200, file.Removed{}), ""}},
	}
}

// entries lists the transcript of a generation, the newest unless ?session_id= names one, as the events that a
// stream sends.
func (s sessions) entries(w http.ResponseWriter, r *http.Request) error {
	p, err := wire.PageOf(r)
	if err != nil {
		return err
	}
	before, err := wire.Number(r, "before")
	if err != nil {
		return err
	}
	after, err := wire.Number(r, "after")
	if err != nil {
		return err
	}
	ses, err := s.control.Sessions.Of(r.Context(), s.call(r), control.SessionWord(r.PathValue("key")), r.URL.Query().Get("session_id"))
	if err != nil {
		return err
	}
	if r.URL.Query().Has("before") {
		return s.entriesBefore(w, ses, before, p.Limit)
	}
	entries, err := s.control.Sessions.EntriesAfter(ses, after, p.Limit+1)
	if err != nil {
		return err
	}
	var events []view.Event
	for _, e := range entries {
		events = append(events, view.Stored(e))
	}
	wire.Reply(w, http.StatusOK, spec.PageOf(events, p.Limit, func(e view.Event) string { return strconv.FormatInt(e.Sequence, 10) }))
	return nil
}

// entriesBefore lists the newest events that stand before one, oldest first; next, put into ?before=, goes further back.
func (s sessions) entriesBefore(w http.ResponseWriter, ses workspace.Session, before int64, limit int) error {
	entries, err := s.control.Sessions.EntriesBefore(ses, before, limit+1)
	if err != nil {
		return err
	}
	slices.Reverse(entries) // the one too many is the oldest
	var events []view.Event
	for _, e := range entries {
		events = append(events, view.Stored(e))
	}
	l := spec.PageOf(events, limit, func(e view.Event) string { return strconv.FormatInt(e.Sequence, 10) })
	slices.Reverse(l.Items)
	wire.Reply(w, http.StatusOK, l)
	return nil
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
	v, err := s.control.Files.Remove(r.Context(), s.call(r), control.SessionWord(r.PathValue("key")), q.Get("path"), folder == "true")
	if err == nil {
		wire.Reply(w, http.StatusOK, v)
	}
	return err
}
