package api

import (
	"net/http"
	"time"

	"parley/gateway/api/stream"
	"parley/gateway/api/wire"
	"parley/gateway/control"
	"parley/gateway/control/view"
)

// runs tells of turns.
type runs struct {
	base
	streams *stream.Streams
}

func (u runs) routes() []route {
	return []route{
		{"GET /v1/runs/{id}/events", u.events, 0,
			operation{"runs", "Follow a run to its end", "after", nil, one(200, view.Event{}), sseMedia}},
		{"GET /v1/runs/{id}/steps/{call}/output", u.output, 0,
			operation{"runs", "Read all that a command wrote, where its result holds only the beginning and the end", "",
				nil, map[int]any{200: rawBody{}, 206: rawBody{}}, anyMedia}},
	}
}

func (u runs) events(w http.ResponseWriter, r *http.Request) error {
	return u.streams.Run(w, r, u.call(r))
}

// output sends all that a command wrote. It is a stranger's text, so no page.
func (u runs) output(w http.ResponseWriter, r *http.Request) error {
	f, err := u.control.Runs.Output(r.Context(), u.call(r), control.RunWord(r.PathValue("id")), r.PathValue("call"))
	if err != nil {
		return err
	}
	defer f.Close()
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	if err := wire.WriteWithin(w, uploadWithin); err != nil {
		return err
	}
	http.ServeContent(w, r, "", time.Time{}, f)
	return nil
}
