package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"time"

	"parley/channels"
	"parley/gateway/control"
	"parley/workspace"
)

const (
	maxBody    = 1 << 20 // bytes of a request
	readWithin = 30 * time.Second
)

// problem is an error as RFC 9457 wants it.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	// Approval is what a question came to that had been answered before.
	Approval *approvalView `json:"approval,omitempty"`
	after    int           // seconds until a retry makes sense
}

func (p *problem) Error() string { return p.Title + ": " + p.Detail }

// fault makes a problem with the type urn:parley:error:<code>.
func fault(status int, code, detail string) *problem {
	return &problem{Type: "urn:parley:error:" + code, Title: http.StatusText(status), Status: status, Detail: detail}
}

// problemOf chooses the words. What has no sentence for people says nothing but that.
func problemOf(err error) *problem {
	var p *problem
	if errors.As(err, &p) {
		return p
	}
	detail, _ := workspace.Sentence(err)
	switch {
	case errors.Is(err, control.ErrOtherBody):
		return fault(http.StatusConflict, "idempotency_conflict", detail)
	case errors.Is(err, channels.ErrTooLarge):
		return fault(http.StatusRequestEntityTooLarge, "too_large", detail)
	case errors.Is(err, workspace.ErrNotFound):
		return fault(http.StatusNotFound, "not_found", detail)
	case errors.Is(err, control.ErrTooLarge):
		return fault(http.StatusRequestEntityTooLarge, "too_large", detail)
	case errors.Is(err, workspace.ErrInvalid):
		return fault(http.StatusBadRequest, "invalid", detail)
	case errors.Is(err, control.ErrBorrowed):
		return fault(http.StatusForbidden, "fresh_sign_in", detail)
	case errors.Is(err, workspace.ErrSpace):
		return fault(http.StatusInsufficientStorage, "no_space", detail)
	case errors.Is(err, workspace.ErrDenied):
		return fault(http.StatusForbidden, "denied", detail)
	case errors.Is(err, workspace.ErrConflict):
		return fault(http.StatusConflict, "conflict", detail)
	case errors.Is(err, channels.ErrBusy):
		p := fault(http.StatusServiceUnavailable, "busy", "Too much is going on. Try again in a few seconds.")
		p.after = 5
		return p
	case errors.Is(err, channels.ErrUnwritable):
		p := fault(http.StatusServiceUnavailable, "unwritable", "The store takes nothing at the moment: the disk may be full, or read-only.")
		p.after = 30
		return p
	case detail != "":
		return fault(http.StatusUnprocessableEntity, "refused", detail)
	}
	return fault(http.StatusInternalServerError, "internal", "Something went wrong; the gateway's log says what.")
}

func (s *server) fail(w http.ResponseWriter, r *http.Request, err error) {
	p := problemOf(err)
	if p.Status == http.StatusInternalServerError {
		s.opt.Log.Error("request failed", "method", r.Method, "route", r.Pattern, "err", err)
	}
	if p.after > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(p.after))
	}
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="parley"`)
	}
	w.Header().Set("Content-Type", "application/problem+json")
	send(w, p.Status, p)
}

// reply sends a value as JSON.
func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	send(w, status, v)
}

func send(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil { // our own types: only a bug comes here
		status, body = http.StatusInternalServerError, []byte(`{"type":"urn:parley:error:internal","title":"Internal Server Error","status":500}`)
	}
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // a client that left needs no answer
}

// decode reads a JSON body strictly into v: unknown fields and anything behind the value are refused. An empty body
// is the empty object.
func decode(w http.ResponseWriter, r *http.Request, v any) error {
	if kind := r.Header.Get("Content-Type"); kind != "" {
		if media, _, err := mime.ParseMediaType(kind); err != nil || media != "application/json" {
			return fault(http.StatusUnsupportedMediaType, "media_type", "The body must be application/json.")
		}
	}
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	if len(body) == 0 {
		body = []byte("{}")
	}
	if err := strict(body, v); err != nil {
		return fault(http.StatusBadRequest, "invalid", "The body is not what is expected: "+err.Error()+".")
	}
	return nil
}

// readBody is the whole body, which is bounded in size and in the time that it takes.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	rc := http.NewResponseController(w)
	if err := rc.SetReadDeadline(time.Now().Add(readWithin)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return nil, err
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err == nil {
		err = rc.SetReadDeadline(time.Time{}) // a later one would end the wait for an answer
		if errors.Is(err, http.ErrNotSupported) {
			err = nil
		}
	}
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return nil, tooLarge()
	}
	if err != nil {
		return nil, fault(http.StatusBadRequest, "invalid", "The body could not be read.")
	}
	return body, nil
}

// page is what a reader asks for.
type page struct {
	limit int
	after string
}

const (
	defaultPage = 50
	maxPage     = 500
)

func pageOf(r *http.Request) (page, error) {
	q := r.URL.Query()
	p := page{limit: defaultPage, after: q.Get("after")}
	if text := q.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxPage {
			return p, fault(http.StatusBadRequest, "invalid", fmt.Sprintf("limit is a number from 1 to %d.", maxPage))
		}
		p.limit = n
	}
	return p, nil
}

// number reads a query parameter that counts.
func number(r *http.Request, name string) (int64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, fault(http.StatusBadRequest, "invalid", name+" is a number from 0.")
	}
	return n, nil
}
