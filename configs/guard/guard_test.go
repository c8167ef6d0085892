package guard_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"parley/configs"
	"parley/configs/guard"
)

// telegram stands for an adapter's own options.
type telegram struct {
	Token  configs.Secret `yaml:"token" required:"true" doc:"Bot token of the account."`
	APIURL string         `yaml:"api_url" doc:"Another server than Telegram's."`
}

func sections() []configs.Section {
	return []configs.Section{{Type: "telegram", Options: func() any { return &telegram{} }}}
}

const guardBase = `
models:
  - {name: claude, api: anthropic, api_key: kept-secret, model: c}
  - {name: near, base_url: "http://127.0.0.1:11434/v1", model: l}
agents: [{id: assistant, default: true}]
people: [{id: ana, role: owner, accounts: [{channel: tg, user: "1"}]}, {id: ben, role: guest}]
channels: [{name: tg, type: telegram, token: "1:kept-too"}]
`

func home(name string) (string, bool) {
	if name == "HOME" {
		return "/home/ana", true
	}
	return "", false
}

func guardParse(t *testing.T, text string) *configs.Config {
	t.Helper()
	c, err := configs.Parse([]byte(text), configs.LoadOptions{Env: home, Sections: sections()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// E68: what reaches the host or widens rights is guarded, also where it comes with something new; the rest is not.
func TestE68_KeysThatReachTheHostOrWidenRightsAreGuarded(t *testing.T) {
	t.Parallel()
	old := guardParse(t, guardBase)
	for _, c := range []struct{ from, to, want string }{
		{"model: c}", "model: d}", ""},
		{"models:\n", "models:\n  - {name: new, api_key: fresh, model: m}\n", ""},
		{"  - {name: near, base_url: \"http://127.0.0.1:11434/v1\", model: l}\n", "", "models[near]"},
		{"default: true}", "default: true, name: Ada, model: near, max_steps: 5}", ""},
		{"default: true}", "default: true}, {id: other}", ""},
		{"{id: ben, role: guest}", "{id: ben, role: guest, name: Ben, tz: Europe/Berlin}", ""},
		{"role: guest}", "role: guest}, {id: cleo}", ""},
		{"channels: [", "channels: [{name: tg2, type: telegram, token: \"2:x\"}, ", ""},
		{"role: guest}", "role: owner}", "people[ben].role"},
		{"role: guest}", "role: guest}, {id: cleo, role: member}", "people[cleo].role"},
		{"user: \"1\"}]", "user: \"1\"}, {channel: tg, user: \"2\"}]", "people[ana].accounts"},
		{"default: true}", "default: true, tools: {exec: allow}}", "agents[assistant].tools.exec"},
		{"default: true}", "default: true}, {id: other, tools: {exec: allow}}", "agents[other].tools.exec"},
		{"default: true}", "default: true, tools: {by_role: {guest: {exec: allow}}}}", "agents[assistant].tools.by_role"},
		{"default: true}", "default: true, folders: [{path: /srv/notes, as: root}]}", "agents[assistant].folders"},
		{"token: \"1:kept-too\"}", "token: \"1:kept-too\", access: {dm: open}}", "channels[tg].access.dm"},
		{"channels: [", "channels: [{name: tg2, type: telegram, token: \"2:x\", access: {groups: open}}, ", "channels[tg2].access.groups"},
		{"channels: [", "channels: [{name: tg2, type: telegram, token: \"2:x\", api_url: \"http://127.0.0.1:1\"}, ", "channels[tg2].api_url"},
		{"\nmodels", "\ngateway: {allowed_hosts: [evil.example]}\nmodels", "gateway.allowed_hosts"},
		{"\nmodels", "\nsandbox: {network: egress, egress: [\"a.example:443\"]}\nmodels", "sandbox.egress sandbox.network"},
		{"\nmodels", "\nretention: {runs: 1d}\nmodels", "retention.runs"},
		{"\nmodels", "\ndata_dir: /elsewhere\nmodels", "data_dir"},
		{"\nmodels", "\ndomains: [{name: pay, match: {tools: [x]}, handler: command, command: [/bin/sh]}]\nmodels", "domains[pay].command domains[pay].handler domains[pay].match.tools domains[pay].name"},
	} {
		if strings.Count(guardBase, c.from) < 1 {
			t.Fatalf("the text has no %q", c.from)
		}
		got := guard.Guarded(guard.Changed(old, guardParse(t, strings.Replace(guardBase, c.from, c.to, 1))))
		if strings.Join(got, " ") != c.want {
			t.Errorf("%q in place of %q guards %q, want %q", c.to, c.from, got, c.want)
		}
	}
}

// E68: a credential that is kept goes to no address that it was not given for, whatever refers to it.
func TestE68_AKeptCredentialGoesNowhereElse(t *testing.T) {
	t.Parallel()
	old := guardParse(t, guardBase)
	for text, wrong := range map[string]bool{
		guardBase: false,
		strings.Replace(guardBase, "api_key: kept-secret", "api_key: another, base_url: \"https://other.example\"", 1):                                                          false,
		strings.Replace(guardBase, "api_key: kept-secret", "api_key: kept-secret, base_url: \"https://evil.example\"", 1):                                                       true,
		strings.Replace(guardBase, "models:", "models:\n  - {name: x, base_url: \"https://evil.example\", api_key: kept-secret, model: m}", 1):                                  true,
		strings.Replace(guardBase, "models:", "transcription: {model: w, base_url: \"https://evil.example\", api_key: kept-secret}\nmodels:", 1):                                true,
		strings.Replace(guardBase, "token: \"1:kept-too\"", "token: \"1:kept-too\", api_url: \"http://127.0.0.1:9\"", 1):                                                        true,
		strings.Replace(guardBase, "models:", "models:\n  - {name: x, base_url: \"https://evil.example\", api_key: \"1:kept-too\", model: m}", 1):                               true,
		strings.Replace(guardBase, "models:", "hooks: [{name: h, secret: kept-secret-of-16}]\nmodels:", 1):                                                                      false,
		strings.Replace(guardBase, "name: tg, type", "name: telegram, type", 1):                                                                                                 false,
		strings.Replace(strings.Replace(guardBase, "name: claude", "name: opus", 1), "model: c}", "model: d}", 1):                                                               false,
		strings.Replace(guardBase, "models:", "domains: [{name: p, match: {tools: [x]}, handler: webhook, url: \"https://e.example\", secret: kept-secret-of-16}]\nmodels:", 1): false,
	} {
		err := guard.KeptElsewhere(guardParse(t, strings.Replace(text, "channel: tg,", "channel: "+channelName(text)+",", 1)), old)
		var kept *guard.ErrKept
		if errors.As(err, &kept) != wrong {
			t.Errorf("%v of\n%s", err, text)
		}
		if err != nil && slices.ContainsFunc([]string{"kept-secret", "kept-too"}, func(s string) bool { return strings.Contains(err.Error(), s) }) {
			t.Errorf("the error tells the credential: %v", err)
		}
	}
}

func channelName(text string) string {
	if strings.Contains(text, "name: telegram,") {
		return "telegram"
	}
	return "tg"
}
