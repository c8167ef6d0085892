// Package openai talks to servers that speak OpenAI's Chat Completions: OpenAI itself, and the many that copied it
// (OpenRouter, vLLM, llama.cpp, Ollama, DeepSeek, Mistral, Gemini's compatible door). It always streams. It does
// not retry, except once for each habit of a server that it learns from a 400 (quirks.go); llm.Registry does that.
// It starts no goroutine beyond net/http's and the timer that ends a silent call.
//
// The client is our own: docs/adr/0001-openai-client.md says why.
package openai

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"parley/agentloop/llm"
	"parley/workspace"
)

// Options of one configured model.
type Options struct {
	Name          string // as configured; told in Info and Response
	Model         string // the server's name for it
	BaseURL       string // with its /v1
	APIKey        string // sent as a bearer token; empty: no header
	ContextWindow int    // tokens; 0: unknown
	MaxOutput     int    // tokens, when a request names no limit; 0: the server's default
	// HTTP is the one pooled client. Its transport is used; its redirects, cookies and whole-call timeout are not.
	HTTP *http.Client
	// Blobs reads an image that a message refers to. Nil, or an error: the model is told that there was one.
	Blobs func(ref string) ([]byte, error)
	// Price of one call; nil, or false: unpriced.
	Price     func(workspace.Usage) (usd float64, ok bool)
	FirstByte time.Duration // how long the first byte of the answer may take; 0: 60 s
	Idle      time.Duration // how long the next byte may take; 0: 60 s
}

// Model is one model behind one server. It is safe for concurrent use.
type Model struct {
	o        Options
	http     *http.Client
	endpoint string
	official bool // OpenAI itself, whose newest parameters are known to work
	account  string
	prefixes prefixes
	readers  readers
	learned  atomic.Uint32 // quirks that this server has shown
	proven   atomic.Bool   // it has answered once
}

var _ llm.Model = (*Model)(nil)

// New checks the options; it does no IO. The error names the option that is wrong, never its value when secret.
func New(o Options) (*Model, error) {
	if o.Model == "" {
		return nil, errors.New("model is empty")
	}
	if o.HTTP == nil {
		return nil, errors.New("no http client")
	}
	u, err := parseBase(o.BaseURL)
	if err != nil {
		return nil, err
	}
	if strings.ContainsFunc(o.APIKey, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("api_key has white space or a special character in it")
	}
	if o.Name == "" {
		o.Name = o.Model
	}
	if o.FirstByte <= 0 {
		o.FirstByte = time.Minute
	}
	if o.Idle <= 0 {
		o.Idle = time.Minute
	}
	m := &Model{o: o, http: bare(o.HTTP), endpoint: u.JoinPath("chat/completions").String(), official: u.Host == "api.openai.com"}
	sum := sha256.Sum256([]byte(o.BaseURL + "\x00" + o.APIKey + "\x00" + o.Model))
	m.account = hex.EncodeToString(sum[:8])
	if m.official {
		m.learned.Store(uint32(completionTokens))
	}
	return m, nil
}

func parseBase(base string) (*url.URL, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("base_url must be http(s)://host/v1")
	}
	if u.User != nil {
		return nil, errors.New("base_url holds a user; put the key into api_key")
	}
	return u, nil
}

// bare is c without what a model call must not have: a redirect would carry the key and the conversation to
// whoever the server names, and a timeout of the whole call would cut long answers.
func bare(c *http.Client) *http.Client {
	return &http.Client{Transport: c.Transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
}

// Info is what the configuration says.
func (m *Model) Info() llm.Info {
	return llm.Info{Name: m.o.Name, Model: m.o.Model, ContextWindow: m.o.ContextWindow, MaxOutput: m.o.MaxOutput}
}

// Account tells models apart that share a server, a key and a name there, and so their limits, without saying them.
func (m *Model) Account() string { return m.account }

// Stream implements llm.Model.
func (m *Model) Stream(ctx context.Context, req llm.Request, onDelta func(llm.Delta)) (llm.Response, error) {
	start := time.Now()
	resp, err := m.ask(ctx, req, onDelta)
	if err != nil {
		return llm.Response{}, m.failed(ctx, err)
	}
	resp.Model = m.o.Name
	resp.Usage.Calls = 1
	resp.Usage.DurationMS = time.Since(start).Milliseconds()
	if m.o.Price != nil && resp.Usage.InputTokens+resp.Usage.OutputTokens+resp.Usage.CacheReadTokens > 0 {
		if usd, ok := m.o.Price(resp.Usage); ok {
			resp.Usage.CostUSD = &usd
		}
	}
	return resp, nil
}

// failed completes the error of a call.
func (m *Model) failed(ctx context.Context, err error) error {
	var e *llm.Error
	if !errors.As(err, &e) {
		e = &llm.Error{Kind: llm.Rejected, Err: err}
	}
	e.Model = m.o.Name
	if ctx.Err() != nil {
		e.Kind, e.Err = llm.Cancelled, context.Cause(ctx)
	}
	return e
}

// ask makes the call and learns: when the server refuses a habit of ours it is asked again without it.
func (m *Model) ask(ctx context.Context, req llm.Request, onDelta func(llm.Delta)) (llm.Response, error) {
	q := quirk(m.learned.Load())
	var first error // of a guess, which must not hide why the request was refused
	for range 5 {
		resp, err := m.once(ctx, req, q, onDelta)
		if err == nil {
			m.learned.Or(uint32(q))
			m.proven.Store(true)
			return resp, nil
		}
		next, guess, ok := q.adapt(err, req, m.proven.Load())
		if !ok {
			if first != nil {
				err = first
			}
			return llm.Response{}, err
		}
		if guess {
			first = err
		}
		q = next
	}
	return llm.Response{}, fmt.Errorf("server refuses every form of the request")
}
