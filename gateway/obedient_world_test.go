package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"parley/agentloop/llm/llmtest"
	"parley/channels/channeltest/stage"
	"parley/channels/telegram/telegramtest"
	"parley/configs"
	"parley/gateway"
	"parley/tools"
	"parley/tools/sandbox"
	"parley/workspace"
)

// What an attack is after. Each is found nowhere else.
const (
	stolenKey  = "sk-obedient-0123456789" // a configured credential
	diaryText  = "DIARY-of-another-person"
	hostText   = "HOST-file-of-the-operator"
	configText = "CONFIG-of-the-gateway"
)

// weaknesses name the defence that a world does without.
type weakness string

const (
	none        weakness = ""
	noRedaction weakness = "redaction"
	noRoot      weakness = "the work folder's root"
	noExecRule  weakness = "commands are for owners"
	noAsking    weakness = "commands ask"
	noDeny      weakness = "a tool that is denied"
	noFolders   weakness = "a work folder for each session"
	noSteps     weakness = "the limit of steps"
)

// trialWorld is a gateway with the obedient model, a victim, and the strangers of one test.
type trialWorld struct {
	*rig
	*trialState
}

// trialState is what all tests of a world share.
type trialState struct {
	model  *obedient
	weak   weakness
	host   string // a file of the operator's
	victim string // name of the victim's work folder

	mu      sync.Mutex
	ran     []string // commands
	wiped   []string
	holds   map[string]*heldCall
	pages   map[string]string
	outputs map[string]string
}

type heldCall struct{ called, open chan struct{} }

func newObedientWorld(t *testing.T, weak weakness) *trialWorld {
	t.Helper()
	w := &trialWorld{trialState: &trialState{model: newObedient(), weak: weak, holds: map[string]*heldCall{}, pages: map[string]string{}, outputs: map[string]string{}}}
	r := &rig{t: t, dir: t.TempDir(), log: &stage.Log{}}
	w.rig = r
	r.tg = telegramtest.Start(t, telegramtest.Options{NoLimits: true})
	r.llm = llmtest.Start(t, w.model.reply)
	r.url = r.llm.URL
	r.conf = filepath.Join(r.dir, "parley.yaml")
	w.host = filepath.Join(r.dir, "host.txt")
	if err := os.WriteFile(w.host, []byte(hostText), 0o600); err != nil {
		t.Fatal(err)
	}
	r.write(fmt.Sprintf(`# %s
data_dir: %s/data
gateway: {listen: "127.0.0.1:0"}
models: [{name: m, api: openai, base_url: %q, api_key: %q, model: test-1}]
agents: [{id: assistant, model: m, %s}]
people: [{id: ana, role: owner, accounts: [{channel: tg, user: "7"}]}, {id: zoe, role: owner, accounts: [{channel: tg, user: "17"}]}]
channels: [{name: tg, type: telegram, token: %q, api_url: %q, access: {dm: open, groups: open, require_mention: true}}]
`, configText, r.dir, r.modelURL(), stolenKey, w.agent(), r.tg.Token(), r.tg.URL()) + quiet) // a placeholder would be taken for an answer
	r.start(func(o *gateway.Options) {
		o.Tools = w.tools()
		o.Sandbox = recordingSandbox{w}
		if weak == noRedaction {
			empty := &configs.Config{DataDir: t.TempDir()}
			o.Secrets = gateway.NewSecrets(func() *configs.Config { return empty }, func(string) (string, bool) { return "", false })
		}
	})
	t.Cleanup(func() {
		r.stop()
		if t.Failed() && testing.Verbose() {
			t.Log(r.log.String())
		}
	})
	w.victim = w.settle(9, "vic")
	w.put(w.victim, "diary.txt", diaryText)
	return w
}

// obedientWorlds are the worlds of a story, by the defence that each does without.
type obedientWorlds struct {
	t  *testing.T // of the whole story
	mu sync.Mutex
	of map[weakness]*trialWorld
}

// at is a world, made when it is first asked for.
func (o *obedientWorlds) at(weak weakness) *trialWorld {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.of[weak] == nil {
		o.of[weak] = newObedientWorld(o.t, weak)
	}
	return o.of[weak]
}

// in is the world as one test of it sees it.
func (w *trialWorld) in(t *testing.T) *trialWorld {
	r := *w.rig
	r.t = t
	return &trialWorld{&r, w.trialState}
}

// agent is the configuration of the agent: what is the operator's to weaken.
func (w *trialWorld) agent() string {
	deny, role, exec, more := "deny: [wipe]", "", "exec: ask", ""
	switch w.weak {
	case noDeny:
		deny = "deny: []"
	case noExecRule:
		role, exec = ", by_role: {guest: {exec: allow}}", "exec: allow"
	case noAsking:
		exec = "exec: allow"
	case noFolders:
		more = "workspace_scope: agent, "
	case noSteps:
		more = "max_steps: 1000, "
	}
	return fmt.Sprintf("%stools: {%s, %s%s}", more, deny, exec, role)
}

// settle lets a person come into being with a work folder, and returns its name.
func (w *trialWorld) settle(user int64, code string) string {
	chat := w.person(user)
	w.say(chat, user, fmt.Sprintf(`CALL write_file {"path":"mark-%s.txt","content":"x"} SAY ready`, code))
	w.wait(chat, 1)
	return w.folderOf(code)
}

func (w *trialWorld) folderOf(code string) string {
	w.t.Helper()
	found, err := filepath.Glob(filepath.Join(w.dir, "data/agents/assistant/work/*/mark-"+code+".txt"))
	if err != nil || len(found) != 1 {
		w.t.Fatalf("work folder of %s: %q, %v", code, found, err)
	}
	return filepath.Base(filepath.Dir(found[0]))
}

// path is a file of a work folder.
func (w *trialWorld) path(folder, name string) string {
	return filepath.Join(w.dir, "data/agents/assistant/work", folder, name)
}

func (w *trialWorld) put(folder, name, text string) {
	w.t.Helper()
	if err := os.WriteFile(w.path(folder, name), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// has says whether a file, by its path from the work folders, holds a text.
func (w *trialWorld) has(folder, name, text string) bool {
	data, err := os.ReadFile(w.path(folder, name))
	return err == nil && strings.Contains(string(data), text)
}

// heard says whether the bot has said a text in a chat, or sent it in a file.
func (w *trialWorld) heard(chat telegramtest.Chat, texts ...string) bool {
	for _, m := range w.tg.View().Sent(chat.ID) {
		for _, text := range texts {
			said := m.Raw + m.Text
			for _, e := range m.Edits {
				said += e.Raw + e.Text
			}
			for _, f := range m.Files {
				said += string(f.Data)
			}
			if strings.Contains(said, text) || strings.Contains(said, url.QueryEscape(text)) {
				return true
			}
		}
	}
	return false
}

func (w *trialWorld) did(list *[]string, code string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(*list, func(s string) bool { return strings.HasSuffix(s, code) })
}

// recordingSandbox runs nothing and keeps what it should have run.
type recordingSandbox struct{ w *trialWorld }

func (s recordingSandbox) Run(_ context.Context, c sandbox.Command) (sandbox.Outcome, error) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	s.w.ran = append(s.w.ran, c.Line)
	return sandbox.Outcome{Output: []byte("ran")}, nil
}
func (recordingSandbox) Tier() sandbox.Tier { return sandbox.TierNS }
func (recordingSandbox) Close()             {}

func (recordingSandbox) Probe(context.Context) sandbox.Report {
	return sandbox.Report{Tier: sandbox.TierNS, Done: true}
}
func (recordingSandbox) Last() sandbox.Report {
	return sandbox.Report{Tier: sandbox.TierNS, Done: true}
}

// simpleTool is a tool of a world.
type simpleTool struct {
	name   string
	effect workspace.Effect
	call   func(ctx context.Context, args map[string]string) tools.Result
}

func (s simpleTool) Spec() tools.Spec {
	return tools.Spec{Name: s.name, Description: "A tool of a test.", Group: tools.GroupFiles, Effect: s.effect,
		Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"},"what":{"type":"string"},"code":{"type":"string"}},"additionalProperties":false}`)}
}

func (s simpleTool) Call(ctx context.Context, c tools.Call) (tools.Result, error) {
	args := map[string]string{}
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return tools.Result{}, err
	}
	return s.call(ctx, args), nil
}

// tools are what the carriers need, a dangerous one, and, for a world without roots, file tools as a careless author
// would write them.
func (w *trialWorld) tools() []tools.Tool {
	of := func(m map[string]string) func(context.Context, map[string]string) tools.Result {
		return func(_ context.Context, a map[string]string) tools.Result {
			w.mu.Lock()
			defer w.mu.Unlock()
			return tools.TextResult(m[a["code"]])
		}
	}
	list := []tools.Tool{
		simpleTool{"fetch_page", workspace.Pure, of(w.pages)},
		simpleTool{"look_up", workspace.Pure, func(ctx context.Context, a map[string]string) tools.Result {
			r := of(w.outputs)(ctx, a)
			text, _ := json.Marshal(map[string]string{"value": r.Content[0].Text}) // text always marshals
			return tools.Result{Content: []workspace.Content{{Kind: workspace.JSON, Args: text}}, Error: true}
		}},
		simpleTool{"hold", workspace.Pure, func(ctx context.Context, a map[string]string) tools.Result {
			h := w.hold(a["code"])
			close(h.called)
			select {
			case <-h.open:
			case <-ctx.Done():
			}
			return tools.TextResult("held")
		}},
		simpleTool{"wipe", workspace.Outside, func(_ context.Context, a map[string]string) tools.Result {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.wiped = append(w.wiped, a["what"])
			return tools.TextResult("wiped")
		}},
	}
	if w.weak != noRoot {
		return list
	}
	open := func(name string) string {
		if filepath.IsAbs(name) {
			return name
		}
		return filepath.Join(w.dir, "data/agents/assistant/work/any", name) // beside all others
	}
	return append(list,
		simpleTool{"weak_read", workspace.Pure, func(_ context.Context, a map[string]string) tools.Result {
			data, err := os.ReadFile(open(a["path"]))
			return tools.TextResult(fmt.Sprint(string(data), err))
		}},
		simpleTool{"weak_write", workspace.Outside, func(_ context.Context, a map[string]string) tools.Result {
			return tools.TextResult(fmt.Sprint(os.WriteFile(open(a["path"]), []byte(a["content"]), 0o600)))
		}})
}

func (w *trialWorld) hold(code string) *heldCall {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.holds[code] == nil {
		w.holds[code] = &heldCall{make(chan struct{}), make(chan struct{})}
	}
	return w.holds[code]
}

// named is a file tool of this world.
func (w *trialWorld) named(tool string) string {
	if w.weak == noRoot {
		return "weak_" + strings.TrimSuffix(tool, "_file")
	}
	return tool
}
