package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"parley/agentloop/llm"
	"parley/agentloop/llm/wire"
	"parley/workspace"
)

// Bounds of what a server is asked.
const (
	within    = 10 * time.Second // for its list, in all
	maxList   = 4 << 20          // bytes
	maxModels = 1000
	maxName   = 200 // characters of a model's name; a longer one is left out
)

// Target is a server and the key for it.
type Target struct {
	Provider          Provider
	API, BaseURL, Key string
	Exact             bool // the address is meant as it stands: no other path is tried
}

// Model is one that a server lists.
type Model struct {
	ID     string `json:"id"`
	Window int    `json:"context_window,omitempty"` // tokens; 0: it does not say
}

// List asks a server for its models. The address is returned as it worked: with its /v1 where that was forgotten. A key goes to
// the host of BaseURL only. The error is a *Trouble.
func List(ctx context.Context, h *http.Client, t Target) (models []Model, base string, err error) {
	base = Clean(t.BaseURL)
	given, err := wire.ParseBase(base, t.Key, "an http or https address such as http://127.0.0.1:11434/v1")
	if err != nil {
		return nil, base, t.trouble(BadAddress, 0, "%v", err)
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var first *Trouble
	for _, u := range t.candidates(given) {
		got, err := t.ask(ctx, h, u)
		if err == nil {
			base = u.String()
			return got, base, t.checkKey(ctx, h, u)
		}
		if first == nil || err.Code == KeyRefused && first.Code != KeyRefused {
			first = err
		}
		if !err.elsewhere() {
			break
		}
	}
	return nil, base, first
}

// Lacks says that a server has no model of a name. Where it does not say, it has.
func Lacks(ctx context.Context, h *http.Client, t Target, model string) bool {
	u, err := wire.ParseBase(Clean(t.BaseURL), t.Key, "an http or https address")
	if err != nil {
		return false
	}
	if t.API == "anthropic" {
		u.Path = strings.TrimSuffix(u.Path, "/v1") + "/v1"
	}
	_, trouble := t.get(ctx, h, u.JoinPath("models", model))
	return trouble != nil && trouble.Status == http.StatusNotFound
}

// elsewhere says that another path of the same server may have what was looked for.
func (t *Trouble) elsewhere() bool {
	return t.Code == NotFound || t.Code == NotModels || t.Code == Redirects || t.Code == KeyRefused || t.Code == KeyMissing ||
		t.Code == Refused
}

// ask is one request for the list.
func (t Target) ask(ctx context.Context, h *http.Client, u *url.URL) ([]Model, *Trouble) {
	at := u.JoinPath("models")
	if t.API == "anthropic" {
		root := *u
		root.Path = strings.TrimSuffix(root.Path, "/v1")
		at = root.JoinPath("v1/models")
		at.RawQuery = "limit=1000"
	}
	body, trouble := t.get(ctx, h, at)
	if trouble != nil {
		return nil, trouble
	}
	models, ok := decode(body)
	if !ok {
		return nil, t.trouble(NotModels, 0, "%s answers, but not with a list of models: is %s the address of its API?", t.who(), plain(u))
	}
	return models, nil
}

// checkKey asks for what needs the key, where anybody may read the list.
func (t Target) checkKey(ctx context.Context, h *http.Client, u *url.URL) error {
	if t.Provider.keyPath == "" {
		return nil
	}
	if _, err := t.get(ctx, h, u.JoinPath(t.Provider.keyPath)); err != nil && err.Code == KeyRefused {
		return err
	}
	return nil // whatever else is wrong there, models are asked elsewhere
}

// get reads an answer of the server, with the key and without following a redirect.
func (t Target) get(ctx context.Context, h *http.Client, at *url.URL) ([]byte, *Trouble) {
	client := &wire.Client{HTTP: wire.Bare(h), Key: t.Key, Refused: func(_ int, body []byte) (string, llm.Kind) {
		if page(body, "") {
			return "", llm.Rejected // of a page there is nothing to quote
		}
		text, _ := wire.ErrorText(body)
		return text, llm.Rejected
	}}
	call, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, t.trouble(BadAddress, 0, "the address cannot be used")
	}
	call.Header.Set("Accept", "application/json")
	switch {
	case t.Key == "":
	case t.API == "anthropic":
		call.Header.Set("X-Api-Key", t.Key)
	default:
		call.Header.Set("Authorization", "Bearer "+t.Key)
	}
	if t.API == "anthropic" {
		call.Header.Set("Anthropic-Version", "2023-06-01")
	}
	resp, err := client.HTTP.Do(call)
	if err != nil {
		return nil, t.Failed("", wire.Finish(ctx, llm.Info{Name: t.Provider.ID}, client.Unreached(context.Cause(ctx), err)))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, t.Failed("", wire.Finish(ctx, llm.Info{Name: t.Provider.ID}, client.Failed(resp)))
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxList+1))
	switch {
	case err != nil:
		return nil, t.Failed("", wire.Finish(ctx, llm.Info{Name: t.Provider.ID}, client.Unreached(context.Cause(ctx), err)))
	case len(body) > maxList:
		return nil, t.trouble(TooLong, 0, "%s answers with more than 4 MiB: that is not a list of models", t.who())
	case page(body, resp.Header.Get("Content-Type")):
		return nil, t.trouble(NotModels, 0, "%s answers with a web page instead of a list of models: is %s the address of its API?",
			t.who(), strings.TrimSuffix(plain(at), "/models"))
	}
	return body, nil
}

// page says that an answer is for a browser.
func page(body []byte, kind string) bool {
	return strings.HasPrefix(kind, "text/html") || bytes.HasPrefix(bytes.TrimSpace(body), []byte("<"))
}

// decode reads the lists of the many servers: {"data": […]}, {"models": […]}, or the list alone; data may be null where there is
// none yet.
func decode(body []byte) ([]Model, bool) {
	var list []map[string]json.RawMessage
	var object map[string]json.RawMessage
	if json.Unmarshal(body, &list) != nil {
		if json.Unmarshal(body, &object) != nil {
			return nil, false
		}
		raw, ok := object["data"]
		if !ok {
			raw, ok = object["models"]
		}
		if !ok || json.Unmarshal(raw, &list) != nil {
			return nil, false
		}
	}
	models, seen := []Model{}, map[string]bool{}
	for _, one := range list {
		id := strings.TrimPrefix(word(one, "id", "name"), "models/") // Gemini's own prefix, which it takes with and without
		if id == "" || seen[id] || len([]rune(id)) > maxName || workspace.Visible(id) != id || len(models) == maxModels {
			continue
		}
		seen[id] = true
		models = append(models, Model{ID: id, Window: window(one)})
	}
	return models, true
}

func word(one map[string]json.RawMessage, keys ...string) string {
	for _, k := range keys {
		var text string
		if json.Unmarshal(one[k], &text) == nil && text != "" {
			return text
		}
	}
	return ""
}

// window is how many tokens a model takes, by whatever name the server has for it.
func window(one map[string]json.RawMessage) int {
	for _, k := range []string{"context_length", "context_window", "max_context_length", "max_model_len", "max_input_tokens"} {
		var n float64
		if json.Unmarshal(one[k], &n) == nil && n >= 1 && n <= 1e8 {
			return int(n)
		}
	}
	var meta map[string]json.RawMessage // of llama.cpp
	if json.Unmarshal(one["meta"], &meta) == nil && meta != nil {
		return window(map[string]json.RawMessage{"context_length": meta["n_ctx_train"]})
	}
	return 0
}

// plain is an address without what may be a secret in it.
func plain(u *url.URL) string { return u.Scheme + "://" + u.Host + u.Path }

// said is a server's words in a failure, which are a stranger's.
func said(err error) string {
	var e *llm.Error
	if !errors.As(err, &e) || e.Status == 0 {
		return ""
	}
	text := strings.ReplaceAll(llm.TroubleOf(err).Said, "`", "'")
	if text == "" || text == http.StatusText(e.Status) || json.Valid([]byte(text)) { // which tells people nothing
		return ""
	}
	return ": `" + text + "`"
}
