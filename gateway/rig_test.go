package gateway_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"parley/agentloop/llm/llmtest"
	"parley/channels/all"
	"parley/channels/channeltest/stage"
	"parley/channels/telegram/telegramtest"
	"parley/configs"
	"parley/configs/source"
	"parley/gateway"
	"parley/tools/sandbox"
)

// waitLimit is how long a test waits for what must come: what has not come by then will not, on a machine of any load.
const waitLimit = time.Minute

// rig is a whole daemon as a value, between a fake Telegram and a scripted model.
type rig struct {
	t    *testing.T
	tg   *telegramtest.Server
	llm  *llmtest.Server
	url  string // of the model server
	dir  string
	conf string
	log  *stage.Log
	g    *gateway.Gateway
	mem  *memNet // a network in memory beside Telegram; nil: there is none
	slot *slot   // of a daemon that tests share; nil: this one is the test's own
}

func TestMain(m *testing.M) {
	sandbox.Init()                                                         // this binary is started again for each command
	goleak.VerifyTestMain(m, append(stuck, goleak.Cleanup(func(code int) { // a stopped gateway has left no goroutine
		if testing.Verbose() {
			fmt.Println(gateway.Starts.String())
		}
		os.Exit(code)
	}))...)
}

// setup is what a test changes of the rig; extra is YAML that is appended, in which {{model}} is the model server.
type setup struct {
	script llmtest.Script
	access string // default: open for all
	extra  string
	limits bool   // Telegram's flood limits
	more   string // further items of channels
	mem    *memNet
	agent  string // further keys of the agent, each with a comma before it
	models string // further models, each with a comma before it
	opt    func(*gateway.Options)

	// Of a daemon that tests share:
	own    map[string]own // tests that have a model and an agent of their own
	inTurn bool           // they run one after another
	agents string         // further agents, each with a comma before it
	routes string         // lines of rules that lead to them
}

func newRig(t *testing.T, s setup) *rig {
	t.Helper()
	if s.script == nil {
		s.script = llmtest.Echo
	}
	if s.access == "" {
		s.access = "{dm: open, groups: open, require_mention: true}"
	}
	r := &rig{t: t, dir: t.TempDir(), log: &stage.Log{}, mem: s.mem}
	r.tg = telegramtest.Start(t, telegramtest.Options{NoLimits: !s.limits})
	r.llm = llmtest.Start(t, s.script)
	r.url = r.llm.URL
	r.conf = filepath.Join(r.dir, "parley.yaml")
	r.write(fmt.Sprintf(`
data_dir: %s/data
gateway: {listen: "127.0.0.1:0"}
models: [{name: m, api: openai, base_url: "%s", api_key: sk-test-canary, model: test-1}%s]
agents: [{id: assistant, name: Assistant, default: true, model: m%s}%s]
channels: [{name: tg, type: telegram, token: "%s", api_url: "%s", access: %s}%s]
%s`, r.dir, r.modelURL(), strings.ReplaceAll(s.models, "{{model}}", r.modelURL()), s.agent, s.agents, r.tg.Token(), r.tg.URL(), s.access, s.more, strings.ReplaceAll(s.extra, "{{model}}", r.modelURL())))
	r.start(s.opt)
	t.Cleanup(func() {
		r.stop()
		if t.Failed() {
			t.Log(r.log.String())
		}
	})
	return r
}

func (r *rig) modelURL() string { return strings.TrimRight(r.url, "/") }

func (r *rig) write(yaml string) {
	r.t.Helper()
	half := r.conf + ".new" // the watch of the file must not see half of it
	err := os.WriteFile(half, []byte(yaml), 0o600)
	if err == nil {
		err = os.Rename(half, r.conf)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) start(change func(*gateway.Options)) {
	r.t.Helper()
	opt := gateway.Options{Sandbox: sandbox.New(sandbox.Config{Backend: "none"}, sandbox.Deps{}), Channels: all.Factories(), Env: func(string) (string, bool) { return "", false },
		Log: slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug})), MemoryLimit: 4 << 30}
	if change != nil {
		change(&opt)
	}
	var sections []configs.Section
	for _, f := range opt.Channels {
		sections = append(sections, configs.Section{Type: string(f.Network), Options: f.Options})
	}
	src := source.New(configs.LoadOptions{Path: r.conf, Sections: sections, Env: func(string) (string, bool) { return "", false }})
	if _, err := src.Load(); err != nil {
		r.t.Fatal(err)
	}
	opt.Source = src
	gateway.Starts.By(r.t)
	r.g = gateway.New(opt)
	if err := r.g.Start(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := r.g.Stop(ctx); err != nil {
		r.t.Error(err)
	}
}

// person is a simulated human with a private chat.
func (r *rig) person(id int64) telegramtest.Chat {
	return r.tg.AddPrivate(r.user(id))
}

func (r *rig) say(chat telegramtest.Chat, from int64, text string) int64 {
	return r.tg.Message(telegramtest.In{Chat: chat.ID, From: r.user(from), Text: text})
}

// wait blocks until the chat has seen n messages of the bot whose last text is complete, and returns them.
func (r *rig) wait(chat telegramtest.Chat, n int) []telegramtest.Message {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), waitLimit)
	defer cancel()
	got, err := r.tg.WaitSent(ctx, chat.ID, n)
	if err != nil {
		r.t.Fatalf("%d messages: %v; have %+v", n, err, texts(r.tg.View().Sent(chat.ID)))
	}
	return got
}

// until blocks until the condition holds on the network's side.
func (r *rig) until(what string, cond func(telegramtest.View) bool) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), waitLimit)
	defer cancel()
	if err := r.tg.WaitFor(ctx, cond); err != nil {
		r.t.Fatalf("%s: %v", what, err)
	}
}

func texts(list []telegramtest.Message) []string {
	var out []string
	for _, m := range list {
		out = append(out, m.Text)
	}
	return out
}
