package slack

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	window   = 5 * time.Minute // https://docs.slack.dev/authentication/verifying-requests-from-slack
	maxBody  = 1 << 20
	ackTries = 2500 * time.Millisecond // then Slack is told to come again
)

// Handler takes what Slack posts in mode http. It looks at the headers before it reads anything, and at the signature of
// the raw body before it parses it. In mode socket it takes nothing.
func (c *Channel) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if c.opts.Mode != "http" {
			http.NotFound(w, req)
			return
		}
		if req.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			http.Error(w, "only POST", http.StatusMethodNotAllowed)
			return
		}
		body, code, err := c.verified(w, req)
		if err != nil {
			c.log.Debug("a request was refused", "err", err)
			http.Error(w, err.Error(), code)
			return
		}
		c.posted(w, req, body)
	})
}

// verified is the body of a request that Slack signed.
func (c *Channel) verified(w http.ResponseWriter, req *http.Request) ([]byte, int, error) {
	at, err := strconv.ParseInt(req.Header.Get("X-Slack-Request-Timestamp"), 10, 64)
	given, ok := strings.CutPrefix(req.Header.Get("X-Slack-Signature"), "v0=")
	mac, hexErr := hex.DecodeString(given)
	if err != nil || !ok || hexErr != nil || len(mac) != sha256.Size {
		return nil, http.StatusUnauthorized, errors.New("no signature")
	}
	if age := c.clock.Now().Sub(time.Unix(at, 0)); age > window || age < -window {
		return nil, http.StatusUnauthorized, errors.New("the signature is too old")
	}
	if req.ContentLength > maxBody {
		return nil, http.StatusRequestEntityTooLarge, errors.New("too large")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxBody))
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return nil, http.StatusRequestEntityTooLarge, errors.New("too large")
	}
	if err != nil {
		return nil, http.StatusBadRequest, errors.New("cannot be read")
	}
	want := hmac.New(sha256.New, []byte(c.opts.SigningSecret.Reveal()))
	want.Write([]byte("v0:" + strconv.FormatInt(at, 10) + ":"))
	want.Write(body)
	if !hmac.Equal(mac, want.Sum(nil)) {
		return nil, http.StatusUnauthorized, errors.New("the signature is wrong")
	}
	return body, 0, nil
}

// posted journals a verified request and answers after the commit.
func (c *Channel) posted(w http.ResponseWriter, req *http.Request, body []byte) {
	e, challenge := readPosted(req.Header.Get("Content-Type"), body)
	if challenge != "" {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, challenge) // the client may be gone
		return
	}
	r := c.enter()
	if r == nil {
		http.Error(w, "not running", http.StatusServiceUnavailable)
		return
	}
	defer r.calls.Done()
	ctx, cancel := context.WithTimeout(req.Context(), ackTries)
	defer cancel()
	whose, ok := r.owner(e.For)
	if ok && whose != nil {
		if batch := whose.convertAll(ctx, []envelope{e}); len(batch) > 0 {
			ok = whose.handIn(ctx, batch) == nil
		}
	}
	if !ok {
		http.Error(w, "try again", http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusOK)
}

// enter holds the Run at work until Done; nil: there is none.
func (c *Channel) enter() *receiver {
	r := c.live.Load()
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return nil
	}
	r.calls.Add(1)
	return r
}

// readPosted makes an envelope of a request: JSON for events, a form for commands and presses.
func readPosted(kind string, body []byte) (e envelope, challenge string) {
	e.raw = body
	if strings.HasPrefix(kind, "application/x-www-form-urlencoded") {
		form, err := url.ParseQuery(string(body))
		switch {
		case err != nil:
			e.bad = true
		case form.Get("payload") != "":
			e.Type, e.Payload = "interactive", json.RawMessage(form.Get("payload"))
		default:
			fields := map[string]string{}
			for k := range form {
				fields[k] = form.Get(k)
			}
			e.Type = "slash_commands"
			e.Payload, err = json.Marshal(fields)
			e.bad = err != nil
		}
		e.For = installations(e.Payload)
		return e, ""
	}
	var head struct {
		Type      string `json:"type"`
		Challenge string `json:"challenge"`
	}
	if json.Unmarshal(body, &head) != nil {
		e.bad = true
		return e, ""
	}
	if head.Type == "url_verification" {
		return e, head.Challenge
	}
	e.Type, e.Payload, e.For = "events_api", body, installations(body)
	return e, ""
}
