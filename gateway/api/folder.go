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
