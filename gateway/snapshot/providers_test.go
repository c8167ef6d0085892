package snapshot

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"parley/agentloop/llm/price"
	"parley/agentloop/llm/provider"
	"parley/configs"
)

// world answers for every host, as a server of a format does, and notes where it was asked.
type world struct{ asked *[]string }

func (w world) RoundTrip(r *http.Request) (*http.Response, error) {
	*w.asked = append(*w.asked, r.URL.Scheme+"://"+r.URL.Host+r.URL.Path+" "+r.Header.Get("X-Api-Key")+r.Header.Get("Authorization"))
	rec := httptest.NewRecorder()
	switch {
	case strings.HasSuffix(r.URL.Path, "/models"):
		fmt.Fprint(rec, `{"data":[{"id":"m"}]}`)
	case strings.HasSuffix(r.URL.Path, "/v1/messages"):
		fmt.Fprint(rec, `event: message_start`+"\n"+`data: {"type":"message_start","message":{"usage":{"input_tokens":1}}}`+"\n\n"+
			`event: content_block_start`+"\n"+`data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`+"\n\n"+
			`event: content_block_delta`+"\n"+`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}`+"\n\n"+
			`event: content_block_stop`+"\n"+`data: {"type":"content_block_stop","index":0}`+"\n\n"+
			`event: message_delta`+"\n"+`data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}`+"\n\n"+
			`event: message_stop`+"\n"+`data: {"type":"message_stop"}`+"\n\n")
	case strings.HasSuffix(r.URL.Path, "/chat/completions"):
		fmt.Fprint(rec, "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	default:
		rec.Code = http.StatusNotFound
	}
	return rec.Result(), nil
}

var blocks = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// Each block of docs/providers.md is a model that loads, at the address that the table has, and that is asked there with its key.
func TestProvidersAreDocumentedAsTheyAre(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/providers.md")
	if err != nil {
		t.Fatal(err)
	}
	prices, err := price.Load(nil, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	models := map[string]*configs.Config{}
	for _, block := range blocks.FindAllStringSubmatch(string(text), -1) {
		c, err := configs.Parse([]byte("gateway: {token: \"\"}\n"+block[1]), configs.LoadOptions{Env: func(name string) (string, bool) {
			if !strings.HasSuffix(name, "_API_KEY") {
				return "", false
			}
			return "canary", true
		}})
		if err != nil {
			t.Fatalf("%s\n%v", block[1], err)
		}
		models[c.Models[0].Name] = c
	}
	for _, p := range provider.All() {
		c := models[p.Model]
		if c == nil {
			t.Errorf("docs/providers.md has no block for %s", p.ID)
			continue
		}
		conf := c.Models[0]
		if conf.BaseURL != p.BaseURL+p.Example || conf.API != p.API || !strings.Contains(string(text), p.KeyURL) {
			t.Errorf("%s: %s at %s with keys from %s in the table, %s at %s in docs/providers.md", p.ID, p.API, p.BaseURL+p.Example, p.KeyURL,
				conf.API, conf.BaseURL)
		}
		var asked []string
		h := &http.Client{Transport: world{&asked}}
		m := NewModels(ModelOptions{Prices: prices, Env: none, HTTP: h, Calls: h})
		got, err := m.Attempt(t.Context(), c, Ask{Name: conf.Name})
		if err != nil || got.Trouble != nil || got.Trial == nil {
			t.Errorf("%s: %+v, %v", p.ID, got.Trouble, err)
		}
		end := "/chat/completions"
		if p.API == "anthropic" {
			end = "/v1/messages"
		}
		last, keyed := asked[len(asked)-1], p.NeedsKey || p.ID == provider.Other
		if !strings.HasPrefix(last, p.BaseURL+p.Example+end+" ") || keyed != strings.Contains(last, "canary") {
			t.Errorf("%s: asked %q", p.ID, last)
		}
	}
}
