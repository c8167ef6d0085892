package api

import (
	"net/http"

	"parley/workspace"
)

// hiding takes secrets out of what is answered. Each answer and each event is one write.
type hiding struct {
	http.ResponseWriter
	hide *workspace.Redactor
}

// Unwrap is for http.ResponseController.
func (h hiding) Unwrap() http.ResponseWriter { return h.ResponseWriter }

// Write says that it wrote p, whatever stood in its place.
func (h hiding) Write(p []byte) (int, error) {
	if _, err := h.ResponseWriter.Write(h.hide.JSON(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// hides says whether answers of a route are text of our own: files are as they are, and the live line is not an answer.
func (rt route) hides() bool {
	switch rt.pattern {
	case "", "GET /v1/files/{ref}", "POST /v1/backup", "GET /v1/live":
		return false
	}
	return true
}
