// Which model answers.

package onboard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"

	"parley/cmd/parley/internal/cli"
	"parley/configs"
)

// provider is a way to a model that onboard knows.
type provider struct {
	id, label, api, name, base, model, env, keys string
	window                                       int
}

func providers() []provider {
	return []provider{
		{"anthropic", "Anthropic (Claude)", "anthropic", "claude", "https://api.anthropic.com", "claude-sonnet-4-5",
			"ANTHROPIC_API_KEY", "https://console.anthropic.com/settings/keys", 200_000},
		{"openai", "OpenAI", "openai", "openai", "https://api.openai.com/v1", "gpt-5-mini", "OPENAI_API_KEY",
			"https://platform.openai.com/api-keys", 128_000},
		{"compatible", "another OpenAI-compatible service or server", "openai", "model", "", "", "OPENAI_API_KEY", "", 128_000},
	}
}

// chooseModel fills the model, by questions or flags.
func (o *onboard) chooseModel(ctx context.Context) error {
	local, found := o.localServer(ctx)
	if o.provider == "" {
		var err error
		if o.provider, err = o.askProvider(local, found); err != nil {
			return err
		}
	}
	switch o.provider {
	case "offline":
		o.model = configs.Model{Name: "offline", API: "offline", Model: "offline"}
		return nil
	case "local":
		if !found && o.baseURL == "" {
			return fmt.Errorf("no local model server answers; start Ollama, LM Studio or llama.cpp, or name one with --provider " +
				"compatible --base-url")
		}
		return o.useLocal(ctx, local)
	}
	for _, p := range providers() {
		if p.id == o.provider {
			return o.useProvider(ctx, p)
		}
	}
	return cli.Misuse(fmt.Errorf("there is no provider %q; there are anthropic, openai, compatible, local, offline", o.provider))
}

// localServer is the first on this machine that answers. Keys in the environment do not matter here.
func (o *onboard) localServer(ctx context.Context) (configs.Model, bool) {
	if o.provider != "" && o.provider != "local" {
		return configs.Model{}, false
	}
	done := o.Progress("looking for local model servers")
	defer done()
	d := configs.Discover(ctx, func(string) (string, bool) { return "", false }, o.try.Models)
	return d.Model, d.Model.API != "offline"
}

func (o *onboard) askProvider(local configs.Model, found bool) (string, error) {
	fmt.Fprintln(o.Out, "Parley set-up. Enter takes what stands in [ ], Ctrl-C ends without a change.")
	var list []cli.Choice
	best := "anthropic"
	if found {
		list = append(list, cli.Choice{ID: "local", Label: fmt.Sprintf("on this machine: %s (%s)", local.Model, local.Found)})
		best = "local"
	}
	for _, p := range providers() {
		label := p.label
		if p.id != "compatible" && os.Getenv(p.env) != "" {
			label += "; " + p.env + " is set"
			if best != p.id && (best == "anthropic" && os.Getenv("ANTHROPIC_API_KEY") == "" || best == "local") {
				best = p.id
			}
		}
		list = append(list, cli.Choice{ID: p.id, Label: label})
	}
	list = append(list, cli.Choice{ID: "offline", Label: "none for now: a built-in responder, to look around"})
	return o.ask.One("\nWhich model should answer?", list, best)
}

func (o *onboard) useLocal(ctx context.Context, m configs.Model) error {
	m.Name = "local"
	if o.baseURL != "" {
		m.BaseURL = o.baseURL
	}
	m.API = "openai"
	models, err := o.try.Models(ctx, m.BaseURL, "")
	if err != nil {
		return fmt.Errorf("%s %w", m.BaseURL, err)
	}
	m.Model, err = o.pick(models, m.Model)
	m.ContextWindow, m.MaxOutputTokens = 32_000, 8192
	o.model = m
	return err
}

// useProvider asks for address, key and model, as far as they are not known.
func (o *onboard) useProvider(ctx context.Context, p provider) error {
	m := configs.Model{Name: p.name, API: p.api, BaseURL: p.base, ContextWindow: p.window, MaxOutputTokens: 8192}
	var err error
	if p.base == "" {
		if m.BaseURL, err = o.address(); err != nil {
			return err
		}
	} else if o.baseURL != "" {
		m.BaseURL = o.baseURL
	}
	key, err := o.key(p, m.BaseURL)
	if err != nil {
		return err
	}
	var models []string
	if m.API == "openai" {
		models, err = o.try.Models(ctx, m.BaseURL, key)
		if err != nil && !strings.HasSuffix(m.BaseURL, "/v1") { // the usual slip
			if again, second := o.try.Models(ctx, m.BaseURL+"/v1", key); second == nil {
				models, m.BaseURL = again, m.BaseURL+"/v1"
			}
		}
	}
	if key == "" && !isLocal(m.BaseURL) {
		key = "none" // the server wants no key, but a model that is not on this machine has one
	}
	m.APIKey = configs.Secret(key)
	m.Model, err = o.pick(models, p.model)
	o.model = m
	return err
}

func isLocal(base string) bool {
	u, err := url.Parse(base)
	return err == nil && configs.Loopback(u.Hostname())
}

func (o *onboard) address() (string, error) {
	for {
		base := o.baseURL
		if base == "" {
			if o.ask == nil {
				return "", cli.Misuse(errors.New("--provider compatible needs --base-url"))
			}
			var err error
			if base, err = o.ask.Text("Address, with its /v1", "http://127.0.0.1:8000/v1"); err != nil {
				return "", err
			}
		}
		u, err := url.Parse(base)
		if err == nil && u.Host != "" && u.User == nil && (u.Scheme == "http" || u.Scheme == "https") {
			return strings.TrimRight(base, "/"), nil
		}
		if o.ask == nil || o.baseURL != "" {
			return "", cli.Misuse(fmt.Errorf("%q is not a http or https address", base))
		}
		fmt.Fprintln(o.Out, "That is not a http or https address, such as https://openrouter.ai/api/v1.")
	}
}

// key is from the file, the environment or the person.
func (o *onboard) key(p provider, base string) (string, error) {
	if o.keyFile != "" {
		return o.fromFile(o.keyFile)
	}
	set := strings.TrimSpace(os.Getenv(p.env))
	if o.ask == nil {
		if set == "" && !isLocal(base) {
			return "", cli.Misuse(fmt.Errorf("the key is missing: --key-file FILE, or %s", p.env))
		}
		return set, nil
	}
	if set != "" {
		use, err := o.ask.Yes(p.env+" is set. Keep a copy of it for the gateway, in a file that only you can read?", true)
		if err != nil || use {
			return set, err
		}
	}
	question := "Key"
	switch {
	case p.keys != "":
		fmt.Fprintf(o.Out, "Keys are made at %s\n", p.keys)
	default:
		question = "Key, or Enter for none"
	}
	for {
		key, err := o.ask.Secret(question)
		if err != nil || key != "" || p.keys == "" {
			return key, err
		}
	}
}

func (o *onboard) fromFile(name string) (string, error) {
	var data []byte
	var err error
	if name == "-" {
		data, err = io.ReadAll(io.LimitReader(o.In, 64<<10))
	} else {
		data, err = os.ReadFile(name)
	}
	text := strings.TrimSpace(string(data))
	if err == nil && text == "" {
		err = fmt.Errorf("%s is empty", name)
	}
	return text, err
}

// listedMost is how many models are shown to choose from.
const listedMost = 12

// pick chooses among the models that a server lists.
func (o *onboard) pick(models []string, standard string) (string, error) {
	if o.modelName != "" {
		return o.modelName, nil
	}
	if standard == "" {
		standard = configs.Choose(models)
	}
	if o.ask == nil {
		if standard == "" {
			return "", cli.Misuse(errors.New("the server lists no models: name one with --model"))
		}
		return standard, nil
	}
	if n := len(models); n > 1 {
		shown := strings.Join(models[:min(n, listedMost)], ", ")
		if n > listedMost {
			shown += fmt.Sprintf(" and %d more", n-listedMost)
		}
		fmt.Fprintf(o.Out, "It lists %s\n", cli.Visible(shown))
	}
	for {
		name, err := o.ask.Text("Model", standard)
		if err != nil || name != "" {
			return name, err
		}
	}
}
