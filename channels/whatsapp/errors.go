package whatsapp

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/socket"

	"parley/channels"
	"parley/workspace/lazy"
)

// errNoAck is what a send ends with that was not acknowledged in time.
var errNoAck = errors.New("it was not acknowledged in time")

func bad(format string, args ...any) error {
	return &channels.Error{Class: channels.BadMessage, Err: fmt.Errorf(format, args...)}
}

// refusal finds the code in the text of whatsmeow.ErrServerReturnedError, which is the only place that has it.
var refusal = lazy.Regexp(regexp.QuoteMeta(whatsmeow.ErrServerReturnedError.Error()) + ` (\d{3})`)

// classify judges a failed call and cleans it of numbers and keys; nil stays nil.
func classify(act string, err error) error {
	if err == nil {
		return nil
	}
	var known *channels.Error
	if errors.As(err, &known) {
		return err
	}
	e := &channels.Error{Class: classOf(err)}
	cause := errors.New(mask(err.Error()))
	if errors.Is(err, whatsmeow.ErrServerReturnedError) && strings.HasSuffix(err.Error(), " "+codeUnanswered) {
		cause = errNoAck
	}
	for _, keep := range []error{context.Canceled, context.DeadlineExceeded, channels.ErrTooLarge} {
		if errors.Is(err, keep) {
			cause = keep
		}
	}
	e.Err = fmt.Errorf("whatsapp %s: %w", act, cause)
	return e
}

// cutOff says that a call failed since the line had ended.
func cutOff(err error) bool {
	var cut *whatsmeow.DisconnectedError
	return errors.As(err, &cut) || errors.Is(err, whatsmeow.ErrNotConnected) || errors.Is(err, socket.ErrSocketClosed) || errors.Is(err, errEnded)
}

func classOf(err error) channels.Class {
	if errors.Is(err, whatsmeow.ErrServerReturnedError) {
		if strings.HasSuffix(err.Error(), " "+codeUnanswered) {
			return channels.Unknown
		}
		if m := refusal().FindStringSubmatch(err.Error()); m != nil {
			code, _ := strconv.Atoi(m[1]) // three digits
			return classOfCode(code)
		}
		return channels.Unknown
	}
	var cut *whatsmeow.DisconnectedError
	var query *whatsmeow.IQError
	switch {
	case errors.Is(err, whatsmeow.ErrNotLoggedIn):
		return channels.Fatal
	case err.Error() == whatsmeow.ErrNotConnected.Error():
		return channels.Unknown // bare, it comes from waiting for the answer (retryFrame of whatsmeow's request.go)
	case errors.Is(err, whatsmeow.ErrNotConnected), errors.Is(err, socket.ErrSocketClosed), errors.Is(err, errEnded), errors.Is(err, errMoved):
		return channels.Retry // it never left
	case errors.As(err, &cut):
		return classOfCut(cut)
	case errors.Is(err, whatsmeow.ErrNotInGroup), errors.Is(err, whatsmeow.ErrGroupNotFound):
		return channels.PeerGone
	case errors.As(err, &query) && strconv.Itoa(query.Code) == codeUnanswered:
		return channels.Retry
	case errors.As(err, &query): // what is asked before a message is sent: members, devices, keys
		return classOfCode(query.Code)
	case errors.Is(err, whatsmeow.ErrUnknownServer), errors.Is(err, whatsmeow.ErrRecipientADJID), errors.Is(err, whatsmeow.ErrBroadcastListUnsupported):
		return channels.BadMessage
	case errors.Is(err, whatsmeow.ErrIQTimedOut):
		return channels.Retry
	case strings.Contains(err.Error(), "no LID found"):
		return channels.PeerGone
	}
	return channels.Unknown // among them ErrMessageTimedOut, and a context's end
}

// classOfCode judges what the server answers. Nobody documents the codes; those seen in whatsmeow's issues are 403 (not
// allowed there, as in a group that was left), 463 (not allowed to write to this person) and 479 (malformed).
func classOfCode(code int) channels.Class {
	switch code {
	case 401, 403, 404, 406, 410, 463:
		return channels.PeerGone
	case 429:
		return channels.Retry
	}
	switch {
	case code >= 400 && code < 500:
		return channels.BadMessage
	}
	return channels.Unknown
}

// classOfCut judges a line that ended while an answer was waited for.
func classOfCut(cut *whatsmeow.DisconnectedError) channels.Class {
	code := ""
	if cut.Node != nil {
		code, _ = cut.Node.Attrs["code"].(string)
	}
	switch {
	case code == "401": // unlinked: nothing of it is taken any more
		return channels.Fatal
	case strings.HasPrefix(cut.Action, "info query"): // what is asked before a message is sent
		return channels.Retry
	}
	return channels.Unknown
}

// refusedError is a login that WhatsApp refuses by a code that says nothing of the link (login failures, see whatsmeow's
// ConnectFailureReason).
type refusedError struct {
	code int
	said string
}

func (e *refusedError) Error() string {
	text := fmt.Sprintf("WhatsApp refuses the login with code %d", e.code)
	for _, more := range []string{refusalNames(e.code), e.said} {
		if more != "" {
			text += ": " + more
		}
	}
	return text
}

func refusalNames(code int) string {
	switch code {
	case 400:
		return "it calls the request malformed"
	case 409:
		return "it rejects how this client names itself"
	case 418:
		return "it does not know this client"
	case 500, 501:
		return "its server has failed"
	case 503:
		return "its service is not available"
	}
	return ""
}

// passes says whether it is trouble of WhatsApp's own, which ends by itself.
func (e *refusedError) passes() bool { return e.code >= 500 }

func (e *refusedError) hint() string {
	if e.passes() {
		return "Nothing is wrong here: it is tried on, and nothing is lost meanwhile."
	}
	return "Install a newer Parley; until there is one, client_version: newest in this channel's section may help. It is tried again each hour."
}

// refusals keeps the code of a refused login: of some, whatsmeow tells nothing but its log.
type refusals struct {
	mu   sync.Mutex
	last *refusedError
}

// got looks at what comes in.
func (r *refusals) got(stanza string) {
	tag, attr := opening(stanza)
	code, err := strconv.Atoi(attr("reason"))
	if tag != "failure" || err != nil || code < 500 { // of the rest whatsmeow tells
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = &refusedError{code: code}
}

// take is the refusal that was got since the last look; nil: there was none.
func (r *refusals) take() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.last
	r.last = nil
	if last == nil {
		return nil
	}
	return last
}
