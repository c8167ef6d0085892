// Package price says what a model call costs. Its table is data/, made from npm's @pydantic/genai-prices (MIT, see
// data/LICENSE) by gen/generate.cjs, which is run by hand; an operator's file overrides it. It never guesses: a
// model that it does not know is unpriced, which is not the same as free. It does no network IO and starts no
// goroutine.
package price

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"strings"
	"time"

	"parley/workspace"
)

//go:embed data/*.json
var embedded embed.FS

// Table of prices. It is read-only once loaded.
type Table struct {
	date, source string
	now          func() time.Time
	providers    []provider
	overrides    map[string]Rates
}

type provider struct {
	ID  string `json:"id"`
	API string `json:"api"` // regexp of its base URLs
}

// Rates of one model. Input is what was neither read from a cache nor written to one.
type Rates struct {
	Input      *Rate `json:"input"`
	Output     *Rate `json:"output"`
	CacheRead  *Rate `json:"cache_read"`  // nil: as Input
	CacheWrite *Rate `json:"cache_write"` // for five minutes; nil: as Input
	Requests   *Rate `json:"requests"`    // dollars per thousand calls
}

// Rate is US dollars per million tokens. Of the tiers the last counts whose start is below the prompt's tokens.
type Rate struct {
	Base  float64 `json:"base"`
	Tiers []struct {
		Start int     `json:"start"`
		Price float64 `json:"price"`
	} `json:"tiers"`
}

// UnmarshalJSON takes a plain number for a rate without tiers.
func (r *Rate) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] != '{' {
		return json.Unmarshal(b, &r.Base)
	}
	type plain Rate
	return json.Unmarshal(b, (*plain)(r))
}

// Load reads the embedded table's index and the operator's overrides, which may be nil:
//
//	{"models": [{"model": "local/llama", "input": 0.1, "output": 0.2, "cache_read": 0, "cache_write": 0}]}
//
// in US dollars per million tokens. A model is named as in Cost, or without a provider for all of them. Unknown
// keys, a missing input or output and negative prices are errors.
func Load(overrides io.Reader, now func() time.Time) (*Table, error) {
	raw, err := embedded.ReadFile("data/index.json")
	if err != nil {
		return nil, fmt.Errorf("read the embedded prices: %w", err)
	}
	var index struct {
		Source    string     `json:"source"`
		Date      string     `json:"date"`
		Providers []provider `json:"providers"`
	}
	if err := json.Unmarshal(raw, &index); err != nil {
		return nil, fmt.Errorf("read the embedded prices: %w", err)
	}
	t := &Table{date: index.Date, source: index.Source, now: now, providers: index.Providers, overrides: map[string]Rates{}}
	if overrides == nil {
		return t, nil
	}
	return t, t.override(overrides)
}

func (t *Table) override(r io.Reader) error {
	var file struct {
		Models []struct {
			Model string `json:"model"`
			Rates
		} `json:"models"`
	}
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	if err := d.Decode(&file); err != nil {
		return fmt.Errorf("read price overrides: %w", err)
	}
	var problems []error
	for _, m := range file.Models {
		switch {
		case m.Model == "":
			problems = append(problems, errors.New("price override without a model"))
		case m.Input == nil || m.Output == nil:
			problems = append(problems, fmt.Errorf("price override of %q: input and output are needed", m.Model))
		case m.negative():
			problems = append(problems, fmt.Errorf("price override of %q: a price is negative", m.Model))
		default:
			t.overrides[strings.ToLower(m.Model)] = m.Rates
		}
	}
	return errors.Join(problems...)
}

func (r Rates) negative() bool {
	for _, x := range []*Rate{r.Input, r.Output, r.CacheRead, r.CacheWrite, r.Requests} {
		if x == nil {
			continue
		}
		for _, t := range x.Tiers {
			if t.Price < 0 {
				return true
			}
		}
		if x.Base < 0 {
			return true
		}
	}
	return false
}

// Date of the embedded prices, as YYYY-MM-DD, and where they are from.
func (t *Table) Date() (date, source string) { return t.date, t.source }

// Ref names a model for Find and Cost by the server that has it: "openai/gpt-5", or with the host of a server that
// has no prices, "localhost:11434/llama3".
func (t *Table) Ref(baseURL, model string) string {
	for _, p := range t.providers {
		// Compiled here, since it is asked once per configured model and most starts need the first one only.
		if re, err := regexp.Compile("^(?:" + p.API + ")"); err == nil && re.MatchString(baseURL) {
			return p.ID + "/" + model
		}
	}
	if u, err := url.Parse(baseURL); err == nil && u.Host != "" {
		return u.Host + "/" + model
	}
	return model
}

// Price of one model, with its changes over time.
type Price struct {
	rates []conditional
	now   func() time.Time
}

// Find the price of "provider/model". It reads a file of the table: call it once per configured model.
func (t *Table) Find(ref string) (p Price, ok bool) {
	ref = strings.ToLower(ref)
	owner, name, found := strings.Cut(ref, "/")
	if r, ok := t.overrides[ref]; ok {
		return Price{rates: []conditional{{Rates: r}}, now: t.now}, true
	}
	if !found {
		return Price{}, false
	}
	if r, ok := t.overrides[name]; ok {
		return Price{rates: []conditional{{Rates: r}}, now: t.now}, true
	}
	for _, p := range t.providers {
		if p.ID == owner {
			rates, ok := lookup(p.ID, name)
			return Price{rates: rates, now: t.now}, ok
		}
	}
	return Price{}, false
}

// Cost of one call in US dollars; false: the model is unpriced.
func (t *Table) Cost(ref string, u workspace.Usage) (usd float64, ok bool) {
	p, ok := t.Find(ref)
	if !ok {
		return 0, false
	}
	return p.Cost(u), true
}

// Cost of one call in US dollars. Our InputTokens leave out what was read from or written to a cache; the table's
// tiers begin at the whole prompt, so the three are added for them.
func (p Price) Cost(u workspace.Usage) float64 {
	r := p.at(p.now())
	prompt := u.InputTokens + u.CacheReadTokens + u.CacheWriteTokens
	usd := r.Input.cost(u.InputTokens, prompt) + r.Output.cost(u.OutputTokens, prompt) +
		or(r.CacheRead, r.Input).cost(u.CacheReadTokens, prompt) + or(r.CacheWrite, r.Input).cost(u.CacheWriteTokens, prompt)
	return usd + r.Requests.cost(max(u.Calls, 1)*1000, prompt)
}

func or(r, other *Rate) *Rate {
	if r != nil {
		return r
	}
	return other
}

func (r *Rate) cost(tokens, prompt int) float64 {
	if r == nil {
		return 0
	}
	price := r.Base
	for _, t := range r.Tiers {
		if prompt > t.Start {
			price = t.Price
		}
	}
	return price * float64(tokens) / 1e6
}
