package provider_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"

	"parley/agentloop/llm/provider"
)

const key = "sk-canary-0123456789"

// place is one that has the answers of the paths, and tells which it was asked for with a key.
func place(t *testing.T, answers map[string]http.HandlerFunc) (base string, asked *[]string) {
	t.Helper()
	asked = &[]string{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.URL.Path)
		if do, ok := answers[r.URL.Path]; ok {
			do(w, r)
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(srv.Close)
	return srv.URL, asked
}

func says(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

func named(t *testing.T, id string) provider.Provider {
	t.Helper()
	p, ok := provider.Find(id)
	if !ok {
		t.Fatalf("no provider %s", id)
	}
	return p
}

func at(p provider.Provider, base string) provider.Target {
	return provider.Target{Provider: p, API: p.API, BaseURL: base, Key: key}
}

func ids(list []provider.Model) string {
	var names []string
	for _, m := range list {
		names = append(names, fmt.Sprint(m.ID, m.Window))
	}
	return strings.Join(names, " ")
}

// The lists of the many servers are read, each with how much its models take.
func TestListsOfManyServersAreRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ body, want string }{
		"openai":     {`{"object":"list","data":[{"id":"a"},{"id":"b"}]}`, "a0 b0"},
		"openrouter": {`{"data":[{"id":"x/a","context_length":200000}]}`, "x/a200000"},
		"groq":       {`{"data":[{"id":"a","context_window":131072}]}`, "a131072"},
		"mistral":    {`{"data":[{"id":"a","max_context_length":128000}]}`, "a128000"},
		"vllm":       {`{"data":[{"id":"a","max_model_len":4096}]}`, "a4096"},
		"llama.cpp":  {`{"models":[{"name":"a"}],"data":[{"id":"a","meta":{"n_ctx_train":8192}}]}`, "a8192"},
		"gemini":     {`{"data":[{"id":"models/gemini-2.5-flash"}]}`, "gemini-2.5-flash0"},
		"empty":      {`{"object":"list","data":null}`, ""},
		"a list":     {`[{"id":"a"}]`, "a0"},
		"odd": {`{"data":[{"id":"a","context_length":"much"},{"id":"a"},{"id":7},{"id":""},{"id":"b\u0007"},{"id":"` + strings.Repeat("x", 201) +
			`"},{"id":"c","context_length":-1}]}`, "a0 c0"},
	} {
		base, _ := place(t, map[string]http.HandlerFunc{"/v1/models": says(200, c.body)})
		list, _, err := provider.List(t.Context(), http.DefaultClient, at(named(t, "other"), base+"/v1"))
		if err != nil || ids(list) != c.want {
			t.Errorf("%s: %q, %v; want %q", name, ids(list), err, c.want)
		}
	}
}

// Anthropic is asked in its own way, whether or not the address has a /v1.
func TestAnthropicIsAskedInItsOwnWay(t *testing.T) {
	t.Parallel()
	base, _ := place(t, map[string]http.HandlerFunc{"/v1/models": func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Api-Key") != key || r.Header.Get("Anthropic-Version") == "" || r.Header.Get("Authorization") != "" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprint(w, `{"data":[{"type":"model","id":"claude-x","display_name":"X","max_input_tokens":200000}],"has_more":false}`)
	}})
	for _, given := range []string{base, base + "/v1", base + "/v1/", base + "/v1/messages"} {
		list, _, err := provider.List(t.Context(), http.DefaultClient, at(named(t, "anthropic"), given))
		if err != nil || ids(list) != "claude-x200000" {
			t.Errorf("%s: %q, %v", strings.TrimPrefix(given, base), ids(list), err)
		}
	}
}

// What was forgotten of an address, or pasted too much, is put right; on another host nothing is tried.
func TestAnAddressIsPutRight(t *testing.T) {
	t.Parallel()
	models := says(200, `{"data":[{"id":"m"}]}`)
	for _, c := range []struct{ at, given, want string }{
		{"/v1/models", "", "/v1"}, {"/v1/models", "/", "/v1"}, {"/v1/models", "/v1/", "/v1"},
		{"/v1/models", "/v1/chat/completions", "/v1"},
		{"/v1/models", "/v1/models ", "/v1"}, {"/models", "", ""}, {"/llm/v1/models", "/llm", "/llm/v1"},
	} {
		base, _ := place(t, map[string]http.HandlerFunc{c.at: models})
		_, got, err := provider.List(t.Context(), http.DefaultClient, at(named(t, "other"), " "+base+c.given))
		if err != nil || got != base+c.want {
			t.Errorf("%q with a list at %s: %q, %v", c.given, c.at, strings.TrimPrefix(got, base), err)
		}
	}
	base, asked := place(t, nil)
	exact := at(named(t, "other"), base)
	exact.Exact = true
	if _, _, err := provider.List(t.Context(), http.DefaultClient, exact); err == nil || len(*asked) != 1 {
		t.Errorf("exact: %v after %q", err, *asked)
	}
}

// What is wrong is a sentence with the provider and a code, without the key and without what a stranger wrote for a terminal.
func TestTroublesAreSentences(t *testing.T) {
	t.Parallel()
	other, openrouter, ollama := named(t, "other"), named(t, "openrouter"), named(t, "ollama")
	for _, c := range []struct {
		p       provider.Provider
		answers map[string]http.HandlerFunc
		code    provider.Code
		says    string
	}{
		{openrouter, map[string]http.HandlerFunc{"/v1/models": says(401, `{"error":{"message":"No auth: `+key+`"}}`)}, provider.KeyRefused,
			"OpenRouter refuses the key (401): `No auth: [redacted]`"},
		{openrouter, map[string]http.HandlerFunc{"/v1/models": says(200, `{"data":[{"id":"m"}]}`), "/v1/key": says(401, `{}`)},
			provider.KeyRefused, "OpenRouter refuses the key (401)"},
		{named(t, "gemini"), map[string]http.HandlerFunc{"/v1/models": says(400, `[{"error":{"code":400,"message":"API key not valid."}}]`)},
			provider.KeyRefused, "Google Gemini refuses the key (400): `API key not valid.`"},
		{other, map[string]http.HandlerFunc{"/v1/models": says(402, "")}, provider.NoCredit, "the account at HOST has no credit (402)"},
		{other, map[string]http.HandlerFunc{"/v1/models": says(429, "")}, provider.Limited, "the limit of the account at HOST is reached (429)"},
		{other, map[string]http.HandlerFunc{"/v1/models": says(503, "<html>down</html>")}, provider.Failing, "HOST is in trouble (503)"},
		{other, nil, provider.NotFound, "HOST has no list of models at this address (404): is it right, and does it end in /v1?"},
		{ollama, map[string]http.HandlerFunc{"/v1/models": says(200, "<!doctype html><p>hello")}, provider.NotModels,
			"Ollama answers with a web page instead of a list of models: is http://HOST/v1 the address of its API?"},
		{other, map[string]http.HandlerFunc{"/v1/models": says(200, `{"error":"unexpected"}`)}, provider.NotModels,
			"HOST answers, but not with a list of models: is http://HOST/v1 the address of its API?"},
		{other, map[string]http.HandlerFunc{"/v1/models": says(200, strings.Repeat(" ", 4<<20+1))}, provider.TooLong,
			"HOST answers with more than 4 MiB: that is not a list of models"},
		{other, map[string]http.HandlerFunc{"/v1/models": says(418, "\x1b[31m`rm`\nred")}, provider.Refused,
			"HOST refuses the request (418): `[31m'rm' red`"},
		{other, map[string]http.HandlerFunc{"/v1/models": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, `{"data":[`)
		}}, provider.Unreached, "HOST is not reached: the connection was closed before an answer"},
	} {
		base, _ := place(t, c.answers)
		_, _, err := provider.List(t.Context(), http.DefaultClient, at(c.p, base+"/v1"))
		var trouble *provider.Trouble
		host := strings.TrimPrefix(base, "http://")
		if !errors.As(err, &trouble) || trouble.Code != c.code || trouble.Provider != c.p.ID ||
			trouble.Sentence != strings.ReplaceAll(c.says, "HOST", host) || strings.Contains(fmt.Sprint(err), key) {
			t.Errorf("%s: %+v, want %s: %s", c.p.ID, err, c.code, c.says)
		}
	}
}

// offline reaches this machine, and no server of names.
var offline = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
	if host, _, _ := net.SplitHostPort(address); host != "127.0.0.1" {
		return nil, &net.DNSError{Name: host, Err: "no such host", IsNotFound: true}
	}
	return new(net.Dialer).DialContext(ctx, network, address)
}}}

// Nobody is there, the address is none, and a key of somebody else.
func TestTroublesWithoutAServer(t *testing.T) {
	t.Parallel()
	for base, c := range map[string]struct {
		code provider.Code
		says string
	}{
		"http://127.0.0.1:9/v1":     {provider.NoListener, "nothing listens at 127.0.0.1:9: is Ollama running?"},
		"http://no.invalid/v1":      {provider.UnknownHost, "the name no.invalid cannot be looked up: is it spelled right, and is this machine online?"},
		"ftp://127.0.0.1/v1":        {provider.BadAddress, "base_url must be an http or https address such as http://127.0.0.1:11434/v1"},
		"file:///etc/passwd":        {provider.BadAddress, "base_url must be an http or https address such as http://127.0.0.1:11434/v1"},
		"http://me:secret@x.ex/v1":  {provider.BadAddress, "base_url holds a user; put the key into api_key"},
		"http://%zz":                {provider.BadAddress, "base_url must be an http or https address such as http://127.0.0.1:11434/v1"},
		"https://127.0.0.1:9/?k=se": {provider.NoListener, "nothing listens at 127.0.0.1:9: is Ollama running?"},
	} {
		_, _, err := provider.List(t.Context(), offline, at(named(t, "ollama"), base))
		var trouble *provider.Trouble
		if !errors.As(err, &trouble) || trouble.Code != c.code || trouble.Sentence != c.says {
			t.Errorf("%s: %v, want %s", base, err, c.says)
		}
	}
	base, _ := place(t, map[string]http.HandlerFunc{"/v1/models": says(401, "")})
	target := at(named(t, "openai"), base+"/v1")
	target.Key = "sk-ant-canary"
	if _, _, err := provider.List(t.Context(), http.DefaultClient, target); err == nil ||
		err.Error() != "OpenAI refuses the key (401); it looks like one of Anthropic" {
		t.Errorf("another one's key: %v", err)
	}
	target.Key = ""
	if _, _, err := provider.List(t.Context(), http.DefaultClient, target); err == nil ||
		err.Error() != "OpenAI wants a key (401). Keys are made at https://platform.openai.com/api-keys" {
		t.Errorf("no key: %v", err)
	}
	target.Key = "with a\nbreak"
	if _, _, err := provider.List(t.Context(), http.DefaultClient, target); err == nil || strings.Contains(err.Error(), "break") {
		t.Errorf("a key with a line break: %v", err)
	}
}

// A redirect is not followed: the key would go to whomever the server names.
func TestARedirectGetsNoKey(t *testing.T) {
	t.Parallel()
	elsewhere, asked := place(t, map[string]http.HandlerFunc{"/v1/models": says(200, `{"data":[{"id":"m"}]}`)})
	base, _ := place(t, map[string]http.HandlerFunc{"/v1/models": func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere+"/v1/models?k="+key, http.StatusTemporaryRedirect)
	}})
	_, _, err := provider.List(t.Context(), http.DefaultClient, at(named(t, "other"), base+"/v1"))
	var trouble *provider.Trouble
	if !errors.As(err, &trouble) || trouble.Code != provider.Redirects || !strings.Contains(trouble.Sentence, elsewhere+"/v1/models (307)") ||
		strings.Contains(trouble.Sentence, key) || len(*asked) != 0 {
		t.Errorf("%v; elsewhere was asked for %q", err, *asked)
	}
}

// silent is a server that takes the request and never answers.
type silent struct{}

func (silent) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestASilentServerIsGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, _, err := provider.List(t.Context(), &http.Client{Transport: silent{}}, at(named(t, "groq"), "https://api.groq.com/openai/v1"))
		if err == nil || err.Error() != "Groq does not answer in time" {
			t.Error(err)
		}
	})
}

// The table is whole: what a form shows of a provider is there, and each address is that of its provider.
func TestTheTableIsWhole(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, p := range provider.All() {
		if p.ID == "" || p.Name == "" || p.API != "openai" && p.API != "anthropic" || p.Window == 0 || p.Model == "" || seen[p.ID] || seen[p.Model] {
			t.Errorf("%+v", p)
		}
		seen[p.ID], seen[p.Model] = true, true
		if p.NeedsKey != (p.KeyURL != "") || p.NeedsKey && (p.KeyHint == "" || p.Env == "") || (p.BaseURL == "") != (p.Example != "") {
			t.Errorf("%s: key or address: %+v", p.ID, p)
		}
		for _, text := range []string{p.BaseURL + p.Example, p.KeyURL} {
			if u, err := url.Parse(text); text != "" && (err != nil || u.Host == "" || (u.Scheme == "http") != (p.Local && text != p.KeyURL)) {
				t.Errorf("%s: %q, %v", p.ID, text, err)
			}
		}
		if p.ID != provider.Other {
			if got := provider.Of(p.API, p.BaseURL+p.Example); got.ID != p.ID {
				t.Errorf("%s: its address is that of %s", p.ID, got.ID)
			}
		}
	}
	if got := provider.Of("openai", "https://models.example.com/v1"); got.ID != provider.Other || got.Name != "models.example.com" {
		t.Errorf("another server: %+v", got)
	}
	list := []provider.Model{{ID: "text-embedding-3"}, {ID: "zeta"}, {ID: "gpt-5-mini-2025"}}
	if got := named(t, "openai").Suggest(list); got != "gpt-5-mini-2025" {
		t.Errorf("suggested %q", got)
	}
	if got := named(t, "ollama").Suggest(list); got != "zeta" {
		t.Errorf("suggested %q", got)
	}
}
