package api

import (
	"context"
	"net/http"
	"sync"

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

// login begins to link a channel. What it answers holds the first code, which may take some seconds.
func (s *server) login(w http.ResponseWriter, r *http.Request) error {
	var body loginRequest
	if err := decode(w, r, &body); err != nil {
		return err
	}
	l, err := s.opt.Control.LoginChannel(r.Context(), s.call(r), r.PathValue("name"), body.Phone)
	if err == nil {
		reply(w, http.StatusAccepted, l)
	}
	return err
}

// loginStep holds the question until there is something new.
func (s *server) loginStep(w http.ResponseWriter, r *http.Request) error {
	after := -1
	if r.URL.Query().Has("after") {
		n, err := number(r, "after")
		if err != nil {
			return err
		}
		after = int(n)
	}
	leave, err := s.hold(s.call(r).Actor.Person)
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel := context.WithCancel(r.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { // a shutdown does not wait for a step
		select {
		case <-s.closing:
			cancel()
		case <-ctx.Done():
		}
	})
	l, err := s.opt.Control.ChannelLogin(ctx, s.call(r), r.PathValue("name"), after)
	if err == nil {
		reply(w, http.StatusOK, l)
	}
	return err
}

func (s *server) cancelLogin(w http.ResponseWriter, r *http.Request) error {
	if err := decode(w, r, &struct{}{}); err != nil {
		return err
	}
	if err := s.opt.Control.CancelLogin(r.Context(), s.call(r), r.PathValue("name")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *server) logout(w http.ResponseWriter, r *http.Request) error {
	if err := decode(w, r, &struct{}{}); err != nil {
		return err
	}
	ch, err := s.opt.Control.LogoutChannel(r.Context(), s.call(r), r.PathValue("name"))
	if err == nil {
		reply(w, http.StatusOK, ch)
	}
	return err
}
