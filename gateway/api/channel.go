package api

import (
	"context"
	"net/http"
	"sync"
)

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
