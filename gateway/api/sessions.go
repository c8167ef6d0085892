package api

import (
	"net/http"
	"strconv"

	"parley/gateway/control"
	"parley/gateway/spec"
)

// sessionEntries lists the transcript of a generation, the newest unless ?session_id= names one, as the events that a
// stream sends.
func (s *server) sessionEntries(w http.ResponseWriter, r *http.Request) error {
	p, err := pageOf(r)
	if err != nil {
		return err
	}
	before, err := number(r, "before")
	if err != nil {
		return err
	}
	after, err := number(r, "after")
	if err != nil {
		return err
	}
	ses, err := s.opt.Control.SessionOf(r.Context(), s.call(r), control.SessionWord(r.PathValue("key")), r.URL.Query().Get("session_id"))
	if err != nil {
		return err
	}
	if r.URL.Query().Has("before") {
		return s.entriesBefore(w, ses, before, p.limit)
	}
	entries, err := s.opt.Control.EntriesOf(ses, after, p.limit+1)
	if err != nil {
		return err
	}
	var events []event
	for _, e := range entries {
		events = append(events, stored(e))
	}
	reply(w, http.StatusOK, spec.PageOf(events, p.limit, func(e event) string { return strconv.FormatInt(e.Sequence, 10) }))
	return nil
}
