package api

import (
	"net/http"

	"parley/gateway/api/stream"
	"parley/gateway/control/view"
)

// sessions has transcripts followed.
type sessions struct {
	base
	streams *stream.Streams
}

func (s sessions) routes() []route {
	return []route{
		{"GET /v1/sessions/{key}/events", s.events, 0,
			operation{"sessions", "Follow a session", "after session_id", nil, one(200, view.Event{}), sseMedia}},
	}
}

// events streams a session. It may be watched before anything was said in it.
func (s sessions) events(w http.ResponseWriter, r *http.Request) error {
	return s.streams.Session(w, r, s.call(r))
}
