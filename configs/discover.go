package configs

import (
	"context"
	"net/url"
	"os"
	"strings"
	"sync"
)

// LocalServer is an OpenAI-compatible server at its usual address on this machine.
type LocalServer struct{ Name, URL string }

// LocalServers are Ollama, LM Studio and llama.cpp, the one that is preferred first.
func LocalServers() []LocalServer {
	return []LocalServer{{"Ollama", "http://127.0.0.1:11434/v1"}, {"LM Studio", "http://127.0.0.1:1234/v1"}, {"llama.cpp", "http://127.0.0.1:8080/v1"}}
}

// Probe asks an OpenAI-compatible server for the models that it lists. It is called from several goroutines at once and
// returns soon when nobody is there. Its error is one sentence for people.
type Probe func(ctx context.Context, baseURL, key string) (models []string, err error)

// Discovery is the model that is used when none is configured, and how it was come to.
type Discovery struct {
	Model  Model // the offline responder when there is no other
	Looked []Look
}

// Look is one place where a model was looked for, the most preferred first. What stands behind the one that was found
// was not looked at.
type Look struct {
	Where string
	Found bool
	Why   string
}

// FromEnv is the model that the environment names, when that can be known without asking anybody. A nil env is the
// process's own.
func FromEnv(env Lookup) (Model, bool) {
	get := getter(env)
	if secret := get("ANTHROPIC_API_KEY"); secret != "" {
		return discovered("anthropic", either(get("ANTHROPIC_MODEL"), "claude-sonnet-4-5"), "", secret, "ANTHROPIC_API_KEY"), true
	}
	secret, base, model := get("OPENAI_API_KEY"), get("OPENAI_BASE_URL"), get("OPENAI_MODEL")
	if secret == "" || model == "" && base != "" && !isOpenAI(base) {
		return Model{}, false
	}
	return discovered("openai", either(model, defaultOpenAI), base, secret, "OPENAI_API_KEY"), true
}

const defaultOpenAI = "gpt-5-mini"

// Discover says what to use when no model is configured, the first of: ANTHROPIC_API_KEY; OPENAI_API_KEY, with
// OPENAI_BASE_URL; a server that answers at OPENAI_BASE_URL, or at the usual address of a local one; the built-in offline
// responder. ANTHROPIC_MODEL and OPENAI_MODEL choose the model. Servers are asked side by side. A nil env is the process's
// own.
//
// A key that is there is meant: when it cannot be used, the caller says so and does not quietly take the next.
func Discover(ctx context.Context, env Lookup, probe Probe) Discovery {
	get := getter(env)
	var d Discovery
	for _, name := range []string{"ANTHROPIC_API_KEY", "OPENAI_API_KEY"} {
		if get(name) == "" {
			d.Looked = append(d.Looked, Look{Where: name, Why: "is not set"})
			continue
		}
		d.Looked = append(d.Looked, Look{Where: name, Found: true, Why: "is set"})
		var known bool
		if d.Model, known = FromEnv(env); !known {
			base, secret := get("OPENAI_BASE_URL"), get("OPENAI_API_KEY")
			models, err := probe(ctx, base, secret)
			d.Model = discovered("openai", either(choose(models, ""), defaultOpenAI), base, secret, name)
			if err != nil {
				d.Looked = append(d.Looked, Look{Where: base, Why: "does not list its models (" + err.Error() + "), so " + defaultOpenAI + " is asked for; OPENAI_MODEL names another"})
			}
		}
		return d
	}
	servers := LocalServers()
	if base := get("OPENAI_BASE_URL"); base != "" {
		servers = append([]LocalServer{{"OPENAI_BASE_URL", base}}, servers...)
	}
	answers := ask(ctx, servers, probe)
	for i, s := range servers {
		where := s.Name + " at " + s.URL
		model := choose(answers[i].models, get("OPENAI_MODEL"))
		if model == "" {
			d.Looked = append(d.Looked, Look{Where: where, Why: answers[i].why()})
			continue
		}
		d.Looked = append(d.Looked, Look{Where: where, Found: true, Why: "serves " + model})
		d.Model = discovered("openai", model, s.URL, "", where)
		return d
	}
	d.Model = discovered("offline", "", "", "", "no key is set and no local server answers")
	return d
}

type answer struct {
	models []string
	err    error
}

func (a answer) why() string {
	if a.err != nil {
		return a.err.Error()
	}
	return "has no model to chat with"
}

// ask asks all servers at once; it ends when all have answered.
func ask(ctx context.Context, servers []LocalServer, probe Probe) []answer {
	answers := make([]answer, len(servers))
	var wg sync.WaitGroup
	for i, s := range servers {
		wg.Go(func() { answers[i].models, answers[i].err = probe(ctx, s.URL, "") })
	}
	wg.Wait()
	return answers
}

// choose is the wanted model if it is there, else the first that one can talk to: local servers list models for
// embedding, ranking and speech beside the others.
func choose(models []string, wanted string) string {
	first := ""
	for _, m := range models {
		if m == wanted && m != "" {
			return m
		}
		if first == "" && !otherUse(m) {
			first = m
		}
	}
	return first
}

// Choose is the first of a server's models that one can talk to; empty when there is none.
func Choose(models []string) string { return choose(models, "") }

func otherUse(model string) bool {
	model = strings.ToLower(model)
	for _, word := range []string{"embed", "rerank", "whisper", "tts", "bge-", "all-minilm", "moderation", "dall-e"} {
		if strings.Contains(model, word) {
			return true
		}
	}
	return model == ""
}

func getter(env Lookup) func(string) string {
	if env == nil {
		env = os.LookupEnv
	}
	return func(name string) string {
		value, _ := env(name)
		return strings.TrimSpace(value)
	}
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
