// Package anthropic talks to servers that speak Anthropic's Messages API: Anthropic itself, and those that copied it.
// It always streams. It does not retry, except once for each thing that it learns from a 400 (quirks.go);
// llm.Registry does that. It starts no goroutine beyond net/http's and the timer that ends a silent call.
//
// The client is our own: docs/adr/0005-anthropic-client.md says why.
package anthropic

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"parley/agentloop/llm"
	"parley/agentloop/llm/wire"
	"parley/workspace"
)

const (
	version    = "2023-06-01" // https://platform.claude.com/docs/en/api/versioning
	home       = "https://api.anthropic.com"
	maxTokens  = 8192 // of an answer, when nothing is configured: the API wants a limit
	baseForm   = "http(s)://host"
	maxChanges = 4 // ways to ask again that are tried in one call
)

// Options of one configured model.
type Options struct {
	Name          string // as configured; told in Info and Response
	Provider      string // whose it is, by name; told in Info
	Model         string // the server's name for it
	BaseURL       string // with or without its /v1; empty: Anthropic's own
	APIKey        string // sent as x-api-key; empty: no header
	ContextWindow int    // tokens; 0: unknown
	MaxOutput     int    // tokens, when a request names no limit; 0: 8,192
	// HTTP is the one pooled client. Its transport is used; its redirects, cookies and whole-call timeout are not.
	HTTP *http.Client
	// Blobs reads an image or PDF that a message refers to. Nil, or an error: the model is told that there was one.
	Blobs func(ref string) ([]byte, error)
	// Sight of the model; unknown: as its name says, else found out.
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
	account  string
	prefixes wire.Prefixes
	learned  atomic.Uint32 // quirks that this server has shown
	limit    atomic.Int64  // of output tokens, as the server said; 0: not yet
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
	if o.BaseURL == "" {
		o.BaseURL = home
	}
	u, err := wire.ParseBase(o.BaseURL, o.APIKey, baseForm)
	if err != nil {
		return nil, err
	}
	u.Path = strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/v1")
	if o.Name == "" {
		o.Name = o.Model
	}
	if o.MaxOutput <= 0 {
		o.MaxOutput = maxTokens
	}
	if o.FirstByte <= 0 {
		o.FirstByte = time.Minute
	}
	if o.Idle <= 0 {
		o.Idle = time.Minute
	}
	m := &Model{o: o, endpoint: u.JoinPath("v1/messages").String(),
		client:   wire.Client{HTTP: wire.Bare(o.HTTP), Key: o.APIKey, FirstByte: o.FirstByte, Idle: o.Idle, Refused: refused},
		prefixes: wire.Prefixes{Encode: encodePrefix}}
	sum := sha256.Sum256([]byte(m.endpoint + "\x00" + o.APIKey + "\x00" + o.Model))
	m.account = hex.EncodeToString(sum[:8])
	if o.Sight == llm.Blind || o.Sight == llm.SightUnknown && llm.SightOf(o.Model) == llm.Blind {
		m.learned.Store(uint32(sightless))
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

// ask makes the call and learns: what the server refuses of a request is left out when it is asked again.
func (m *Model) ask(ctx context.Context, req llm.Request, onDelta func(llm.Delta)) (llm.Response, error) {
	q := m.quirks()
	for changes := 0; ; changes++ {
		resp, err := m.once(ctx, req, q, onDelta)
		if err == nil {
			m.learned.Or(uint32(q & lasting))
			return resp, nil
		}
		next, ok := m.adapt(err, req, q)
		if !ok || changes == maxChanges {
			return llm.Response{}, err
		}
		q = next
	}
}

// once makes one HTTP call. An error of the server is an *llm.Error.
func (m *Model) once(ctx context.Context, req llm.Request, q quirk, onDelta func(llm.Delta)) (llm.Response, error) {
	header := http.Header{"Content-Type": {"application/json"}, "Accept": {"text/event-stream"}, "Anthropic-Version": {version}}
	if m.o.APIKey != "" {
		header.Set("X-Api-Key", m.o.APIKey)
	}
	w := m.write(req, q)
	_, most := m.thinking(req.Think, q, m.maxTokens(req))
	a := &answer{client: &m.client, onDelta: onDelta, room: wire.NewRoom(most, req.Hold)}
	if err := m.client.Post(ctx, m.endpoint, header, w.body(), a, a.room); err != nil {
		return llm.Response{}, err
	}
	from := origin{account: m.account}
	if a.thinks() {
		from.prefix = w.sum(len(w.b))
	}
	return a.response(from, wire.CallIDs(req.Messages)), nil
}
