package wire

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"time"
)

const (
	MaxBody    = 1 << 20 // bytes of a request's body
	readWithin = 30 * time.Second
)

// NoBody is what is sent where nothing is: an empty body, or the empty object.
type NoBody struct{}

// Decode reads a JSON body strictly into v: unknown fields and anything behind the value are refused. An empty body
// is the empty object.
func Decode(w http.ResponseWriter, r *http.Request, v any) error {
	if kind := r.Header.Get("Content-Type"); kind != "" {
		if media, _, err := mime.ParseMediaType(kind); err != nil || media != "application/json" {
			return Fault(http.StatusUnsupportedMediaType, "media_type", "The body must be application/json.")
		}
	}
	body, err := ReadBody(w, r)
	if err != nil {
		return err
	}
	if len(body) == 0 {
		body = []byte("{}")
	}
	if err := strict(body, v); err != nil {
		return Invalid("The body is not what is expected: " + err.Error() + ".")
	}
	return nil
}

// ReadBody is the whole body, which is bounded in size and in the time that it takes.
func ReadBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	rc := http.NewResponseController(w)
	if err := rc.SetReadDeadline(time.Now().Add(readWithin)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return nil, err
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	if err == nil {
		err = rc.SetReadDeadline(time.Time{}) // a later one would end the wait for an answer
		if errors.Is(err, http.ErrNotSupported) {
			err = nil
		}
	}
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return nil, TooLarge()
	}
	if err != nil {
		return nil, Invalid("The body could not be read.")
	}
	return body, nil
}
