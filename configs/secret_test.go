package configs_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"parley/configs"
)

const canary = "canary-5ec2e7-value"

// leaks says whether the canary, or an encoding of it, is in text.
func leaks(text string) bool {
	lower := strings.ToLower(text)
	return strings.Contains(lower, canary) || strings.Contains(lower, hex.EncodeToString([]byte(canary))) ||
		strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(canary))) || strings.Contains(text, "99 97 110 97 114 121")
}

func TestT12_SecretNeverShows(t *testing.T) {
	t.Parallel()
	s := configs.Secret(canary)
	holder := struct {
		S  configs.Secret
		P  *configs.Secret
		L  []configs.Secret
		M  map[string]configs.Secret
		In struct{ K configs.Secret }
	}{S: s, P: &s, L: []configs.Secret{s}, M: map[string]configs.Secret{"k": s}}
	holder.In.K = s
	shown := map[string]string{}
	for _, verb := range strings.Fields("%v %+v %#v %s %q %x %X %d %c %U %10s %-10v %08.3f %t") {
		shown[verb], shown[verb+" held"] = fmt.Sprintf(verb, s), fmt.Sprintf(verb, holder)
	}
	shown["Sprint"], shown["Sprintln"] = fmt.Sprint(s), fmt.Sprintln(holder)
	shown["concat"] = "x" + s.String() + s.GoString()
	shown["error"] = errors.Join(fmt.Errorf("dial %s: %w", s, errors.New("no"))).Error()
	for name, marshal := range map[string]func(any) ([]byte, error){"json": json.Marshal, "yaml": yaml.Marshal} {
		for kind, v := range map[string]any{"bare": s, "held": holder} {
			b, err := marshal(v)
			if err != nil {
				t.Errorf("%s %s: %v", name, kind, err)
			}
			shown[name+" "+kind] = string(b)
		}
	}
	b, err := xml.Marshal(s)
	if err != nil {
		t.Error(err)
	}
	shown["xml"] = string(b)
	var logged bytes.Buffer
	for _, h := range []slog.Handler{slog.NewTextHandler(&logged, nil), slog.NewJSONHandler(&logged, nil)} {
		log := slog.New(h)
		log.Info("said", "secret", s, "pointer", &s, "holder", holder, slog.Group("g", "s", s), "list", holder.L, "err", fmt.Errorf("with %v", s))
		log.With("s", s).Info("said")
	}
	shown["slog"] = logged.String()
	for how, text := range shown {
		if leaks(text) {
			t.Errorf("%s shows it: %s", how, text)
		}
		if text == "" {
			t.Errorf("%s shows nothing at all", how)
		}
	}
	if s.Reveal() != canary || s.String() != "[secret]" || configs.Secret("").String() != "" {
		t.Error("reveal or mask is wrong")
	}
}

// everySecret has the canary in each place that holds a credential, and some more.
const everySecret = `
gateway: {token: "${C}"}
models: [{name: m, model: x, api_key: "${C}", base_url: "https://x.example/${C}/v1"}]
channels: [{name: tg, type: telegram, token: "${C}", pin: "${C}"}]
hooks: [{name: h, secret: "${C}"}]
mcp: [{name: s, command: [run, "--token=${C}"]}]
domains: [{name: d, match: {tools: [x]}, handler: webhook, url: "https://x.example/?${C}", secret: "${C}"}]
`

func TestT12_ShowMasksTheWholeConfig(t *testing.T) {
	t.Parallel()
	c := mustParse(t, everySecret, "C="+canary)
	if got := c.Secrets(); len(got) != 1 || got[0] != canary {
		t.Errorf("secrets %q", got)
	}
	out, err := c.Show()
	if err != nil {
		t.Fatal(err)
	}
	if leaks(string(out)) {
		t.Errorf("it shows:\n%s", out)
	}
	if n := strings.Count(string(out), "[secret]"); n != 9 {
		t.Errorf("%d masks in:\n%s", n, out)
	}
	var logged bytes.Buffer
	slog.New(slog.NewJSONHandler(&logged, nil)).Info("models", "models", c.Models, "gateway", c.Gateway, "hooks", c.Hooks, "channels", c.Channels)
	slog.New(slog.NewTextHandler(&logged, nil)).Info("channels", "channel", c.Channels[0], "all", c.Channels, "gateway", c.Gateway)
	if text := strings.ReplaceAll(logged.String()+fmt.Sprintf("%+v", c.Gateway), "x.example/"+canary, ""); leaks(text) {
		t.Errorf("logs show it: %s", text)
	}
}

// TestShowIsReadBack: what is printed for a configuration without secrets is a file that means the same.
func TestShowIsReadBack(t *testing.T) {
	t.Parallel()
	c := mustParse(t, `
data_dir: "/x: y"
models: [{name: "yes", model: "1e3", base_url: "http://localhost:1/v1"}]
agents: [{id: a, tools: {by_role: {guest: {exec: deny}}, exec_allow: [{program: git, args: ["", "*"]}]}}]
people: [{id: "007", accounts: [{channel: webchat, user: "1"}]}]
routes: [{channel: webchat, peer: "~", agent: a}]
sessions: {reset: {daily: "04:00", idle: 90m}}
sandbox: {memory: 1000MB}
`)
	out, err := c.Show()
	if err != nil {
		t.Fatal(err)
	}
	again, err := parse(t, string(out))
	if err != nil {
		t.Fatalf("%v in\n%s", err, out)
	}
	second, err := again.Show()
	if err != nil || !bytes.Equal(out, second) {
		t.Errorf("%v\n%s\nbecomes\n%s", err, out, second)
	}
	if again.Sandbox.Memory != 1000_000_000 || again.Sessions.Reset.Idle.Minutes() != 90 || again.Models[0].Model != "1e3" || again.People[0].ID != "007" {
		t.Errorf("%+v", again)
	}
}

// TestT12_ProblemsNeverShowCredentials puts the canary everywhere, breaks each value, and reads what is said.
func TestT12_ProblemsNeverShowCredentials(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`gateway: {token: "${C}", listen: "${C}", allowed_hosts: ["http://${C}"]}`,
		`gateway: {listen: "0.0.0.0:1", token: "${C}"}`,
		`models: [{name: "${C} x", api: "${C}", api_key: "${C}", base_url: "${C}", model: ""}]`,
		`models: [{name: m, model: m, api_key: ` + canary + `: x}]`,
		`models: [{name: m, model: m, api_key: *` + canary + `}]`,
		`models: [{name: m, model: m, api_key: [` + canary + `]}]`,
		`models: [{name: m, model: m, api_key: !!binary ` + canary + `}]`,
		`models: [{name: m, model: m, api_key: "a${` + canary + `}"}]`,
		`models: [{name: m, model: m, api_key: "a${` + canary + `"}]`,
		`models: [{name: m, model: m, api_key: k, base_url: "http://u:` + canary + `@x"}]`,
		`models: [{name: m, model: m, api_key: k, base_url: "http://x y/` + canary + `"}]`,
		`channels: [{name: "${C} ", type: telegram, token: "${C}", limit: 99}, {name: b, type: telegram, token: "${C}"}]`,
		`channels: [{name: a, type: telegram, token: "", pin: {a: ` + canary + `}}]`,
		`agents: [{id: "${C}!", model: "${C}", default: true}, {id: "${C}!", fallbacks: ["${C}", "${C}"], default: true}]`,
		`people: [{id: a, role: "${C}", tz: "${C}", accounts: [{channel: "${C}", user: u}, {channel: webchat, user: "${C}"}, {channel: webchat, user: "${C}"}]}]`,
		`routes: [{agent: "${C}", channel: "${C}", type: "${C}", fanout: ["${C}"]}, {agent: "${C}", channel: "${C}", type: "${C}"}]`,
		`domains: [{name: d, handler: webhook, secret: "${C}", url: "${C}", owner: {people: ["${C}"]}}]`,
		`mcp: [{name: "${C}", url: "${C}", sha256: "${C}"}, {name: "${C}", command: ["${C}"]}]`,
		`sandbox: {network: egress, egress: ["${C}"]}`,
		`sessions: {reset: {daily: "${C}"}, turn_timeout: "${C}"}`,
	} {
		_, err := parse(t, text, "C="+canary)
		if err == nil {
			t.Errorf("%s: was taken", text)
			continue
		}
		if leaks(err.Error()) {
			t.Errorf("%s\nsays %s", text, err)
		}
	}
}
