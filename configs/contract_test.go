package configs_test

import (
	"os"
	"slices"
	"testing"

	"go.yaml.in/yaml/v3"

	"parley/configs"
)

// contract has every key of the published contract. It may only grow.
func contract(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/contract.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func contractSections() []configs.Section {
	return []configs.Section{
		{Type: "telegram", Options: func() any { return &telegram{} }},
		{Type: "slack", Options: func() any {
			return &struct {
				Mode          string `yaml:"mode" default:"socket" enum:"socket|http"`
				BotToken      Secret `yaml:"bot_token"`
				AppToken      Secret `yaml:"app_token"`
				SigningSecret Secret `yaml:"signing_secret"`
				APIURL        string `yaml:"api_url"`
			}{}
		}},
		{Type: "discord", Options: func() any {
			return &struct {
				Token  Secret `yaml:"token"`
				APIURL string `yaml:"api_url"`
			}{}
		}},
		{Type: "whatsapp", Options: func() any { return &struct{}{} }},
	}
}

// TestContractIsTaken: names of keys are what people's files are made of.
func TestContractIsTaken(t *testing.T) {
	t.Parallel()
	o := configs.LoadOptions{Env: env("ANTHROPIC_API_KEY=k", "TELEGRAM_TOKEN=t"), Sections: contractSections()}
	c, err := configs.Parse(contract(t), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Channels) != 4 || c.Agents[0].Tools.Subagents.MemoryShareMode != "handoff" {
		t.Errorf("%+v", c.Agents[0])
	}
	if err := compile(t, contractSections()).Validate(instance(t, string(contract(t)))); err != nil {
		t.Error(err)
	}
}

// TestContractDefaults: where the contract shows a default, leaving the key out means the same.
func TestContractDefaults(t *testing.T) {
	t.Parallel()
	o := configs.LoadOptions{Env: env("ANTHROPIC_API_KEY=k", "TELEGRAM_TOKEN=t", "XDG_DATA_HOME=/home/ana/.local/share"), Sections: contractSections()}
	full, err := configs.Parse(contract(t), o)
	if err != nil {
		t.Fatal(err)
	}
	short, err := configs.Parse([]byte(`
models:
  - {name: claude, api: anthropic, api_key: "${ANTHROPIC_API_KEY}", model: claude-sonnet-4-5, context_window: 200000}
agents:
  - {id: assistant, name: Assistant, default: true, model: claude}
  - {id: research}
people: [{id: ana, role: owner, tz: Europe/Berlin, accounts: [{channel: tg, user: "123"}]}]
channels: [{name: tg, type: telegram, token: "${TELEGRAM_TOKEN}"}, {name: slack, type: slack}, {name: dc, type: discord}, {name: wa, type: whatsapp}]
routes: [{channel: tg, peer: "123", agent: research, session: watch}]
budgets: [{scope: person}]
mcp: [{name: s, command: [run]}]
hooks: [{name: h, secret: sixteen-letters-x}]
`), o)
	if err != nil {
		t.Fatal(err)
	}
	a, b := lines(t, full), lines(t, short)
	if !slices.Equal(a, b) {
		t.Errorf("contract:\n%v\ndefaults:\n%v", a, b)
	}
}

// lines are the effective values of a configuration.
func lines(t *testing.T, c *configs.Config) []string {
	t.Helper()
	out, err := c.Show()
	if err != nil {
		t.Fatal(err)
	}
	var root yaml.Node
	if err := yaml.Unmarshal(out, &root); err != nil {
		t.Fatal(err)
	}
	var list []string
	var visit func(path string, n *yaml.Node)
	visit = func(path string, n *yaml.Node) {
		switch n.Kind {
		case yaml.MappingNode:
			for i := 0; i < len(n.Content); i += 2 {
				visit(path+"."+n.Content[i].Value, n.Content[i+1])
			}
		case yaml.ScalarNode:
			list = append(list, path+"="+n.Value)
		default:
			for _, x := range n.Content {
				visit(path+"[]", x)
			}
		}
	}
	visit("", root.Content[0])
	return list
}
