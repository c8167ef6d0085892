package wire

import (
	"errors"
	"net/http"

	"parley/channels"
	"parley/gateway/control"
	"parley/workspace"
)

// Problem is an error as RFC 9457 wants it.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	// Approval is what a question came to that had been answered before.
	Approval any `json:"approval,omitempty"`
	// Problems are what is wrong with a text, one by one.
	Problems any `json:"problems,omitempty"`
	After    int `json:"-"` // seconds until a retry makes sense; 0: none does
}

func (p *Problem) Error() string { return p.Title + ": " + p.Detail }

// Fault makes a problem with the type urn:parley:error:<code>.
func Fault(status int, code, detail string) *Problem {
	return &Problem{Type: "urn:parley:error:" + code, Title: http.StatusText(status), Status: status, Detail: detail}
}

// RetryAfter is a problem of the moment: a retry makes sense after so many seconds.
func RetryAfter(status int, code, detail string, after int) *Problem {
	p := Fault(status, code, detail)
	p.After = after
	return p
}

// Invalid says that a request is not what is expected.
func Invalid(detail string) *Problem { return Fault(http.StatusBadRequest, "invalid", detail) }

// Busy says that there is no room at the moment.
func Busy(detail string) *Problem {
	return RetryAfter(http.StatusServiceUnavailable, "busy", detail, 5)
}

// TooLarge says that a body or a text is longer than is taken.
func TooLarge() *Problem {
	return Fault(http.StatusRequestEntityTooLarge, "too_large", "The body is longer than 1048576 bytes.")
}

// Unauthorized says that neither a token nor a sign-in came with a request.
func Unauthorized() *Problem {
	return Fault(http.StatusUnauthorized, "unauthorized", "Send the gateway's token as Authorization: Bearer <token>. "+
		"It stands in the configuration, or in the file token of the data directory.")
}

// NoEndpoint is the answer at a path that is no endpoint's.
func NoEndpoint() *Problem {
	return Fault(http.StatusNotFound, "not_found", "There is nothing at this path.")
}

// ProblemOf chooses the words. What has no sentence for people says nothing but that.
func ProblemOf(err error) *Problem {
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	detail, _ := workspace.Sentence(err)
	var refusal *control.Refusal
	switch {
	case errors.As(err, &refusal):
		status := http.StatusUnprocessableEntity
		if errors.Is(err, workspace.ErrConflict) {
			status = http.StatusConflict
		}
		p := Fault(status, refusal.Code, detail)
		p.Problems = refusal.Problems
		return p
	case errors.Is(err, control.ErrOtherBody):
		return Fault(http.StatusConflict, "idempotency_conflict", detail)
	case errors.Is(err, channels.ErrTooLarge):
		return Fault(http.StatusRequestEntityTooLarge, "too_large", detail)
	case errors.Is(err, workspace.ErrNotFound):
		return Fault(http.StatusNotFound, "not_found", detail)
	case errors.Is(err, control.ErrTooLarge):
		return Fault(http.StatusRequestEntityTooLarge, "too_large", detail)
	case errors.Is(err, workspace.ErrInvalid):
		return Invalid(detail)
	case errors.Is(err, control.ErrBorrowed):
		return Fault(http.StatusForbidden, "fresh_sign_in", detail)
	case errors.Is(err, workspace.ErrSpace):
		return Fault(http.StatusInsufficientStorage, "no_space", detail)
	case errors.Is(err, workspace.ErrDenied):
		return Fault(http.StatusForbidden, "denied", detail)
	case errors.Is(err, workspace.ErrConflict):
		return Fault(http.StatusConflict, "conflict", detail)
	case errors.Is(err, channels.ErrBusy):
		return Busy("Too much is going on. Try again in a few seconds.")
	case errors.Is(err, channels.ErrUnwritable):
		return RetryAfter(http.StatusServiceUnavailable, "unwritable",
			"The store takes nothing at the moment: the disk may be full, or read-only.", 30)
	case detail != "":
		return Fault(http.StatusUnprocessableEntity, "refused", detail)
	}
	return Fault(http.StatusInternalServerError, "internal", "Something went wrong; the gateway's log says what.")
}
