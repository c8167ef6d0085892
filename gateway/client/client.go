// Package client speaks the gateway's HTTP API: for the command line, for tests, and for programs in Go. It knows
// the wire only and imports nothing of Parley's. It starts no goroutine.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Client is safe for concurrent use.
type Client struct {
	Surface string // what the gateway is told that the calls come by: cli; empty: api
	base    *url.URL
	token   string
	http    *http.Client
}

// maxReply is how much of an answer is read, in bytes.
const maxReply = 64 << 20

// New makes a client of the gateway at base, such as http://127.0.0.1:8420. The token is sent in the clear, so over
// plain HTTP only to this machine.
func New(base, token string) (*Client, error) {
	u, err := url.Parse(strings.TrimRight(base, "/"))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%q is not a http or https address", base)
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("the gateway's address takes no user, query or fragment: the token goes in a header")
	}
	if u.Scheme == "http" && !loopback(u.Hostname()) {
		return nil, fmt.Errorf("%s is another machine: its address must begin with https, since the token is sent there", u.Host)
	}
	// no redirects are followed: the token stays with the gateway
	hc := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16, DialContext: (&net.Dialer{Timeout: 5 * time.Second}).DialContext},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return &Client{base: u, token: token, http: hc}, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Base is the gateway's address.
func (c *Client) Base() string { return c.base.String() }

// Close ends idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Problem is an error that the gateway answered with (RFC 9457).
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
}

// Error is the sentence for people.
func (p *Problem) Error() string {
	if p.Detail != "" {
		return p.Detail
	}
	return fmt.Sprintf("the gateway answered %d %s", p.Status, strings.ToLower(p.Title))
}

// Code is the last part of the type, such as not_found.
func (p *Problem) Code() string { return strings.TrimPrefix(p.Type, "urn:parley:error:") }

// ErrUnreachable says that no gateway answers at the address.
var ErrUnreachable = errors.New("no gateway answers")

// Get reads path into out.
func (c *Client) Get(ctx context.Context, path string, out any) error {
	return c.do(ctx, http.MethodGet, path, nil, nil, out)
}

// Post sends body to path and reads the answer into out; both may be nil.
func (c *Client) Post(ctx context.Context, path string, body, out any) error {
	return c.do(ctx, http.MethodPost, path, nil, body, out)
}

// Delete sends a DELETE to path; what is answered is not read.
func (c *Client) Delete(ctx context.Context, path string) error {
	return c.do(ctx, http.MethodDelete, path, nil, nil, nil)
}

// Do sends body to path and reads the answer into out; both may be nil.
func (c *Client) Do(ctx context.Context, method, path string, body, out any) error {
	return c.do(ctx, method, path, nil, body, out)
}

func (c *Client) do(ctx context.Context, method, path string, header http.Header, body, out any) error {
	res, err := c.request(ctx, method, path, header, body)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if out == nil {
		return nil
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxReply)).Decode(out); err != nil {
		return fmt.Errorf("read the gateway's answer: %w", err)
	}
	return nil
}

// Stream sends a request and returns the body of a good answer; the caller closes it.
func (c *Client) Stream(ctx context.Context, method, path string, body any) (io.ReadCloser, error) {
	res, err := c.request(ctx, method, path, nil, body)
	if err != nil {
		return nil, err
	}
	return res.Body, nil
}

// LeftOut is what a backup does not hold.
type LeftOut struct {
	Count int64
	First []struct{ Name, Reason string }
}

// Backup asks for the data directory. It answers when the gateway has made the whole of it; the caller closes the body.
func (c *Client) Backup(ctx context.Context) (io.ReadCloser, LeftOut, error) {
	res, err := c.request(ctx, http.MethodPost, "/v1/backup", nil, nil)
	if err != nil {
		return nil, LeftOut{}, err
	}
	var left LeftOut
	if text := res.Header.Get("Parley-Left-Out"); text != "" {
		if err := json.Unmarshal([]byte(text), &left); err != nil {
			return nil, left, errors.Join(fmt.Errorf("what was left out: %w", err), res.Body.Close())
		}
	}
	return res.Body, left, nil
}

// request returns a good answer only; every other is an error, with the body closed.
func (c *Client) request(ctx context.Context, method, path string, header http.Header, body any) (*http.Response, error) {
	var r io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		r = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base.String()+path, r)
	if err != nil {
		return nil, err
	}
	for name, values := range header {
		req.Header[name] = values
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	if c.Surface != "" {
		req.Header.Set("Parley-Surface", c.Surface)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := c.http.Do(req)
	if err != nil {
		var op *net.OpError
		if errors.As(err, &op) && op.Op == "dial" {
			return nil, fmt.Errorf("%w at %s", ErrUnreachable, c.base.Host)
		}
		return nil, err
	}
	if res.StatusCode >= 200 && res.StatusCode < 300 {
		return res, nil
	}
	defer res.Body.Close()
	p := &Problem{Title: http.StatusText(res.StatusCode), Status: res.StatusCode}
	if strings.HasPrefix(res.Header.Get("Content-Type"), "application/problem+json") {
		_ = json.NewDecoder(io.LimitReader(res.Body, 1<<20)).Decode(p) // a broken one still has its status
	}
	return nil, p
}

// Message is what is said to an agent.
type Message struct {
	Agent   string `json:"agent,omitempty"`
	Session string `json:"session,omitempty"`
	Text    string `json:"text"`
	Wait    int    `json:"wait,omitempty"` // seconds, at most 600
	Key     string `json:"-"`              // Idempotency-Key; empty: each is a message of its own
}

// Answer is a journalled message, and what came of it if it ended in time: then State is not empty.
type Answer struct {
	InputID string          `json:"input_id"`
	RunID   string          `json:"run_id"`
	Session string          `json:"session"`
	State   string          `json:"state"`
	Reason  string          `json:"reason"`
	Text    string          `json:"text"`
	Usage   json.RawMessage `json:"usage"`
	Log     json.RawMessage `json:"log"`
}

// Send journals a message; with Wait it returns when its turn ended, or the time is over.
func (c *Client) Send(ctx context.Context, m Message) (Answer, error) {
	h := http.Header{}
	if m.Key != "" {
		h.Set("Idempotency-Key", m.Key)
	}
	var a Answer
	err := c.do(ctx, http.MethodPost, "/v1/messages", h, m, &a)
	return a, err
}

// Wait asks until a gateway answers at the address, at most for the time. Other errors than ErrUnreachable end it.
func (c *Client) Wait(ctx context.Context, most time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, most, ErrUnreachable)
	defer cancel()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		err := c.Get(ctx, "/healthz", nil)
		if !errors.Is(err, ErrUnreachable) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-again.C:
		}
	}
}
