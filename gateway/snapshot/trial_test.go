package snapshot

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/agentloop/llm/llmtest"
	"parley/agentloop/llm/price"
	"parley/agentloop/llm/provider"
	"parley/configs"
)

// A model that exists is asked with its own key at its own address, and no way leads with that key to another one (E68).
func TestE68_AKeptKeyGoesToItsOwnAddressOnly(t *testing.T) {
	t.Parallel()
	own := llmtest.Start(t, llmtest.Echo)
	own.Models = []string{"test-model", "second"}
	var got []string
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = append(got, fmt.Sprint(r.URL, r.Header))
	}))
	t.Cleanup(other.Close)
	m := newSource(t, none).opt.Models
	c := &configs.Config{Models: []configs.Model{{Name: "claude", API: "openai", BaseURL: own.URL, APIKey: "sk-test-0123",
		Model: "test-model"}}}
	tried, err := m.Attempt(t.Context(), c, Ask{Name: "claude"})
	if err != nil || tried.Trouble != nil || tried.Trial == nil || len(tried.Models) != 2 {
		t.Errorf("its own: %+v, %v", tried, err)
	}
	tried, err = m.Attempt(t.Context(), c, Ask{Name: "claude", BaseURL: own.URL + "/", Model: "second"})
	if err != nil || tried.Trouble != nil {
		t.Errorf("its own, written otherwise: %+v, %v", tried, err)
	}
	for _, a := range []Ask{{Name: "claude", BaseURL: other.URL}, {Name: "claude", BaseURL: other.URL, API: "anthropic", Model: "x"},
		{Name: "claude", Provider: "openai", BaseURL: other.URL + "/v1"},
		{Name: "claude", BaseURL: strings.Replace(own.URL, "http://", "http://x@", 1)}} {
		tried, err := m.Attempt(t.Context(), c, a)
		if err != nil || tried.Trouble == nil || tried.Trouble.Code != provider.SecretKept {
			t.Errorf("%+v: %+v, %v", a, tried.Trouble, err)
		}
	}
	if len(got) != 0 {
		t.Errorf("another address was asked: %q", got)
	}
	if _, err := m.Attempt(t.Context(), c, Ask{Name: "claude", BaseURL: other.URL, Key: "another-key"}); err != nil || len(got) == 0 ||
		strings.Contains(strings.Join(got, ""), "sk-test-0123") {
		t.Errorf("with a key of its own: %q, %v", got, err)
	}
	for _, a := range []Ask{{Name: "nobody"}, {Provider: "nobody"}, {}, {Provider: "azure"}} {
		if _, err := m.Attempt(t.Context(), c, a); err == nil {
			t.Errorf("%+v was tried", a)
		}
	}
}

// A model answers, does not, or is not there; a server without a list is asked all the same when a model is named.
func TestAModelIsAskedForOneSentence(t *testing.T) {
	t.Parallel()
	m := newSource(t, none).opt.Models
	for name, c := range map[string]struct {
		reply llmtest.Reply
		says  string
	}{
		"answers":         {llmtest.Reply{Text: "Hello."}, ""},
		"thinks too long": {llmtest.Reply{Reasoning: "hm", Finish: "length"}, ""},
		"says nothing":    {llmtest.Reply{}, "test-model answers without a word: is it a model to chat with?"},
		"is not there": {llmtest.Reply{Status: 404, ErrorBody: `{"error":{"message":"no such model"}}`},
			"OpenAI has no model `test-model` (404): `no such model`"},
		"has no credit": {llmtest.Reply{Status: 429, ErrorBody: `{"error":{"message":"You exceeded your current quota"}}`},
			"the account at OpenAI has no credit (429): `You exceeded your current quota`"},
		"is refused a call": {llmtest.Reply{Status: 400, ErrorBody: `{"error":{"message":"no"}}`}, "OpenAI refuses the request (400): `no`"},
	} {
		srv := llmtest.Start(t, func(*llmtest.Request) llmtest.Reply { return c.reply })
		srv.Models = []string{"test-model"}
		got, err := m.Attempt(t.Context(), &configs.Config{}, Ask{Provider: "openai", BaseURL: srv.URL, Key: "sk-test-0123",
			Model: "test-model"})
		said := ""
		if got.Trouble != nil {
			said = got.Trouble.Sentence
		}
		if err != nil || said != c.says || (got.Trial == nil) != (c.says != "") {
			t.Errorf("%s: %q, %+v, %v", name, said, got.Trial, err)
		}
	}
	bare := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/chat/completions" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(bare.Close)
	if got, err := m.Attempt(t.Context(), &configs.Config{}, Ask{BaseURL: bare.URL + "/v1", Model: "m"}); err != nil || got.Trial == nil {
		t.Errorf("without a list: %+v, %v", got.Trouble, err)
	}
	if got, err := m.Attempt(t.Context(), &configs.Config{}, Ask{BaseURL: bare.URL + "/v2", Model: "m"}); err != nil || got.Trouble == nil ||
		got.Trouble.Code != provider.NotFound {
		t.Errorf("at a wrong path: %+v, %v", got.Trouble, err)
	}
}

// hanging lists models, and never answers a call.
type hanging struct{}

func (hanging) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/models") {
		rec := httptest.NewRecorder()
		fmt.Fprint(rec, `{"data":[{"id":"m"}]}`)
		return rec.Result(), nil
	}
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestAModelThatHangsIsGivenUp(t *testing.T) {
	t.Parallel()
	prices, err := price.Load(nil, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		h := &http.Client{Transport: hanging{}}
		m := NewModels(ModelOptions{Prices: prices, HTTP: h, Calls: h, Env: none})
		for id, says := range map[string]string{"groq": "Groq does not answer in time",
			"ollama": "Ollama does not answer in time; a large model takes a while to load, so try again"} {
			got, err := m.Attempt(t.Context(), &configs.Config{}, Ask{Provider: id, Key: "k", Model: "m"})
			if err != nil || got.Trouble == nil || got.Trouble.Sentence != says || got.Trouble.Code != provider.TimedOut {
				t.Errorf("%s: %+v, %v", id, got.Trouble, err)
			}
		}
	})
}
