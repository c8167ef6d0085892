package snapshot

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/agentloop"
	"parley/agentloop/llm"
	"parley/agentloop/llm/price"
	"parley/configs"
	"parley/workspace"
)

// newSource makes a source whose models know an environment.
func newSource(t *testing.T, env configs.Lookup) *Source {
	t.Helper()
	prices, err := price.Load(nil, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	return New(Options{Models: NewModels(ModelOptions{Calls: http.DefaultClient, HTTP: http.DefaultClient, Env: env, Prices: prices, Log: log}),
		Prompts: &agentloop.Prompts{Now: time.Now, Log: log}, Loop: agentloop.Loop{Now: time.Now, Log: log}})
}

func none(string) (string, bool) { return "", false }

// only is an environment of one variable.
func only(name, value string) configs.Lookup {
	return func(asked string) (string, bool) {
		if asked != name {
			return "", false
		}
		return value, true
	}
}

// load reads a configuration whose data directory is dir.
func load(t *testing.T, dir, yaml string) *configs.Config {
	t.Helper()
	path := filepath.Join(dir, "parley.yaml")
	if err := os.WriteFile(path, []byte("data_dir: "+dir+"/data\n"+yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := configs.Load(configs.LoadOptions{Path: path, Env: none})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const two = `models: [{name: m, api: offline}, {name: n, api: offline}, {name: o, api: offline}]
`

// What is prepared is in force from its commit on, as a whole; what was dropped or refused leaves nothing.
func TestASnapshotIsInForceFromItsCommitOn(t *testing.T) {
	t.Parallel()
	s, dir := newSource(t, none), t.TempDir()
	p, err := s.Prepare(load(t, dir, two+"agents: [{id: a, model: m}]"))
	if err != nil || s.Current() != nil {
		t.Fatalf("in force before its commit: %v, %v", s.Current(), err)
	}
	if _, err := os.Stat(filepath.Join(p.Agents["a"].Files.Dir, "AGENTS.md")); err != nil {
		t.Error("the agent's files are not laid out:", err)
	}
	p.Commit()
	before := s.Current()
	p, err = s.Prepare(load(t, dir, two+"agents: [{id: a, model: n}, {id: b, default: true, model: o}]"))
	if err != nil {
		t.Fatal(err)
	}
	p.Drop()
	bad := load(t, dir, two+"agents: [{id: a, model: n}]")
	bad.Agents[0].Model = "nobody"
	if _, err := s.Prepare(bad); err == nil || !strings.Contains(err.Error(), `agent "a"`) {
		t.Errorf("a model that is not there: %v", err)
	}
	if s.Current() != before || before.Agents["a"].Models[0] != "m" {
		t.Error("what is in force has changed")
	}
	if p, err = s.Prepare(load(t, dir, two+"agents: [{id: a, model: n}, {id: b, default: true, model: o}]")); err != nil {
		t.Fatal(err)
	}
	p.Commit()
	now := s.Current()
	if !slices.Equal(now.Order, []workspace.AgentID{"a", "b"}) || now.Default != "b" || now.Agent("gone").ID != "b" || before.Agent("b").ID != "a" {
		t.Errorf("agents %v, default %s", now.Order, now.Default)
	}
}

// A session's own model comes first where it may have it; the summarizer comes before it.
func TestModelsAreAskedInTheirOrder(t *testing.T) {
	t.Parallel()
	p, err := newSource(t, none).Prepare(load(t, t.TempDir(), two+"agents: [{id: a, model: m, fallbacks: [n], models: [o], roles: {summarizer: n}}, {id: b, default: true}]"))
	if err != nil {
		t.Fatal(err)
	}
	a := p.Agents["a"]
	for _, c := range []struct{ own, chain, sums string }{{"", "m n", "n m"}, {"o", "o m n", "n o m"}, {"n", "n m", "n m"}, {"other", "m n", "n m"}} {
		o := workspace.Overrides{Model: c.own}
		if got := strings.Join(a.Chain(o), " "); got != c.chain {
			t.Errorf("with %q: %s, want %s", c.own, got, c.chain)
		}
		if got := strings.Join(a.Summarizers(o), " "); got != c.sums {
			t.Errorf("summaries with %q: %s, want %s", c.own, got, c.sums)
		}
	}
	if b := p.Agents["b"]; !slices.Equal(b.Models, []string{"m"}) || !slices.Equal(b.Summarizers(workspace.Overrides{}), b.Models) {
		t.Errorf("an agent that names no model has %v", b.Models)
	}
}

// The token speaks for the first configured owner, or for person local.
func TestOwnerIsTheOneThatIsConfigured(t *testing.T) {
	t.Parallel()
	for people, want := range map[string]string{
		"":                                  "local",
		"{id: ana, role: owner, name: Ana}": "ana",
		"{id: ana, role: member}":           "local",
		"{id: ben, role: member}, {id: ana, role: owner}, {id: cleo, role: owner}": "ana",
	} {
		c := load(t, t.TempDir(), two+"channels: []\npeople: ["+people+"]")
		o, list := Owner(c), People(c)
		if string(o.Person) != want || o.Role != workspace.Owner || len(list) != len(c.People) {
			t.Errorf("of %q: %+v among %+v", people, o, list)
		}
	}
}

// A model that appears while none is configured is in force without a reload, for the same configuration.
func TestDiscoveryPutsWhatItFindsInForce(t *testing.T) {
	t.Parallel()
	var up atomic.Bool
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !up.Load() {
			http.Error(w, "loading", http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte(`{"data":[{"id":"a"}]}`))
	}))
	defer srv.Close()
	s := newSource(t, only("OPENAI_BASE_URL", srv.URL+"/v1"))
	p, err := s.Prepare(load(t, t.TempDir(), ""))
	if err != nil {
		t.Fatal(err)
	}
	p.Commit()
	before := s.Current()
	up.Store(true)
	s.look(t.Context())
	now := s.Current()
	if now == before || now.Config != before.Config {
		t.Fatal("what was found is not in force")
	}
	if got, _ := now.Models.Info(now.Agent("").Models[0]); got.Model != "a" {
		t.Errorf("the model is %+v", got)
	}
	s.look(t.Context())
	if s.Current() != now {
		t.Error("a look that finds the same makes another snapshot")
	}
}

// A call that comes while servers are asked waits for what is found, and is answered by that.
func TestCallWaitsWhileAModelIsDiscovered(t *testing.T) {
	t.Parallel()
	m := newSource(t, none).opt.Models
	c := load(t, t.TempDir(), "")
	list := m.of(c)
	if len(list) != 1 || list[0].Name != discoveringName {
		t.Fatalf("models while discovering: %+v", list)
	}
	model, err := m.open(list[0])
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		res, err := model.Stream(t.Context(), llm.Request{Messages: []llm.Message{{Role: llm.User, Content: []workspace.Content{{Kind: workspace.Text, Text: "hello"}}}}}, nil)
		if err == nil && !strings.Contains(res.Content[0].Text, "hello") {
			t.Errorf("the answer is %+v", res)
		}
		answered <- err
	}()
	select {
	case err := <-answered:
		t.Fatalf("answered by nobody: %v", err)
	default:
	}
	m.use(configs.Model{Name: "offline", API: "offline", Model: "offline"})
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
	if list := m.of(c); list[0].API != "offline" {
		t.Errorf("models after it: %+v", list)
	}
}

func TestProbeSaysPlainlyWhatIsThere(t *testing.T) {
	t.Parallel()
	var auth string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/models":
			auth = r.Header.Get("Authorization")
			_, _ = w.Write([]byte(`{"data":[{"id":"a"},{"id":"b"}]}`))
		case "/page/models":
			_, _ = w.Write([]byte("<html>"))
		default:
			http.Error(w, "no", http.StatusUnauthorized)
		}
	}))
	defer srv.Close()
	m := newSource(t, none).opt.Models
	got, err := m.Probe(t.Context(), srv.URL+"/v1", "k")
	if err != nil || strings.Join(got, " ") != "a b" || auth != "Bearer k" {
		t.Errorf("got %v, %v with %q", got, err, auth)
	}
	for path, want := range map[string]string{"/page": "something else", "/none": "answers 401"} {
		if _, err := m.Probe(t.Context(), srv.URL+path, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	srv.Close()
	if _, err := m.Probe(t.Context(), srv.URL+"/v1", ""); err == nil || err.Error() != "nobody answers there" {
		t.Errorf("a closed port: %v", err)
	}
}
