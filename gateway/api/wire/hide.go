package wire

import (
	"net/http"

	"parley/workspace"
)

// Hide takes secrets out of what is answered. Each answer and each event is one write.
func Hide(w http.ResponseWriter, secrets *workspace.Redactor) http.ResponseWriter {
	return hiding{w, secrets}
}

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
