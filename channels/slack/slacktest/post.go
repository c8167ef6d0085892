package slacktest

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// poster delivers over HTTP (https://docs.slack.dev/apis/events-api). Guarded by the server's lock.
type poster struct {
	url   string
	queue []job
	wake  chan struct{}
}

type job struct {
	d      *Delivery
	reason string
}

func (p *poster) push(d *Delivery, reason string) {
	p.queue = append(p.queue, job{d, reason})
	select {
	case p.wake <- struct{}{}:
	default: // it has a wake-up waiting
	}
}

// SetRequestURL makes the app one of the Events API: events, commands and presses are posted there, one after the other.
// The empty URL goes back to Socket Mode.
func (s *Server) SetRequestURL(u string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.post.url = u
}

// Sign makes the two headers of https://docs.slack.dev/authentication/verifying-requests-from-slack.
func Sign(h http.Header, secret string, at time.Time, body []byte) {
	ts := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "v0:%s:%s", ts, body)
	h.Set("X-Slack-Request-Timestamp", ts)
	h.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
}

// VerifyURL does what saving a request URL does: the answer must be the challenge, in time.
func (s *Server) VerifyURL(ctx context.Context) error {
	s.mu.Lock()
	challenge := s.id("3eZbrw1aBm2rZgRNFdxV")
	s.mu.Unlock()
	res, body, err := s.request(ctx, "application/json", mustJSON(reply{"token": "Jhj5dZrVaK7ZwHHjRyZWjbDl", "challenge": challenge, "type": "url_verification"}), nil)
	if err != nil {
		return fmt.Errorf("verify the request url: %w", err)
	}
	var got struct{ Challenge string }
	if json.Unmarshal(body, &got) != nil {
		got.Challenge = string(bytes.TrimSpace(body))
	}
	if res.StatusCode != http.StatusOK || got.Challenge != challenge {
		return fmt.Errorf("verify the request url: status %d and challenge %q, want %q", res.StatusCode, got.Challenge, challenge)
	}
	return nil
}

// Post sends any signed request to the request URL; change spoils it first. For tests of signatures and replays.
func (s *Server) Post(ctx context.Context, body []byte, change func(*http.Request)) (status int, err error) {
	res, _, err := s.request(ctx, "application/json", body, change)
	if err != nil {
		return 0, err
	}
	return res.StatusCode, nil
}

func (s *Server) request(ctx context.Context, kind string, body []byte, change func(*http.Request)) (*http.Response, []byte, error) {
	s.mu.Lock()
	to, secret := s.post.url, s.app.SigningSecret
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, s.opts.AckWithin)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	req.Header.Set("Content-Type", kind)
	req.Header.Set("User-Agent", "Slackbot 1.0 (+https://api.slack.com/robots)")
	req.Close = true // no connection stays behind
	Sign(req.Header, secret, time.Now(), body)
	if change != nil {
		change(req)
	}
	client := http.Client{CheckRedirect: func(_ *http.Request, via []*http.Request) error {
		if len(via) >= 2 {
			return errors.New("too many redirects")
		}
		return nil
	}}
	res, err := client.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxBody))
	return res, answer, err
}

// postLoop posts one after the other until Close.
func (s *Server) postLoop(ctx context.Context) {
	for {
		select {
		case <-s.Done():
			return
		case <-s.post.wake:
		}
		for {
			s.mu.Lock()
			if len(s.post.queue) == 0 {
				s.mu.Unlock()
				break
			}
			j := s.post.queue[0]
			s.post.queue = s.post.queue[1:]
			s.mu.Unlock()
			s.postOne(ctx, j)
		}
	}
}

func (s *Server) postOne(ctx context.Context, j job) {
	s.mu.Lock()
	d := j.d
	retry := len(d.Attempts)
	d.Attempts = append(d.Attempts, Attempt{Reason: j.reason, At: time.Now()})
	kind, body := formOf(d)
	s.mu.Unlock()
	res, answer, err := s.request(ctx, kind, body, func(r *http.Request) {
		if retry > 0 && d.Kind == EventsAPI {
			r.Header.Set("X-Slack-Retry-Num", strconv.Itoa(retry))
			r.Header.Set("X-Slack-Retry-Reason", j.reason)
		}
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.watch.Changed()
	switch {
	case s.closed():
	case errors.Is(err, context.DeadlineExceeded):
		s.retry(d, "http_timeout")
	case err != nil:
		s.retry(d, "connection_failed")
	case res.StatusCode/100 != 2:
		if res.Header.Get("X-Slack-No-Retry") == "1" {
			d.Lost = true
			return
		}
		s.retry(d, "http_error")
	default:
		s.acked(d, &d.Attempts[retry], answer)
		s.answered(d, answer)
	}
}

// formOf is the body of a request: JSON for events, a form for the rest.
func formOf(d *Delivery) (kind string, body []byte) {
	const form = "application/x-www-form-urlencoded"
	switch d.Kind {
	case Interactive:
		return form, []byte(url.Values{"payload": {string(d.payload)}}.Encode())
	case Slash:
		var fields map[string]string
		if err := json.Unmarshal(d.payload, &fields); err != nil {
			panic(err) // our own payload
		}
		v := url.Values{}
		for k, f := range fields {
			v.Set(k, f)
		}
		return form, []byte(v.Encode())
	}
	return "application/json", d.payload
}
