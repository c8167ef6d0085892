package api

import (
	"math"
	"net/http"
	"strconv"

	"parley/gateway/control"
)

// listAudit lists the newest rows of the audit log, or those behind ?after=, oldest first; with ?before= or ?kind= newest
// first, a page behind the other.
func (s *server) listAudit(w http.ResponseWriter, r *http.Request) error {
	p, err := pageOf(r)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	if q.Get("before") != "" || q.Get("kind") != "" {
		return s.auditBack(w, r, p.limit)
	}
	after := int64(-1)
	if q.Get("after") != "" {
		if after, err = number(r, "after"); err != nil {
			return err
		}
	}
	found, err := s.opt.Control.Audit(r.Context(), s.call(r), after, p.limit)
	if err != nil {
		return err
	}
	l := control.List[control.AuditItem]{Items: found}
	if after >= 0 && len(found) == p.limit {
		next := strconv.FormatInt(found[len(found)-1].N, 10)
		l.Next = &next
	}
	reply(w, http.StatusOK, l)
	return nil
}

func (s *server) auditBack(w http.ResponseWriter, r *http.Request, limit int) error {
	before := int64(math.MaxInt64)
	if r.URL.Query().Get("before") != "" {
		var err error
		if before, err = number(r, "before"); err != nil {
			return err
		}
	}
	found, next, err := s.opt.Control.AuditBack(r.Context(), s.call(r), before, r.URL.Query().Get("kind"), limit)
	if err != nil {
		return err
	}
	l := control.List[control.AuditItem]{Items: found}
	if next > 0 {
		text := strconv.FormatInt(next, 10)
		l.Next = &text
	}
	reply(w, http.StatusOK, l)
	return nil
}

// verifyAudit checks the whole audit log, and that the row of ?head=N:HASH is in it.
func (s *server) verifyAudit(w http.ResponseWriter, r *http.Request) error {
	v, err := s.opt.Control.VerifyAudit(r.Context(), s.call(r), r.URL.Query().Get("head"))
	if err == nil {
		reply(w, http.StatusOK, v)
	}
	return err
}
