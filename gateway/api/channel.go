package api

import (
	"net/http"

	"parley/gateway/control"
)

func (s *server) listChannels(w http.ResponseWriter, r *http.Request) error {
	return whole[control.Channel](w)(s.opt.Control.Channels(r.Context(), s.call(r)))
}

func (s *server) getChannel(w http.ResponseWriter, r *http.Request) error {
	ch, err := s.opt.Control.Channel(r.Context(), s.call(r), r.PathValue("name"))
	if err == nil {
		reply(w, http.StatusOK, ch)
	}
	return err
}

// testChannel has the channel ask its network; that may take 20 seconds.
func (s *server) testChannel(w http.ResponseWriter, r *http.Request) error {
	if err := decode(w, r, &struct{}{}); err != nil {
		return err
	}
	t, err := s.opt.Control.TestChannel(r.Context(), s.call(r), r.PathValue("name"))
	if err == nil {
		reply(w, http.StatusOK, t)
	}
	return err
}
