package daemon

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/agentloop/llm/llmtest"
	"parley/channels/all"
	"parley/channels/telegram/telegramtest"
	"parley/cmd/parley/internal/cli"
	"parley/configs"
	"parley/configs/source"
	"parley/gateway"
	"parley/gateway/client"
)

// canaries are random credentials, one for every place of the configuration that takes one.
type canaries map[string]string

func newCanaries() canaries {
	odd := func() string { return "cnry/" + rand.Text() + "+&=x" } // has what URLs and HTML escape
	return canaries{"gateway.token": odd(), "models.api_key": odd(), "transcription.api_key": odd(), "channels.token": "7001:AA" + rand.Text() + "abcdefg", "hooks.secret": odd(),
		"domains.secret": odd(), "file": odd()}
}

// forms are what a canary is looked for as.
func (c canaries) forms() map[string]string {
	list := map[string]string{}
	for name, v := range c {
		quoted, _ := json.Marshal(v) // a string always marshals
		list[name] = v
		list[name+" in a URL"] = url.QueryEscape(v)
		list[name+" in JSON"] = string(quoted[1 : len(quoted)-1])
		list[name+" in base64"] = base64.StdEncoding.EncodeToString([]byte("x" + v + "yz"))
	}
	return list
}

// hits names the forms that a text holds.
func (c canaries) hits(text string) (found []string) {
	for name, form := range c.forms() {
		if strings.Contains(text, form) {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}

// all is every form in one text.
func (c canaries) all() string {
	return strings.Join(slices.Sorted(maps.Values(c.forms())), " | ")
}

// careless is a model that reads, writes, repeats and fails with all secrets.
func careless(c canaries) llmtest.Script {
	return func(r *llmtest.Request) llmtest.Reply {
		switch {
		case strings.Contains(r.LastUser(), "break"):
			return llmtest.Reply{Status: 400, ErrorBody: `{"error":{"message":"no ` + strings.ReplaceAll(c.all(), `"`, `'`) + `"}}`}
		case r.Round() > 0:
			var pieces []string
			for rest := []rune("It says: " + c.all()); len(rest) > 0; {
				k := min(3, len(rest))
				pieces, rest = append(pieces, string(rest[:k])), rest[k:]
			}
			return llmtest.Reply{Pieces: pieces}
		}
		args, _ := json.Marshal(map[string]string{"path": "out.txt", "content": c.all()}) // text always marshals
		return llmtest.Reply{Calls: []llmtest.Call{{Name: "list_dir", Args: `{"path":"."}`}, {Name: "read_file", Args: `{"path":"notes.txt"}`},
			{Name: "write_file", Args: string(args)}, {Name: c["file"], Args: `{}`}}}
	}
}

type guardedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (g *guardedBuffer) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.b.Write(p)
}

// spill lets secrets into everything that a gateway reads, and returns by place what came out of it.
func spill(t *testing.T, c canaries, secrets func(*source.Source) *gateway.Secrets) map[string]string {
	t.Helper()
	dir := t.TempDir()
	tg := telegramtest.Start(t, telegramtest.Options{NoLimits: true, Token: c["channels.token"]})
	model := llmtest.Start(t, careless(c))
	if err := os.WriteFile(filepath.Join(dir, "secret"), []byte(c["file"]), 0o600); err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(dir, "parley.yaml")
	yaml := fmt.Sprintf(`data_dir: %[1]s/data
gateway: {listen: "127.0.0.1:0", token: %[2]q}
models: [{name: m, api: openai, base_url: %[3]q, api_key: %[4]q, model: "x-${file:%[1]s/secret}"}]
transcription: {model: w, base_url: %[3]q, api_key: %[5]q}
agents: [{id: assistant, model: m, workspace_scope: agent}]
people: [{id: ana, role: owner, accounts: [{channel: tg, user: "7"}]}]
channels: [{name: tg, type: telegram, token: %[6]q, api_url: %[7]q, access: {dm: open}}]
hooks: [{name: h, secret: %[8]q}]
domains: [{name: d, match: {tools: [bank_pay]}, handler: webhook, url: "http://127.0.0.1:1/", secret: %[9]q}]
`, dir, c["gateway.token"], model.URL, c["models.api_key"], c["transcription.api_key"], c["channels.token"], tg.URL(), c["hooks.secret"], c["domains.secret"])
	work := filepath.Join(dir, "data/agents/assistant/work/agent")
	if err := os.MkdirAll(work, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{conf: yaml, filepath.Join(work, "notes.txt"): c.all(), filepath.Join(work, c["channels.token"]): "x"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	src := source.New(configs.LoadOptions{Path: conf, Sections: cli.Sections(), Env: func(string) (string, bool) { return "", false }})
	if _, err := src.Load(); err != nil {
		t.Fatal(err)
	}
	hide := secrets(src)
	var out guardedBuffer
	book := gateway.NewLogbook()
	log := slog.New(newLogHandler(Log{&out, slog.LevelDebug, true}, hide.Redact, book.Handler))
	g := gateway.New(gateway.Options{Source: src, Channels: all.Factories(), Env: func(string) (string, bool) { return "", false }, Log: log, Book: book, Secrets: hide, MemoryLimit: 4 << 30})
	if err := g.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	places := map[string]string{}
	talkAbout(t, tg, c)
	cl, err := client.New(g.URL(), c["gateway.token"])
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	said, err := cl.Send(t.Context(), client.Message{Text: "by the API: " + c.all(), Wait: 20})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/metrics", "/v1/status", "/v1/agents", "/v1/channels", "/v1/routes", "/v1/config", "/v1/logs?level=debug&limit=500", "/v1/audit", "/v1/people", "/v1/pairings",
		"/v1/runs", "/v1/runs/" + said.RunID, "/v1/runs/" + said.RunID + "/log", "/v1/sessions", "/v1/sessions/" + url.PathEscape(said.Session) + "/entries", "/v1/outbound", "/v1/usage?by=model",
		"/v1/sessions/" + url.PathEscape(c["file"])} {
		places["API "+path] = get(t, g.URL()+path, c["gateway.token"])
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 20*time.Second)
	defer cancel()
	if err := g.Stop(ctx); err != nil {
		t.Error(err)
	}
	for _, m := range tg.View().Sent(7) {
		places["chat"] += m.Raw + "\n"
		for _, e := range m.Edits {
			places["chat"] += e.Text + "\n"
		}
	}
	places["prompts"] = strings.ReplaceAll(strings.Join(model.Bodies(), "\n"), `"x-`+c["file"], "") // the model's own name
	places["log"] = out.b.String()
	kept(t, filepath.Join(dir, "data"), places)
	return places
}

// talkAbout has an owner say it all in a chat, and waits for the last answer.
func talkAbout(t *testing.T, tg *telegramtest.Server, c canaries) {
	t.Helper()
	ana := telegramtest.User{ID: 7, First: "Ana " + c["models.api_key"]}
	chat := tg.AddPrivate(ana)
	for n, text := range []string{"look: " + c.all(), "break it", "/why", "/status", "/session rename " + c["hooks.secret"]} {
		tg.Message(telegramtest.In{Chat: chat.ID, From: ana, Text: text})
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		_, err := tg.WaitSent(ctx, chat.ID, n+1)
		cancel()
		if err != nil {
			t.Fatalf("%.20s: %v", text, err)
		}
	}
}

func get(t *testing.T, at, token string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(resp.Body); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// kept is what lies in the data directory but the operator's own and what the test put there.
func kept(t *testing.T, dir string, places map[string]string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "token" || d.Name() == "notes.txt" || d.Name() == "ballast" {
			return err
		}
		data, err := os.ReadFile(name)
		short, _ := filepath.Rel(dir, name)
		places["file "+short] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// T12, E52: whatever secrets get into messages, names, files, answers, calls and errors: none of them comes out.
func TestE52_T12_NoConfiguredSecretComesOut(t *testing.T) {
	t.Parallel()
	c := newCanaries()
	places := spill(t, c, func(src *source.Source) *gateway.Secrets { return gateway.NewSecrets(src.Current, os.LookupEnv) })
	for place, text := range places {
		if found := c.hits(text); len(found) > 0 {
			at := strings.Index(text, c.forms()[found[0]])
			t.Errorf("%s holds %q: …%.300s", place, found, text[max(0, at-150):])
		}
	}
	if !strings.Contains(places["chat"], "[secret]") || !strings.Contains(places["file agents/assistant/work/agent/out.txt"], "[secret]") {
		t.Errorf("nothing was hidden: the test tries nothing\n%s", places["chat"])
	}
	broken := spill(t, c, func(*source.Source) *gateway.Secrets {
		none := &configs.Config{DataDir: t.TempDir()}
		return gateway.NewSecrets(func() *configs.Config { return none }, func(string) (string, bool) { return "", false })
	})
	for _, place := range []string{"chat", "prompts", "log", "file parley.db", "file agents/assistant/work/agent/out.txt", "API /v1/runs", "API /v1/logs?level=debug&limit=500"} {
		if len(c.hits(broken[place])) == 0 {
			t.Errorf("with nothing hidden, %s holds nothing: the test would not notice", place)
		}
	}
	t.Log("escape E52: broken: a gateway that hides nothing is caught")
}
