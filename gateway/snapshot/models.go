package snapshot

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"parley/agentloop/llm"
	"parley/agentloop/llm/anthropic"
	"parley/agentloop/llm/offline"
	"parley/agentloop/llm/openai"
	"parley/agentloop/llm/price"
	"parley/agentloop/llm/provider"
	"parley/configs"
	"parley/workspace"
)

// ModelOptions are what all models share.
type ModelOptions struct {
	Calls  *http.Client // to models
	HTTP   *http.Client // to servers that are asked what they serve
	Env    configs.Lookup
	Prices *price.Table
	Blobs  func(ref string) ([]byte, error) // reads a kept file for a model
	Log    *slog.Logger
}

// Models opens the models that a configuration names, and finds one while it names none.
type Models struct {
	opt   ModelOptions
	first sync.Once
	done  chan struct{} // the first look is over
	again chan struct{} // holds one
	found atomic.Pointer[found]
}

// NewModels opens nothing yet.
func NewModels(o ModelOptions) *Models {
	return &Models{opt: o, done: make(chan struct{}), again: make(chan struct{}, 1)}
}

// LoadPrices reads the embedded table with the operator's prices.json over it.
func LoadPrices(c *configs.Config, now func() time.Time) (*price.Table, error) {
	f, err := os.Open(filepath.Join(c.DataDir, "prices.json"))
	if errors.Is(err, os.ErrNotExist) {
		return price.Load(nil, now)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return price.Load(io.LimitReader(f, 1<<20), now)
}

// registry opens models; limits and cool-downs go on from those of a former snapshot, nil: there was none. What cannot work
// as far as is known without the network is an error.
func (m *Models) registry(list []configs.Model, perModel int, former *Snapshot) (*llm.Registry, error) {
	var models []llm.Model
	var errs []error
	for _, conf := range list {
		model, err := m.open(conf)
		if err != nil {
			errs = append(errs, fmt.Errorf("model %q: %w", conf.Name, err))
			continue
		}
		models = append(models, model)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	opt := llm.RegistryOptions{PerModel: perModel}
	if former != nil {
		opt.From = former.Models
	}
	return llm.NewRegistry(opt, models...)
}

func (m *Models) open(conf configs.Model) (llm.Model, error) { return m.openWithin(conf, 0) }

// openWithin opens a model of which the first byte of an answer may take so long; 0: as long as it usually may.
func (m *Models) openWithin(conf configs.Model, first time.Duration) (llm.Model, error) {
	switch conf.API {
	case "offline":
		return offline.New(conf.Name), nil
	case discoveringName:
		return discovering{m}, nil
	}
	ref := m.opt.Prices.Ref(conf.BaseURL, conf.Model)
	sight := map[string]llm.Sight{"yes": llm.Sees, "no": llm.Blind}[conf.Vision]
	by := provider.Called(conf.API, conf.BaseURL)
	cost := func(u workspace.Usage) (float64, bool) { return m.opt.Prices.Cost(ref, u) }
	switch conf.API {
	case "openai":
		return openai.New(openai.Options{Name: conf.Name, Model: conf.Model, Provider: by, BaseURL: conf.BaseURL,
			APIKey: conf.APIKey.Reveal(), ContextWindow: conf.ContextWindow, MaxOutput: conf.MaxOutputTokens, HTTP: m.opt.Calls,
			Blobs: m.opt.Blobs, Sight: sight, Price: cost, FirstByte: first})
	case "anthropic":
		return anthropic.New(anthropic.Options{Name: conf.Name, Model: conf.Model, Provider: by, BaseURL: conf.BaseURL,
			APIKey: conf.APIKey.Reveal(), ContextWindow: conf.ContextWindow, MaxOutput: conf.MaxOutputTokens, HTTP: m.opt.Calls,
			Blobs: m.opt.Blobs, Sight: sight, Price: cost, FirstByte: first})
	}
	return nil, fmt.Errorf("api %q is unknown", conf.API)
}

// transcriber is what turns recordings into text; nil: none is configured.
func (m *Models) transcriber(conf configs.Transcription) (Transcriber, error) {
	if conf.Model == "" {
		return nil, nil
	}
	t, err := openai.NewTranscriber(openai.TranscriberOptions{Model: conf.Model, BaseURL: conf.BaseURL, APIKey: conf.APIKey.Reveal(),
		Language: conf.Language, HTTP: m.opt.Calls})
	if err != nil {
		return nil, err
	}
	return t, nil
}
