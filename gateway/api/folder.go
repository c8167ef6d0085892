package api

import (
	"net/http"

	"parley/gateway/control"
)

// workFiles says what fills the work folder of a session, or with ?path= one folder in it.
func (s *server) workFiles(w http.ResponseWriter, r *http.Request) error {
	v, err := s.opt.Control.Files(r.Context(), s.call(r), control.SessionWord(r.PathValue("key")), r.URL.Query().Get("path"))
	if err == nil {
		reply(w, http.StatusOK, v)
	}
	return err
}

// removeFile removes ?path= from the work folder of a session; a folder only with ?folder=true.
func (s *server) removeFile(w http.ResponseWriter, r *http.Request) error {
	if err := decode(w, r, &struct{}{}); err != nil {
		return err
	}
	q := r.URL.Query()
	folder := q.Get("folder")
	switch {
	case len(q["path"]) != 1 || q.Get("path") == "":
		return fault(http.StatusBadRequest, "invalid", "Say what to remove: path, once.")
	case folder != "" && folder != "true" && folder != "false":
		return fault(http.StatusBadRequest, "invalid", "folder is true or false.")
	}
	v, err := s.opt.Control.RemoveFile(r.Context(), s.call(r), control.SessionWord(r.PathValue("key")), q.Get("path"), folder == "true")
	if err == nil {
		reply(w, http.StatusOK, v)
	}
	return err
}
