// Package provider knows who serves models: the table that set-up offers by name, which models a server lists, and what is wrong
// where one cannot be used, as a sentence for people. It keeps no key, follows no redirect, and retries nothing. It starts no
// goroutine beyond net/http's.
package provider

import (
	"net/url"
	"path"
	"slices"
	"strings"
)

// Other is the provider that is none of the table by name.
const Other = "other"

// Provider is somebody who serves models, or a program that does on this machine.
type Provider struct {
	ID       string   `json:"id"`
	Name     string   `json:"name"`
	API      string   `json:"api"`
	BaseURL  string   `json:"base_url"` // empty: everybody has one of their own
	Example  string   `json:"example,omitempty"`
	Local    bool     `json:"local"`
	NeedsKey bool     `json:"needs_key"`
	KeyURL   string   `json:"key_url,omitempty"`
	KeyHint  string   `json:"key_hint,omitempty"`
	Note     string   `json:"note,omitempty"`
	Env      string   `json:"env,omitempty"` // the variable that usually holds the key
	Model    string   `json:"model"`         // what a model of it is called in a configuration
	Window   int      `json:"context_window"`
	Prefer   []string `json:"-"` // beginnings of the models to suggest, the best first
	Empty    string   `json:"-"` // the command that gets a first model
	keyPath  string   // what needs the key, where the list does not
}

// Find is the provider of an id.
func Find(id string) (Provider, bool) {
	list := All()
	i := slices.IndexFunc(list, func(p Provider) bool { return p.ID == id })
	if i < 0 {
		return Provider{}, false
	}
	return list[i], true
}

// Of is the provider at an address; Other when the table has none.
func Of(api, base string) Provider {
	other, _ := Find(Other)
	other.API = api
	u, err := url.Parse(base)
	if err != nil || u.Host == "" {
		return other
	}
	for _, p := range All() {
		if p.API == api && p.serves(u) {
			return p
		}
	}
	other.Name = u.Host
	return other
}

// Called is what people call who answers at an address; empty: the table does not have it.
func Called(api, base string) string {
	p := Of(api, base)
	if p.ID == Other {
		return ""
	}
	name, _, _ := strings.Cut(p.Name, " (")
	return name
}

// serves says whether an address is of the provider.
func (p Provider) serves(u *url.URL) bool {
	if p.ID == "azure" {
		return azure(u.Hostname())
	}
	own, err := url.Parse(p.BaseURL)
	if err != nil || own.Host == "" {
		return false
	}
	if p.Local {
		return loopback(u.Hostname()) && u.Port() == own.Port()
	}
	return strings.EqualFold(u.Hostname(), own.Hostname())
}

func azure(host string) bool {
	host = strings.ToLower(host)
	return strings.HasSuffix(host, ".openai.azure.com") || strings.HasSuffix(host, ".services.ai.azure.com") ||
		strings.HasSuffix(host, ".cognitiveservices.azure.com")
}

func loopback(host string) bool {
	return host == "localhost" || host == "::1" || strings.HasPrefix(host, "127.")
}

// endpoints are what people paste behind the address that is wanted.
var endpoints = []string{"/chat/completions", "/completions", "/responses", "/messages", "/models", "/embeddings"}

// Clean is an address without what was pasted too much: white space, a slash, an endpoint.
func Clean(base string) string {
	base = strings.TrimRight(strings.TrimSpace(base), "/")
	for _, e := range endpoints {
		base = strings.TrimSuffix(base, e)
	}
	return strings.TrimRight(base, "/")
}

// candidates are the addresses at which the list may be, on the same host: that which was given, the provider's own path there, and
// with a /v1, which is often forgotten.
func (t Target) candidates(given *url.URL) []*url.URL {
	list := []*url.URL{given}
	if t.API == "anthropic" || t.Exact {
		return list
	}
	add := func(to string) {
		u := *given
		u.Path, u.RawPath = to, ""
		if !slices.ContainsFunc(list, func(other *url.URL) bool { return strings.TrimRight(other.Path, "/") == u.Path }) {
			list = append(list, &u)
		}
	}
	if azure(given.Hostname()) {
		add("/openai/v1")
	} else if own, err := url.Parse(t.Provider.BaseURL); err == nil && strings.EqualFold(own.Host, given.Host) {
		add(own.Path)
	}
	if path.Base(given.Path) != "v1" {
		add(strings.TrimRight(given.Path, "/") + "/v1")
	}
	return list
}

// Suggest is which of the models to take first; empty: none can be told.
func (p Provider) Suggest(models []Model) string {
	for _, begin := range p.Prefer {
		for _, m := range models {
			if strings.HasPrefix(m.ID, begin) && !otherUse(m.ID) {
				return m.ID
			}
		}
	}
	for _, m := range models {
		if !otherUse(m.ID) {
			return m.ID
		}
	}
	return ""
}

// otherUse says that a model is not one to chat with, by its name: servers list them beside the others.
func otherUse(model string) bool {
	model = strings.ToLower(model)
	for _, word := range []string{"embed", "rerank", "whisper", "tts", "bge-", "all-minilm", "moderation", "dall-e", "image", "audio",
		"realtime", "transcribe", "sora", "imagen", "veo", "ocr", "guard", "aqa"} {
		if strings.Contains(model, word) {
			return true
		}
	}
	return model == ""
}
