package api

import (
	"net/http"
	"slices"
	"strconv"

	"parley/gateway/spec"
	"parley/workspace"
)

// entriesBefore lists the newest events that stand before one, oldest first; next, put into ?before=, goes further back.
func (s *server) entriesBefore(w http.ResponseWriter, ses workspace.Session, before int64, limit int) error {
	entries, err := s.opt.Control.EntriesBefore(ses, before, limit+1)
	if err != nil {
		return err
	}
	slices.Reverse(entries) // the one too many is the oldest
	var events []event
	for _, e := range entries {
		events = append(events, stored(e))
	}
	l := spec.PageOf(events, limit, func(e event) string { return strconv.FormatInt(e.Sequence, 10) })
	slices.Reverse(l.Items)
	reply(w, http.StatusOK, l)
	return nil
}
