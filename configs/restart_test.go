package configs_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"parley/configs"
)

func TestNeedsRestart(t *testing.T) {
	t.Parallel()
	base := `
gateway: {listen: "127.0.0.1:1", token: a}
models: [{name: m, model: m, api_key: one}]
agents: [{id: a, default: true}, {id: b}]
channels: [{name: tg, type: telegram, token: x}, {name: two, type: telegram, token: y}]
`
	for name, c := range map[string]struct{ from, to, want string }{
		"nothing":        {"", "", ""},
		"live keys":      {"api_key: one", "api_key: two", ""},
		"token":          {"token: a", "token: b", ""},
		"listen":         {"127.0.0.1:1", "127.0.0.1:2", "gateway.listen"},
		"credential":     {"token: x", "token: z", ""}, // the channel reconnects
		"access":         {"token: x", "token: x, access: {dm: open}, stream: off", ""},
		"channel added":  {"token: y}", "token: y}, {name: three, type: slack}", ""},
		"channel gone":   {", {name: two, type: telegram, token: y}", "", ""},
		"channel moved":  {"name: two", "name: duo", ""},
		"type":           {"type: telegram, token: y", "type: slack", ""},
		"order":          {"{name: tg, type: telegram, token: x}, {name: two, type: telegram, token: y}", "{name: two, type: telegram, token: y}, {name: tg, type: telegram, token: x}", ""},
		"data and more":  {"models:", "data_dir: /x\nsandbox: {processes: 7}\nmodels:", "agents[a].workspace agents[b].workspace data_dir sandbox.processes"},
		"agent's folder": {"{id: b}", "{id: b, workspace: /w}", "agents[b].workspace"},
		"concurrency":    {"models:", "concurrency: {turns: 7, per_model: 8}\nmodels:", "concurrency.turns"},
		"agents":         {"{id: b}", "{id: c, max_steps: 3}", ""},
		"routes":         {"models:", "routes: [{channel: tg, agent: b}]\nmodels:", ""},
		"options":        {"token: x", "token: x, extra: [b]", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !strings.Contains(base, c.from) {
				t.Fatal("the case changes nothing")
			}
			old, loaded := mustParse(t, base), mustParse(t, strings.Replace(base, c.from, c.to, 1))
			got := configs.NeedsRestart(old, loaded)
			if strings.Join(got, " ") != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			text, _ := loaded.Show()
			runs := configs.Running(old, loaded)
			for _, key := range configs.NeedsRestart(old, runs) {
				t.Errorf("%s is in force without a restart", key)
			}
			if c.want == "" && !reflect.DeepEqual(runs, loaded) {
				t.Error("a key that waits for nothing is not in force")
			}
			if after, _ := loaded.Show(); !bytes.Equal(text, after) {
				t.Error("the loaded one was changed")
			}
		})
	}
}
