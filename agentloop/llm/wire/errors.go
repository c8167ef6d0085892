package wire

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	"parley/agentloop/llm"
	"parley/workspace/clip"
)

// errSilent is the cause with which the guard ends a call.
var errSilent = errors.New("no byte from the server for too long")

const (
	maxErrorBody = 64 << 10
	maxErrorText = 300 // characters of a server's words in an error
)

// ServerError is what a server said, freed of the key; only its first 300 characters are printed.
type ServerError struct {
	Text string
	Why  Why // there was no answer; empty: there was
}

// Why is a plain reason for which there was no answer, without an address.
type Why string

// Reasons.
const (
	NobodyListens Why = "connection refused"
	Closed        Why = "the connection was closed before an answer"
	HostUnknown   Why = "its host name is not known"
	NoLookup      Why = "its host name cannot be looked up"
	Untrusted     Why = "its certificate is not trusted"
	NoTLS         Why = "no TLS connection"
	NoRoute       Why = "no route to it"
	NoConnection  Why = "the connection failed"
)

func (e *ServerError) Error() string {
	return clip.Runes(e.Text, maxErrorText+1)
}

// Said makes text of a stranger fit for a log line: the key is taken out by value, control characters go, runs of
// white space become one space.
func (c *Client) Said(text string) *ServerError {
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
	return &ServerError{Text: c.redact(strings.Join(strings.Fields(text), " "))}
}

func (c *Client) redact(text string) string {
	// A placeholder such as "x" for a local server is not a secret, and taking it out would spoil every word.
	if len(c.Key) < 4 {
		return text
	}
	text = strings.ReplaceAll(text, c.Key, "[redacted]")
	return strings.ReplaceAll(text, url.QueryEscape(c.Key), "[redacted]")
}

// Failed reads an answer whose status is not 200.
func (c *Client) Failed(resp *http.Response) *llm.Error {
	// What could be read is all there is to say.
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		to := "elsewhere"
		if u, err := resp.Location(); err == nil {
			to = u.Scheme + "://" + u.Host + u.Path
		}
		return &llm.Error{Kind: llm.Rejected, Status: resp.StatusCode, Said: "it redirects elsewhere: base_url is not right",
			Err: c.Said("redirects are not followed with a key; base_url redirects to " + to)}
	}
	text, kind := c.Refused(resp.StatusCode, body)
	if text == "" {
		text = http.StatusText(resp.StatusCode)
	}
	return &llm.Error{Kind: kind, Status: resp.StatusCode, After: Wait(resp.StatusCode, resp.Header, time.Now()), Err: c.Said(text)}
}

// Finish completes the error of a call to a model.
func Finish(ctx context.Context, model llm.Info, err error) error {
	var e *llm.Error
	if !errors.As(err, &e) {
		e = &llm.Error{Kind: llm.Rejected, Err: err}
	}
	e.Model, e.Provider = model.Name, model.Provider
	var said *ServerError
	if e.Said == "" && (e.Status != 0 || e.Kind == llm.Malformed) && errors.As(e.Err, &said) {
		e.Said = said.Error()
	}
	if ctx.Err() != nil {
		e.Kind, e.Err = llm.Cancelled, context.Cause(ctx)
	}
	return e
}

// Unreached classifies an error of net/http before there was an answer. Of the address only its host is told: the rest is in
// the configuration, and may hold what a log must not.
func (c *Client) Unreached(cause, err error) *llm.Error {
	if errors.Is(cause, errSilent) {
		return &llm.Error{Kind: llm.TimedOut, Err: errSilent}
	}
	var u *url.Error
	host := "its address"
	if errors.As(err, &u) {
		if to, parsed := url.Parse(u.URL); parsed == nil {
			host = to.Host
		}
		err = u.Err
	}
	kind := llm.Overload
	var n net.Error
	if errors.As(err, &n) && n.Timeout() { // of dialling, TLS, or the transport's own limit for headers
		kind = llm.TimedOut
	}
	why, said := unreached(err), c.Said(err.Error())
	said.Why = why
	return &llm.Error{Kind: kind, Said: c.Said(why.at(host)).Error(), Err: said}
}

// at is the reason with the host, where that tells what to look at.
func (w Why) at(host string) string {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	switch w {
	case NobodyListens:
		return "nothing listens at " + host
	case HostUnknown:
		return "the host name " + name + " is not known"
	case NoLookup:
		return "the host name " + name + " cannot be looked up"
	case NoTLS:
		return "there is no TLS at " + host
	case NoRoute:
		return "there is no route to " + name
	}
	return string(w)
}

func unreached(err error) Why {
	var lookup *net.DNSError
	var cert *tls.CertificateVerificationError
	var alert tls.AlertError
	var plain tls.RecordHeaderError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return NobodyListens
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.EPIPE):
		return Closed
	case errors.As(err, &lookup) && lookup.IsNotFound:
		return HostUnknown
	case errors.As(err, &lookup):
		return NoLookup
	case errors.As(err, &cert):
		return Untrusted
	case errors.As(err, &alert), errors.As(err, &plain), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return NoTLS
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return NoRoute
	}
	return NoConnection
}

// broken is the error of an answer that did not come to its end.
func (c *Client) broken(cause error, a Answer, err error) error {
	var e *llm.Error
	text, begun := a.SoFar()
	switch {
	case errors.Is(cause, errSilent):
		e = &llm.Error{Kind: llm.TimedOut, Err: errSilent}
	case errors.As(err, &e):
		if e.Kind == llm.Overload && begun {
			e.Kind = llm.Cut
		}
	case errors.Is(err, ErrTooLong):
		e = &llm.Error{Kind: llm.TooLong, Err: err}
	default:
		e = &llm.Error{Kind: llm.Cut, Err: c.Said(err.Error())}
	}
	e.Partial = text
	return e
}

// Wait is for how long a server asks to be left alone: Retry-After, or with 429 and 529 the time when what is used up is
// there again, as Anthropic (a time) and OpenAI (a duration) say it in headers of their own; 0: it does not say.
func Wait(status int, h http.Header, now time.Time) time.Duration {
	after := RetryAfter(h, now)
	if after > 0 || status != http.StatusTooManyRequests && status != 529 {
		return after
	}
	for name, values := range h {
		name = strings.ToLower(name)
		of, at := strings.CutPrefix(name, "anthropic-ratelimit-")
		what, reset := strings.CutSuffix(of, "-reset")
		if !at {
			what, reset = strings.CutPrefix(name, "x-ratelimit-reset-")
		}
		if !reset || len(values) == 0 {
			continue
		}
		left := "X-Ratelimit-Remaining-" + what
		if at {
			left = "Anthropic-Ratelimit-" + what + "-Remaining"
		}
		if h.Get(left) == "0" {
			after = max(after, until(values[0], now))
		}
	}
	return after
}

// until reads a time (RFC 3339), a duration such as 6m0s, or seconds.
func until(v string, now time.Time) time.Duration {
	if at, err := time.Parse(time.RFC3339, v); err == nil {
		return max(0, at.Sub(now))
	}
	if d, err := time.ParseDuration(v); err == nil {
		return max(0, d)
	}
	return RetryAfter(http.Header{"Retry-After": {v}}, now)
}

// RetryAfter reads seconds or an HTTP date (RFC 9110 §10.2.3), and the milliseconds that OpenAI adds.
func RetryAfter(h http.Header, now time.Time) time.Duration {
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

// Plain is a JSON string's text, or the JSON itself; null is empty.
func Plain(v json.RawMessage) string {
	var s string
	if len(v) == 0 || string(v) == "null" {
		return ""
	}
	if json.Unmarshal(v, &s) == nil {
		return s
	}
	return string(v)
}

// Overflows knows the words in which servers say that a prompt is too long; only some send OpenAI's code.
// low is in lower case.
func Overflows(low string) bool {
	for _, w := range []string{
		"context_length_exceeded", "exceed_context_size", "maximum context length", "available context size",
		"prompt is too long", "input is too long", "maximum prompt length", "exceeds the maximum number of tokens",
		"context window", "reduce the length of the messages", "loaded with context length",
		"greater than the context length", "exceeds the context length", "exceeded model token limit",
		"prompt token count", "exceed context limit", "longer than the context",
	} {
		if strings.Contains(low, w) {
			return true
		}
	}
	return false
}
