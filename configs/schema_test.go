package configs_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"parley/channels/all"
	"parley/configs"
)

// real are the networks that are built in. Only tests of configs may know them.
func real() []configs.Section {
	var list []configs.Section
	for _, f := range all.Factories() {
		list = append(list, configs.Section{Type: string(f.Network), Options: f.Options})
	}
	return list
}

func compile(t *testing.T, sections []configs.Section) *jsonschema.Schema {
	t.Helper()
	text, err := configs.Schema(sections)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(configs.SchemaID, doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile(configs.SchemaID)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// instance is YAML as the schema sees it.
func instance(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestSchemaTakesWhatLoadTakes(t *testing.T) {
	t.Parallel()
	schema := compile(t, sections())
	for _, text := range []string{
		string(configs.Example),
		everySecret,
		"{}",
		"sessions: {turn_timeout: 1h30m, reset: {idle: 0, daily: '04:00'}}",
		"retention: {runs: 2w, transcripts: '0'}\nreplies: {stale_after: 1.5h}",
		"models: [{name: m, api: '${C}', model: m, api_key: k}]",
		"agents: [{id: a, tools: {by_role: {owner: {exec: allow}}}, budget: {usd_per_run: 0.5}}]",
		"channels: [{name: tg, type: telegram, token: t, limit: 3, access: {dm: open}}, {name: s, type: slack}]",
	} {
		if err := schema.Validate(instance(t, text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if _, err := parse(t, text, "C=openai", "OPENAI_API_KEY=k", "TELEGRAM_TOKEN=t"); err != nil && text != everySecret {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestSchemaRefusesWhatIsBroken(t *testing.T) {
	t.Parallel()
	schema := compile(t, sections())
	for _, text := range []string{
		"data_dri: /x",
		"gateway: {listen: 8420}",
		"gateway: []",
		"agents: [{name: a}]",
		"agents: [{id: ''}]",
		"agents: [{id: a, max_steps: 0}]",
		"agents: [{id: a, tools: {exec: yolo}}]",
		"agents: [{id: a, tools: {by_role: {boss: {}}}}]",
		"routes: [{agent: a, fanout: [a, b, c, d]}]",
		"sessions: {turn_timeout: 5}",
		"sessions: {turn_timeout: '5'}",
		"sandbox: {memory: 512}",
		"sandbox: {backend: docker}",
		"channels: [{name: tg, type: telegram, token: t, tokn: x}]",
		"channels: [{name: tg, type: telegram}]",
		"channels: [{name: tg, type: telegram, token: t, limit: 10}]",
		"channels: [{name: tg, type: discord}]",
		"channels: [{name: s, type: slack, token: t}]",
		"domains: [{name: d, owner: {roles: [guest]}}]",
	} {
		if err := schema.Validate(instance(t, text)); err == nil {
			t.Errorf("taken: %s", text)
		}
	}
}

// TestSchemaOfTheRealNetworks: what the binary prints is a valid schema that knows each network's keys.
func TestSchemaOfTheRealNetworks(t *testing.T) {
	t.Parallel()
	if err := compile(t, real()).Validate(instance(t, string(configs.Example))); err != nil {
		t.Error(err)
	}
}

// TestExampleLoads: with its variables set the example is a whole configuration, and where it shows a default it is the default.
func TestExampleLoads(t *testing.T) {
	t.Parallel()
	o := configs.LoadOptions{Env: env("OPENAI_API_KEY=k", "TELEGRAM_TOKEN=1:t"), Sections: real()}
	c, err := configs.Parse(configs.Example, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Agents) != 2 || len(c.Models) != 2 || len(c.Channels) != 1 || c.Routes[0].Agent != "research" {
		t.Errorf("%+v", c)
	}
	d := mustParse(t, "")
	plain := func(c *configs.Config) []any {
		return []any{c.Gateway, c.Sessions, c.Replies, c.Concurrency, c.Approvals, c.Sandbox.Timeout, c.Sandbox.Memory,
			c.Agents[0].MaxSteps, c.Agents[0].Tools}
	}
	c.Agents[0].Tools.Deny = nil // written as [], which is none
	for i, want := range plain(d) {
		if got := plain(c)[i]; !reflect.DeepEqual(got, want) {
			t.Errorf("the example has %+v, the default is %+v", got, want)
		}
	}
	for _, p := range c.Warnings(func(configs.ExecRule) string { return "" }) {
		t.Errorf("the example warns: %v", p)
	}
	for _, name := range topKeys() {
		if slices.Contains([]string{"budgets", "mcp", "hooks", "retention"}, name) {
			continue // nothing reads them yet
		}
		if !strings.Contains(string(configs.Example), name+":") && name != "domains" {
			t.Errorf("the example does not show %s", name)
		}
	}
}

func topKeys() []string {
	var names []string
	for f := range reflect.TypeFor[configs.Config]().Fields() {
		if name := f.Tag.Get("yaml"); f.IsExported() && name != "-" {
			names = append(names, name)
		}
	}
	return names
}

// TestDocs holds docs/configuration.md against the struct tags. Run it with -update to write the file again.
func TestDocs(t *testing.T) {
	t.Parallel()
	path := filepath.Join("..", "docs", "configuration.md")
	want := configs.Docs(real())
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is stale: run go test ./configs -run TestDocs -update", path)
	}
	for _, name := range topKeys() {
		if !strings.Contains(string(want), "| `"+name+"` |") {
			t.Errorf("%s is not documented", name)
		}
	}
}

// TestUnitsRoundTrip: what is shown can be read.
func TestUnitsRoundTrip(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"0": 0, "0s": 0, "90d": 2160 * time.Hour, "2w": 336 * time.Hour, "1h30m": 90 * time.Minute,
		"1500ms": 1500 * time.Millisecond, "1.5s": 1500 * time.Millisecond} {
		if got, err := configs.ParseDuration(text); err != nil || got != want {
			t.Errorf("%s is %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "5", "0.0", "1.5", "-1s", "d", "-3d", "1.5d", "99999999999999d", "1 h", "1e3", "inf", "9999999h9999999h"} {
		if got, err := configs.ParseDuration(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
	for text, want := range map[string]configs.Size{"0B": 0, "1024B": 1024, "64KiB": 64 << 10, "512MiB": 512 << 20, "2GB": 2e9, "1TiB": 1 << 40, "7kB": 7000} {
		got, err := configs.ParseSize(text)
		if err != nil || got != want {
			t.Errorf("%s is %d, %v", text, got, err)
		}
		if again, err := configs.ParseSize(got.String()); err != nil || again != got {
			t.Errorf("%s is shown as %s", text, got)
		}
	}
	for _, text := range []string{"", "512", "MiB", "1.5GiB", "-1MiB", "1 MiB", "1mib", "1KB", "9999999999999TiB", "1iB", "0x10B"} {
		if got, err := configs.ParseSize(text); err == nil {
			t.Errorf("%q is %d", text, got)
		}
	}
}
