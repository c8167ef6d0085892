package api

import (
	"net/http"

	"parley/gateway/control"
	"parley/workspace"
)

func (s *server) listFolders(w http.ResponseWriter, r *http.Request) error {
	return whole[control.FolderItem](w)(s.opt.Control.ListFolders(r.Context(), s.call(r)))
}

// acceptRequest names what a command made in a folder.
type acceptRequest struct {
	Path  string `json:"path"`            // in the folder: its own, or the one that it has now
	Agent string `json:"agent,omitempty"` // whose folder it is; left out: there is one of that name
}

func (s *server) acceptHeld(w http.ResponseWriter, r *http.Request) error {
	var q acceptRequest
	if err := decode(w, r, &q); err != nil {
		return err
	}
	held, err := s.opt.Control.AcceptHeld(r.Context(), s.call(r), r.PathValue("name"), workspace.AgentID(q.Agent), q.Path)
	if err == nil {
		reply(w, http.StatusOK, held)
	}
	return err
}

// workFiles says what fills the work folder of a session, or with ?path= one folder in it.
func (s *server) workFiles(w http.ResponseWriter, r *http.Request) error {
	v, err := s.opt.Control.Files(r.Context(), s.call(r), r.PathValue("key"), r.URL.Query().Get("path"))
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
	v, err := s.opt.Control.RemoveFile(r.Context(), s.call(r), r.PathValue("key"), q.Get("path"), folder == "true")
	if err == nil {
		reply(w, http.StatusOK, v)
	}
	return err
}
