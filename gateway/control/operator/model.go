package operator

import (
	"context"
	"fmt"

	"parley/agentloop/llm/provider"
	"parley/gateway/control"
	"parley/gateway/rights"
	"parley/gateway/snapshot"
	"parley/gateway/spec"
)

// ModelServers tries models. *snapshot.Source is one.
type ModelServers interface {
	Attempt(ctx context.Context, a snapshot.Ask) (snapshot.Tried, error)
}

var ListProviders = control.Verb[*Operator, struct{}, spec.List[provider.Provider]]{
	Name: "provider.list", Help: "List who serves models, with their addresses and where a key is made", Rights: rights.Owners,
	HTTP: "GET /v1/providers", Group: "gateway", CLI: "model providers",
	Do: func(context.Context, *Operator, control.Call, struct{}) (spec.List[provider.Provider], error) {
		return spec.Whole(provider.All()), nil
	},
	Show: func(_ struct{}, l spec.List[provider.Provider]) spec.Shown {
		s := spec.Shown{Heads: []string{"ID", "NAME", "API", "ADDRESS", "KEY"}}
		for _, p := range l.Items {
			address, key := p.BaseURL, p.KeyURL
			if address == "" {
				address = p.Example
			}
			if p.Local {
				key = "none is needed"
			}
			s.Rows = append(s.Rows, []any{p.ID, p.Name, p.API, address, key})
		}
		return s
	},
}

// TryIn is what is tried: a model that exists, or a server with its key.
type TryIn struct {
	Name     string `json:"name,omitempty" help:"*name* of a model in the configuration: it is tried with its own key at its own address"`
	Provider string `json:"provider,omitempty" help:"*id* of the provider; parley model providers lists them"`
	API      string `json:"api,omitempty" enum:"openai,anthropic" help:"how the server is spoken to, where the provider does not say it"`
	BaseURL  string `json:"base_url,omitempty" flag:"base-url" help:"*address* of the server, where the provider has no usual one"`
	Key      string `json:"api_key,omitempty" flag:"-" help:"key for the server; it is not kept"`
	Model    string `json:"model,omitempty" help:"the server's *name* of the model that is asked for one sentence; left out: none is asked"`
}

// TryOut is how it went.
type TryOut struct {
	OK         bool              `json:"ok"`
	Trouble    *provider.Trouble `json:"trouble,omitempty"`
	Provider   string            `json:"provider"`
	API        string            `json:"api"`
	BaseURL    string            `json:"base_url"` // as it works: with its /v1 where that was left out
	Models     []provider.Model  `json:"models"`
	Suggested  string            `json:"suggested,omitempty"`   // the model to take first
	AnsweredMS *int64            `json:"answered_ms,omitempty"` // what the model took that was asked
}

// TryModel keeps nothing, and neither a log nor an error has the key. It is never a tool: it sends a key to an address.
var TryModel = control.Verb[*Operator, TryIn, TryOut]{
	Name: "model.try", Help: "Try a model or a server of models: list what it has, and ask one for a sentence", Rights: rights.Owners,
	Long: "Without a name, --provider or --base-url says which server is tried, without a key: `parley onboard` asks for one. A model " +
		"that exists is tried with its own key at its own address, and answers one sentence.",
	HTTP: "POST /v1/models/try", Group: "gateway", CLI: "model try [name]", Unkept: true,
	Do: func(ctx context.Context, c *Operator, _ control.Call, in TryIn) (TryOut, error) {
		got, err := c.Models.Attempt(ctx, snapshot.Ask{Name: in.Name, Provider: in.Provider, API: in.API,
			BaseURL: in.BaseURL, Key: in.Key, Model: in.Model})
		if err != nil {
			return TryOut{}, err
		}
		t := got.Target
		out := TryOut{OK: got.Trouble == nil, Trouble: got.Trouble, Provider: t.Provider.ID, API: t.API, BaseURL: t.BaseURL,
			Models: got.Models, Suggested: got.Suggested}
		if out.Models == nil {
			out.Models = []provider.Model{}
		}
		if got.Trial != nil {
			ms := got.Trial.Took.Milliseconds()
			out.AnsweredMS = &ms
		}
		return out, nil
	},
	Show: func(in TryIn, out TryOut) spec.Shown { return out.shown(in) },
}

// shown is what a terminal shows of a trial.
func (t TryOut) shown(in TryIn) spec.Shown {
	s := spec.Shown{Failed: !t.OK}
	switch {
	case !t.OK:
		s.Line = t.Trouble.Sentence
	case t.AnsweredMS != nil:
		s.Line = fmt.Sprintf("ok: it answered in %d ms", *t.AnsweredMS)
	case t.BaseURL == "":
		s.Line = "ok: it is the built-in responder"
	default:
		s.Line = fmt.Sprintf("ok: %s lists %d models", t.BaseURL, len(t.Models))
	}
	if in.Name == "" && len(t.Models) > 0 {
		s.Heads = []string{"MODEL", "CONTEXT"}
		for _, m := range t.Models {
			window := ""
			if m.Window > 0 {
				window = fmt.Sprint(m.Window)
			}
			s.Rows = append(s.Rows, []any{m.ID, window})
		}
	}
	return s
}
