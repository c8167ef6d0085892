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
	"sync/atomic"
	"time"

	"parley/agentloop/llm"
	"parley/agentloop/llm/wire"
	"parley/workspace"
)

const baseForm = "http(s)://host/v1"

// Options of one configured model.
type Options struct {
	Name          string // as configured; told in Info and Response
	Provider      string // whose it is, by name; told in Info
	Model         string // the server's name for it
	BaseURL       string // with its /v1
	APIKey        string // sent as a bearer token; empty: no header
	ContextWindow int    // tokens; 0: unknown
	MaxOutput     int    // tokens, when a request names no limit; 0: the server's default
	// HTTP is the one pooled client. Its transport is used; its redirects, cookies and whole-call timeout are not.
	HTTP *http.Client
	// Blobs reads an image or PDF that a message refers to. Nil, or an error: the model is told that there was one.
	Blobs func(ref string) ([]byte, error)
	// Sight of the model; unknown: as its name says, else found out. PDFs are shown where it Sees, and else by OpenAI
	// and OpenRouter, which read them for every model.
	Sight llm.Sight
	// Price of one call; nil, or false: unpriced.
	Price     func(workspace.Usage) (usd float64, ok bool)
	FirstByte time.Duration // how long the first byte of the answer may take; 0: 60 s
	Idle      time.Duration // how long the next byte may take; 0: 60 s
}

// Model is one model behind one server. It is safe for concurrent use.
type Model struct {
	o        Options
	client   wire.Client
	endpoint string
	official bool // OpenAI itself, whose newest parameters are known to work
	account  string
	prefixes wire.Prefixes
	given    quirk         // known from the start
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
	u, err := wire.ParseBase(o.BaseURL, o.APIKey, baseForm)
	if err != nil {
		return nil, err
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
	m := &Model{o: o, endpoint: u.JoinPath("chat/completions").String(), official: u.Host == "api.openai.com",
		client:   wire.Client{HTTP: wire.Bare(o.HTTP), Key: o.APIKey, FirstByte: o.FirstByte, Idle: o.Idle, Refused: refused},
		prefixes: wire.Prefixes{Encode: encodePrefix}}
	sum := sha256.Sum256([]byte(o.BaseURL + "\x00" + o.APIKey + "\x00" + o.Model))
	m.account = hex.EncodeToString(sum[:8])
	if m.official {
		m.learned.Store(uint32(completionTokens))
	}
	if o.Sight != llm.Sees && !m.official && u.Hostname() != "openrouter.ai" {
		m.given = noFiles
	}
	if o.Sight == llm.Blind || o.Sight == llm.SightUnknown && llm.SightOf(o.Model) == llm.Blind {
		m.given = sightless | noFiles
	}
	return m, nil
}

// Info is what the configuration says.
func (m *Model) Info() llm.Info {
	return llm.Info{Name: m.o.Name, Model: m.o.Model, Provider: m.o.Provider,
		ContextWindow: m.o.ContextWindow, MaxOutput: m.o.MaxOutput, Thinks: m.thinks()}
}

// Account tells models apart that share a server, a key and a name there, and so their limits, without saying them.
func (m *Model) Account() string { return m.account }

// Stream implements llm.Model.
func (m *Model) Stream(ctx context.Context, req llm.Request, onDelta func(llm.Delta)) (llm.Response, error) {
	start := time.Now()
	resp, err := m.ask(ctx, req, onDelta)
	if err != nil {
		return llm.Response{}, wire.Finish(ctx, m.Info(), err)
	}
	return wire.Bill(resp, m.o.Name, start, m.o.Price), nil
}

// ask makes the call and learns: when the server refuses a habit of Parley's it is asked again without it.
func (m *Model) ask(ctx context.Context, req llm.Request, onDelta func(llm.Delta)) (llm.Response, error) {
	q := quirk(m.learned.Load()) | m.given
	var first error // of a guess, which must not hide why the request was refused
	for range 8 {
		resp, err := m.once(ctx, req, q, onDelta)
		if err == nil {
			m.learned.Or(uint32(q &^ (m.given | noPictures)))
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

// once makes one HTTP call. An error of the server is an *llm.Error.
func (m *Model) once(ctx context.Context, req llm.Request, q quirk, onDelta func(llm.Delta)) (llm.Response, error) {
	header := http.Header{"Content-Type": {"application/json"}, "Accept": {"text/event-stream"}}
	if m.o.APIKey != "" {
		header.Set("Authorization", "Bearer "+m.o.APIKey)
	}
	a := &answer{client: &m.client, onDelta: onDelta, room: wire.NewRoom(m.limit(req), req.Hold)}
	if err := m.client.Post(ctx, m.endpoint, header, m.body(req, q), a, a.room); err != nil {
		return llm.Response{}, err
	}
	return a.response(m.account, wire.CallIDs(req.Messages)), nil
}
