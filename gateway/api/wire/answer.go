package wire

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"parley/gateway/spec"
)

// Reply sends a value as JSON.
func Reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	send(w, status, v)
}

func send(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil { // what is answered always marshals: only a bug comes here
		status, body = http.StatusInternalServerError,
			[]byte(`{"type":"urn:parley:error:internal","title":"Internal Server Error","status":500}`)
	}
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // a client that left needs no answer
}

// WriteWithin is how long an answer may take from now on.
func WriteWithin(w http.ResponseWriter, d time.Duration) error {
	err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(d)) // the connection's own clock
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return err
}

// Whole replies with a list that has one page.
func Whole[T any](w http.ResponseWriter, items []T) {
	Reply(w, http.StatusOK, spec.PageOf(items, len(items), nil))
}

// Fail answers with an error. What has no words for people is logged.
func Fail(w http.ResponseWriter, r *http.Request, err error, log *slog.Logger) {
	p := ProblemOf(err)
	if p.Status == http.StatusInternalServerError {
		log.Error("request failed", "method", r.Method, "route", r.Pattern, "err", err)
	}
	if p.After > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(p.After))
	}
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="parley"`)
	}
	w.Header().Set("Content-Type", "application/problem+json")
	send(w, p.Status, p)
}
