package configs

import (
	"context"
	"net/url"
	"os"
	"strings"
)

// LocalServers are the usual OpenAI-compatible addresses of Ollama, LM Studio and llama.cpp, in the order in which they are
// asked.
func LocalServers() []string {
	return []string{"http://127.0.0.1:11434/v1", "http://127.0.0.1:1234/v1", "http://127.0.0.1:8080/v1"}
}

// Probe asks an OpenAI-compatible server for a model that it serves. It is called one after the other and returns soon when
// nobody is there.
type Probe func(ctx context.Context, baseURL string) (model string, ok bool)

// Discover says what to use when no model is configured, best first: ANTHROPIC_API_KEY; OPENAI_API_KEY, with OPENAI_BASE_URL;
// without such a key the first local server that answers; and always, last, the built-in offline responder. It is empty when
// models are configured. ANTHROPIC_MODEL and OPENAI_MODEL choose the model. A nil probe asks nobody; a nil env is the process's own.
//
// What is first is meant: when it cannot be used, the caller says so and does not quietly take the next.
func (c *Config) Discover(ctx context.Context, env Lookup, probe Probe) []Model {
	if len(c.Models) > 0 {
		return nil
	}
	if probe == nil {
		probe = func(context.Context, string) (string, bool) { return "", false }
	}
	if env == nil {
		env = os.LookupEnv
	}
	get := func(name string) string {
		value, _ := env(name)
		return strings.TrimSpace(value)
	}
	var found []Model
	if secret := get("ANTHROPIC_API_KEY"); secret != "" {
		found = append(found, discovered("anthropic", either(get("ANTHROPIC_MODEL"), "claude-sonnet-4-5"), "", secret, "ANTHROPIC_API_KEY"))
	}
	if secret := get("OPENAI_API_KEY"); secret != "" {
		base, model := get("OPENAI_BASE_URL"), get("OPENAI_MODEL")
		if model == "" && base != "" && !isOpenAI(base) {
			model, _ = probe(ctx, base)
		}
		found = append(found, discovered("openai", either(model, "gpt-5-mini"), base, secret, "OPENAI_API_KEY"))
	}
	for _, base := range LocalServers() {
		if len(found) > 0 {
			break
		}
		if model, ok := probe(ctx, base); ok {
			found = append(found, discovered("openai", model, base, "", "the server at "+base))
		}
	}
	return append(found, discovered("offline", "", "", "", "no key and no local server"))
}

func discovered(api, model, base, secret, by string) Model {
	m := Model{Name: api, API: api, BaseURL: base, Model: model, APIKey: Secret(secret), ContextWindow: 128000, MaxOutputTokens: 8192, Found: by}
	if base != "" && secret == "" {
		m.Name = "local"
	}
	m.complete()
	return m
}

func isOpenAI(base string) bool {
	u, err := url.Parse(base)
	return err == nil && u.Hostname() == "api.openai.com"
}
