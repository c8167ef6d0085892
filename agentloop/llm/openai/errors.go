package openai

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"parley/agentloop/llm"
)

// errSilent is the cause with which the guard ends a call.
var errSilent = errors.New("no byte from the server for too long")

const (
	maxErrorBody = 64 << 10
	maxErrorText = 300 // characters of a server's words in an error
)

// serverError is what a server said, freed of the key; only its first 300 characters are printed.
type serverError struct{ text string }

func (e *serverError) Error() string {
	n := 0
	for i := range e.text {
		if n == maxErrorText {
			return e.text[:i] + "…"
		}
		n++
	}
	return e.text
}

// said makes text of a stranger fit for a log line: the key is taken out by value, control characters go, runs of
// white space become one space.
func (m *Model) said(text string) *serverError {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case r == unicode.ReplacementChar || !unicode.IsPrint(r):
			return -1
		}
		return r
	}, text)
	// Last, since a key is found only once what was strewn into it is gone.
	return &serverError{m.redact(strings.Join(strings.Fields(text), " "))}
}

func (m *Model) redact(text string) string {
	// A placeholder such as "x" for a local server is no secret, and taking it out would spoil every word.
	if len(m.o.APIKey) < 4 {
		return text
	}
	text = strings.ReplaceAll(text, m.o.APIKey, "[redacted]")
	return strings.ReplaceAll(text, url.QueryEscape(m.o.APIKey), "[redacted]")
}

// refused reads an answer whose status is not 200.
func (m *Model) refused(resp *http.Response) *llm.Error {
	// What could be read is all there is to say.
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		to := "elsewhere"
		if u, err := resp.Location(); err == nil {
			to = u.Scheme + "://" + u.Host + u.Path
		}
		return &llm.Error{Kind: llm.Rejected, Status: resp.StatusCode,
			Err: m.said("redirects are not followed with a key; base_url redirects to " + to)}
	}
	text, code := errorText(body)
	if text == "" {
		text = http.StatusText(resp.StatusCode)
	}
	return &llm.Error{Kind: classify(resp.StatusCode, text, code), Status: resp.StatusCode,
		After: retryAfter(resp.Header, time.Now()), Err: m.said(text)}
}

// failure in the words of the many servers: {"error":{"message","type","code"}}, {"error":"…"}, {"message":"…"},
// {"detail":…}, a list of one of these, or no JSON at all.
type failure struct {
	Error   json.RawMessage `json:"error"`
	Message json.RawMessage `json:"message"`
	Detail  json.RawMessage `json:"detail"`
	Type    json.RawMessage `json:"type"`
	Code    json.RawMessage `json:"code"`
	Meta    struct {
		Raw string `json:"raw"` // OpenRouter: what the provider behind it said
	} `json:"metadata"`
}

// errorText finds the message and the code or type; a body that is no JSON is its own message.
func errorText(body []byte) (text, code string) {
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0]
	}
	var f failure
	if json.Unmarshal(body, &f) != nil {
		return string(body), ""
	}
	if inner := plain(f.Error); strings.HasPrefix(inner, "{") {
		return errorText(f.Error)
	} else if inner != "" {
		return inner, plain(f.Code)
	}
	code = plain(f.Code)
	if t := plain(f.Type); t != "" {
		code += " " + t
	}
	for _, v := range []json.RawMessage{f.Message, f.Detail} {
		if text = plain(v); text != "" {
			if f.Meta.Raw != "" {
				text += ": " + f.Meta.Raw
			}
			return text, code
		}
	}
	return string(body), code
}

// plain is a JSON string's text, or the JSON itself; null is empty.
func plain(v json.RawMessage) string {
	var s string
	if len(v) == 0 || string(v) == "null" {
		return ""
	}
	if json.Unmarshal(v, &s) == nil {
		return s
	}
	return string(v)
}

func classify(status int, text, code string) llm.Kind {
	low := strings.ToLower(code + " " + text)
	switch {
	case status == http.StatusRequestEntityTooLarge, status != 401 && status != 403 && status != 429 && overflows(low):
		return llm.Overflow
	case status == 401, status == 402, status == 403, strings.Contains(low, "insufficient_quota"):
		return llm.Auth
	case status == 429:
		return llm.Limited
	case status == 408, status >= 500:
		return llm.Overload
	}
	return llm.Rejected
}

// overflows knows the words in which servers say that a prompt is too long; only some send OpenAI's code.
func overflows(low string) bool {
	for _, w := range []string{
		"context_length_exceeded", "exceed_context_size", "maximum context length", "available context size",
		"prompt is too long", "input is too long", "maximum prompt length", "exceeds the maximum number of tokens",
		"context window", "reduce the length of the messages", "loaded with context length",
		"greater than the context length", "exceeds the context length", "exceeded model token limit",
		"prompt token count", "longer than the context",
	} {
		if strings.Contains(low, w) {
			return true
		}
	}
	return false
}

// retryAfter reads seconds or an HTTP date (RFC 9110 §10.2.3), and the milliseconds that OpenAI adds.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 && ms < 1e9 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	v := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		if !(s > 0 && s < 1e6) { // NaN too
			return 0
		}
		return time.Duration(s * float64(time.Second))
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// unreached classifies an error of net/http before there was an answer. The address is left out: it is in the
// configuration, and may hold what a log must not.
func (m *Model) unreached(cause, err error) *llm.Error {
	if errors.Is(cause, errSilent) {
		return &llm.Error{Kind: llm.TimedOut, Err: errSilent}
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	kind := llm.Overload
	var n net.Error
	if errors.As(err, &n) && n.Timeout() { // of dialling, TLS, or the transport's own limit for headers
		kind = llm.TimedOut
	}
	return &llm.Error{Kind: kind, Err: m.said(err.Error())}
}
