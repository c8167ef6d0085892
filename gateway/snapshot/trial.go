package snapshot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/agentloop/llm"
	"parley/agentloop/llm/provider"
	"parley/configs"
	"parley/workspace"
)

// How long the one call of a trial may take. A server on this machine may have to load the model first.
const (
	firstByte  = 10 * time.Second
	callWithin = 30 * time.Second
	loadWithin = time.Minute
)

// trialTokens is how long the answer may be: enough to think for a sentence, and cheap.
const trialTokens = 512

// Ask is what is tried: a configured model by its name, or a server with what it is asked with.
type Ask struct{ Name, Provider, API, BaseURL, Key, Model string }

// Tried is how a trial went. Without a trouble the server listed its models, and the model that was asked answered.
type Tried struct {
	Trouble   *provider.Trouble
	Target    provider.Target // BaseURL as it worked
	Models    []provider.Model
	Suggested string // the one to take first
	Trial     *Trial // of the call; nil: no model was asked
}

// Trial is one call of a model that went well.
type Trial struct {
	Answer string
	Took   time.Duration
	Usage  workspace.Usage
}

// Attempt lists the models of a server and, where one is named, asks it for one sentence. Nothing is kept of it. A configured
// model is asked with its own key at its own address; the key goes nowhere else (E68). What cannot be tried is an error.
func (m *Models) Attempt(ctx context.Context, c *configs.Config, a Ask) (Tried, error) {
	if a.Name != "" {
		conf, err := m.named(c, a.Name)
		if err != nil || conf.API == "offline" {
			return Tried{Target: provider.Target{API: conf.API}}, err
		}
		a.API, a.BaseURL = cmp.Or(a.API, conf.API), cmp.Or(a.BaseURL, conf.BaseURL)
		if a.Model == "" && a.BaseURL == conf.BaseURL {
			a.Model = conf.Model
		}
		if a.Key == "" {
			if provider.Clean(a.BaseURL) != provider.Clean(conf.BaseURL) && conf.APIKey != "" {
				t := provider.Target{Provider: provider.Of(a.API, a.BaseURL), API: a.API, BaseURL: a.BaseURL}
				return Tried{Target: t, Trouble: t.Kept(a.Name)}, nil
			}
			a.Key = conf.APIKey.Reveal()
		}
	}
	t, err := target(a)
	if err != nil {
		return Tried{}, err
	}
	return m.attempt(ctx, t, a.Model), nil
}

// named is a configured model, or the one that was found in place of one.
func (m *Models) named(c *configs.Config, name string) (configs.Model, error) {
	list := m.of(c)
	i := slices.IndexFunc(list, func(conf configs.Model) bool { return conf.Name == name && conf.API != discoveringName })
	if i < 0 {
		return configs.Model{}, workspace.Say(fmt.Errorf("model %q: %w", name, workspace.ErrNotFound), "There is no model called %q.", name)
	}
	return list[i], nil
}

// target is the server that is asked.
func target(a Ask) (provider.Target, error) {
	t := provider.Target{API: a.API, BaseURL: strings.TrimSpace(a.BaseURL), Key: strings.TrimSpace(a.Key)}
	if a.Provider != "" {
		p, ok := provider.Find(a.Provider)
		if !ok {
			return t, workspace.Say(fmt.Errorf("provider %q: %w", a.Provider, workspace.ErrInvalid), "There is no provider %q.", a.Provider)
		}
		t.Provider, t.API, t.BaseURL = p, cmp.Or(t.API, p.API), cmp.Or(t.BaseURL, p.BaseURL)
	}
	if t.BaseURL == "" {
		return t, workspace.Say(fmt.Errorf("try a model: no address: %w", workspace.ErrInvalid), "The address of the server is missing.")
	}
	t.API = cmp.Or(t.API, "openai")
	if a.Provider == "" {
		t.Provider = provider.Of(t.API, t.BaseURL)
	}
	return t, nil
}

func (m *Models) attempt(ctx context.Context, t provider.Target, model string) Tried {
	models, base, err := provider.List(ctx, m.opt.HTTP, t)
	t.BaseURL = base
	out := Tried{Target: t, Models: models, Suggested: t.Provider.Suggest(models)}
	trouble := troubleOf(err)
	switch {
	case trouble != nil && (model == "" || trouble.Code != provider.NotFound && trouble.Code != provider.NotModels):
		out.Trouble = trouble
	case model == "" && len(models) == 0:
		out.Trouble = t.NoneYet()
	case model != "":
		conf := configs.Model{Name: t.Provider.ID, API: t.API, BaseURL: base, APIKey: configs.Secret(t.Key), Model: model,
			MaxOutputTokens: trialTokens}
		if out.Trial, out.Trouble = m.call(ctx, t, conf); out.Trouble != nil && trouble != nil && out.Trouble.Code == provider.NoModel {
			out.Trouble = trouble // neither is there: it is the address
		}
	}
	return out
}

func troubleOf(err error) *provider.Trouble {
	var t *provider.Trouble
	if errors.As(err, &t) {
		return t
	}
	return nil
}

// call asks the model for one sentence.
func (m *Models) call(ctx context.Context, t provider.Target, conf configs.Model) (*Trial, *provider.Trouble) {
	first, whole := firstByte, callWithin
	if t.Provider.Local {
		first, whole = loadWithin, loadWithin+callWithin
	}
	model, err := m.openWithin(conf, first)
	if err != nil {
		return nil, t.Failed(conf.Model, err)
	}
	ctx, cancel := context.WithTimeout(ctx, whole)
	defer cancel()
	begun := time.Now()
	res, err := model.Stream(ctx, llm.Request{System: "You are being set up as somebody's assistant.",
		Messages: []llm.Message{{Role: llm.User,
			Content: []workspace.Content{{Kind: workspace.Text, Text: "Say hello in one short sentence."}}}}}, nil)
	if err != nil {
		return nil, t.Failed(conf.Model, err)
	}
	out := &Trial{Took: time.Since(begun), Usage: res.Usage}
	for _, c := range res.Content {
		if c.Kind == workspace.Text {
			out.Answer += c.Text
		}
	}
	if out.Answer = strings.TrimSpace(out.Answer); out.Answer == "" && res.Stop != llm.StopLength { // one that thinks may not come to it
		return nil, t.Silent(conf.Model)
	}
	return out, nil
}
