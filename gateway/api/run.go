package api

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"parley/gateway/api/stream"
	"parley/gateway/api/view"
	"parley/gateway/api/wire"
	"parley/gateway/control"
	"parley/gateway/control/all"
	"parley/gateway/control/run"
	"parley/gateway/spec"
)

// runs tells of turns.
type runs struct {
	base
	streams *stream.Streams
}

func (u runs) routes() []route {
	return []route{
		{"GET /v1/runs/{id}", u.get, 0,
			operation{"runs", "Read a run: why it was, what it did and when", "", nil, one(200, view.RunDetail{}), ""}},
		{"GET /v1/runs/{id}/events", u.events, 0,
			operation{"runs", "Follow a run to its end", "after", nil, one(200, view.Event{}), sseMedia}},
		{"GET /v1/runs/{id}/log", u.log, 0,
			operation{"runs", "Read what happened in a run, a line a piece", "offset limit", nil, one(200, spec.List[view.LogLine]{}), ""}},
		{"GET /v1/runs/{id}/steps/{call}/output", u.output, 0,
			operation{"runs", "Read all that a command wrote, where its result holds only the beginning and the end", "",
				nil, map[int]any{200: rawBody{}, 206: rawBody{}}, anyMedia}},
	}
}

func (u runs) get(w http.ResponseWriter, r *http.Request) error {
	d, err := u.control.Runs.Detail(r.Context(), u.call(r), control.RunWord(r.PathValue("id")))
	if err == nil {
		wire.Reply(w, http.StatusOK, view.DetailOf(d, r.PathValue("id")))
	}
	return err
}

func (u runs) events(w http.ResponseWriter, r *http.Request) error {
	return u.streams.Run(w, r, u.call(r))
}

func (u runs) log(w http.ResponseWriter, r *http.Request) error {
	p, err := wire.PageOf(r)
	if err != nil {
		return err
	}
	offset, err := wire.Number(r, "offset")
	if err != nil {
		return err
	}
	f, err := u.control.Runs.Of(r.Context(), u.call(r), control.RunWord(r.PathValue("id")))
	if err != nil {
		return err
	}
	entries, err := u.control.Runs.Lines(f)
	if err != nil {
		return err
	}
	lines := view.LogOf(entries)
	lines = lines[min(int(offset), len(lines)):]
	wire.Reply(w, http.StatusOK, spec.PageOf(lines, p.Limit, func(l view.LogLine) string { return strconv.Itoa(l.N + 1) }))
	return nil
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

// viewOf reads a run with its log.
func viewOf(ctx context.Context, c *all.Nouns, call control.Call, id string) (view.Run, error) {
	v, err := c.Runs.Read(ctx, call, control.RunWord(id))
	if err != nil {
		return view.Run{}, err
	}
	out := view.RunOf(v, id)
	found := run.Found{Run: v.Run}
	if v.Run.ID == "" && len(v.Inputs) > 0 {
		found.Input = v.Inputs[0]
	}
	entries, err := c.Runs.Lines(found)
	if err != nil {
		return out, err
	}
	out.Log = view.LogOf(entries)
	return out, nil
}
