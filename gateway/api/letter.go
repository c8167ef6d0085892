package api

import (
	"context"
	"net/http"

	"parley/gateway/control"
)

// listOutbound lists answers that could not be delivered: ?state=dead, unknown or parked; without it all of them.
func (s *server) listOutbound(w http.ResponseWriter, r *http.Request) error {
	p, err := pageOf(r)
	if err != nil {
		return err
	}
	found, err := s.opt.Control.Letters(r.Context(), s.call(r), r.URL.Query().Get("state"), p.after, p.limit+1)
	if err != nil {
		return err
	}
	reply(w, http.StatusOK, listOf(found, p.limit, func(l control.Letter) string { return string(l.ID) }))
	return nil
}

func (s *server) retryOutbound(w http.ResponseWriter, r *http.Request) error {
	return s.decideOutbound(w, r, s.opt.Control.RetryLetter)
}

func (s *server) dropOutbound(w http.ResponseWriter, r *http.Request) error {
	return s.decideOutbound(w, r, s.opt.Control.DropLetter)
}

func (s *server) decideOutbound(w http.ResponseWriter, r *http.Request, decide func(context.Context, control.Call, string) (control.Letter, error)) error {
	if err := decode(w, r, &struct{}{}); err != nil {
		return err
	}
	l, err := decide(r.Context(), s.call(r), r.PathValue("id"))
	if err == nil {
		reply(w, http.StatusOK, l)
	}
	return err
}
